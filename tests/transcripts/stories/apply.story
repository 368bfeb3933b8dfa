# Apply, as clients compute it: created, configured, unchanged, fields taken out, pruned.
$ cat >app.yaml <<'END'
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  labels: {app: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: main
        image: example.com/web:1
        env:
        - {name: COLOUR, value: blue}
        - {name: SIZE, value: large}
        ports:
        - {containerPort: 80, name: http}
END
$ kubectl apply -f app.yaml
$ kubectl apply -f app.yaml
$ sed -i 's/web:1/web:2/; /SIZE/d; s/replicas: 2/replicas: 3/' app.yaml && kubectl apply -f app.yaml
$ kubectl get deployment web -o yaml
$ kubectl get deployment web -o wide
$ kubectl apply view-last-applied deployment web -o json
$ kubectl apply -f app.yaml --dry-run=server
$ kubectl apply -f app.yaml --dry-run=client
$ sed 's/replicas:/replicaz:/' app.yaml | kubectl apply -f -
$ sed 's/replicas:/replicaz:/' app.yaml | kubectl apply --validate=warn -f -
$ sed 's/app: web}}$/app: other}}/' app.yaml | kubectl apply -f -
$ sed 's/replicas: 3/replicas: many/' app.yaml | kubectl apply -f -
$ sed 's/replicas: 3/replicas: -1/' app.yaml | kubectl apply -f -
# A service account beside it: two documents in one stream.
$ (cat app.yaml; printf -- '---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: web, labels: {app: web}}\n') | kubectl apply -f -
# What is no longer among the manifests is pruned.
$ kubectl apply -f app.yaml --prune -l app=web --prune-allowlist=core/v1/ServiceAccount
$ kubectl create configmap made --from-literal=a=b
$ printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: made}\ndata: {a: c}\n' | kubectl apply -f -
$ kubectl apply set-last-applied -f app.yaml
$ kubectl delete -f app.yaml
