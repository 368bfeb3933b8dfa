# Replace: the whole object, at the version that was read or at any.
% printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\ndata: {a: b}\n' >one.yaml
$ kubectl replace -f one.yaml
$ kubectl create -f one.yaml
$ kubectl create -f one.yaml
$ sed -i 's/a: b/a: c/' one.yaml && kubectl replace -f one.yaml
$ kubectl get configmap one -o jsonpath='{.data}{"\n"}'
$ kubectl get configmap one -o yaml >read.yaml; kubectl label configmap one moved=on; kubectl replace -f read.yaml
$ kubectl replace --force -f one.yaml
$ sed 's/name: one/name: one, uid: 11111111-1111-4111-8111-111111111111/' one.yaml | kubectl replace -f -
% kubectl apply --server-side -f crds/placements.cluster.open-cluster-management.io.yaml; serves placements
% printf 'apiVersion: cluster.open-cluster-management.io/v1beta1\nkind: Placement\nmetadata: {name: p}\nspec: {numberOfClusters: 1}\n' >p.yaml; kubectl create -f p.yaml
# kubectl fills in the version it has read.
$ sed 's/: 1/: 2/' p.yaml | kubectl replace -f -
$ kubectl get placement p -o jsonpath='{.spec.numberOfClusters} {.metadata.generation}{"\n"}'
$ kubectl patch configmap one --type=merge -p '{"immutable":true}'
$ sed 's/a: c/a: d/' one.yaml | kubectl replace -f -
