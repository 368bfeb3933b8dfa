# What an apply would change.
% printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\ndata: {a: b, c: d}\n' >one.yaml
$ kubectl diff -f one.yaml
$ kubectl apply -f one.yaml
$ kubectl diff -f one.yaml
$ sed -i 's/a: b/a: x/; s/, c: d//' one.yaml && kubectl diff -f one.yaml
$ kubectl diff --server-side --field-manager=other -f one.yaml
$ kubectl diff --server-side --force-conflicts -f one.yaml
$ sed 's/^data/nonsense/' one.yaml | kubectl diff -f -
$ kubectl get configmap one -o jsonpath='{.data}{"\n"}'
