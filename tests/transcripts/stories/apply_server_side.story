# Apply, as the server computes it: owners of fields, conflicts, force.
$ cat >app.yaml <<'END'
apiVersion: v1
kind: ConfigMap
metadata:
  name: shared
  labels: {app: web}
data:
  sky: blue
  grass: green
END
$ kubectl apply --server-side -f app.yaml
$ kubectl apply --server-side -f app.yaml
$ kubectl get configmap shared -o yaml --show-managed-fields
# Another manager wants one of the fields.
$ sed 's/sky: blue/sky: red/; /grass/d' app.yaml | kubectl apply --server-side --field-manager=painter -f -
$ sed 's/sky: blue/sky: red/; /grass/d' app.yaml | kubectl apply --server-side --field-manager=painter --force-conflicts -f -
$ kubectl get configmap shared -o yaml --show-managed-fields
# The first one gives up a field, which goes; and a field it shares, which stays.
$ sed '/grass/d; /sky/d' app.yaml | kubectl apply --server-side -f -
$ kubectl get configmap shared -o jsonpath='{.data}{"\n"}'
$ kubectl patch configmap shared --type=merge --field-manager=hand -p '{"data":{"sea":"deep"}}'
$ printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shared}\ndata: {sea: shallow}\n' | kubectl apply --server-side -f -
$ kubectl apply --server-side --dry-run=server --force-conflicts -f app.yaml
$ sed 's/^data:/data:/' app.yaml | kubectl apply --server-side -f -
# From client-side to server-side apply.
$ sed 's/name: shared/name: moved/' app.yaml | kubectl apply -f -
$ sed 's/name: shared/name: moved/; s/blue/grey/' app.yaml | kubectl apply --server-side -f -
$ kubectl get configmap moved -o yaml --show-managed-fields
