# Reading: every form of `get`.
$ kubectl get pods
$ kubectl apply -f - <<'END'
apiVersion: v1
kind: ConfigMap
metadata:
  name: colours
  labels: {app: web, tier: front}
  annotations: {note: "first"}
data:
  sky: blue
  grass: green
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: shapes
  labels: {app: web, tier: back}
data:
  ball: round
---
apiVersion: v1
kind: Pod
metadata:
  name: web-1
  labels: {app: web}
spec:
  nodeName: far-away
  containers:
  - name: main
    image: example.com/web:1
    ports: [{containerPort: 80}]
---
apiVersion: v1
kind: Pod
metadata:
  name: web-2
  labels: {app: web, canary: "true"}
spec:
  containers:
  - name: main
    image: example.com/web:2
  - name: side
    image: example.com/side:2
END
$ kubectl get configmaps -l app
$ kubectl get cm colours
$ kubectl get configmap/colours configmap/shapes
$ kubectl get pods
$ kubectl get pods -o wide
$ kubectl get pods --show-labels
$ kubectl get pods -L app,canary
$ kubectl get pods,configmaps -l app=web
$ kubectl get pods -o name
$ kubectl get configmaps -l 'tier in (front, middle)'
$ kubectl get configmaps -l app=web,tier!=front
$ kubectl get pods -l '!canary'
$ kubectl get pods --field-selector spec.nodeName=far-away
$ kubectl get pods --field-selector status.phase!=Pending
$ kubectl get pods --field-selector metadata.name=web-2,status.phase=Pending
$ kubectl get pods --field-selector spec.colour=blue
$ kubectl get configmaps -A -l tier=front
$ kubectl get configmap colours -o yaml
$ kubectl get configmap colours -o json
$ kubectl get configmap colours -o jsonpath='{.data.sky}{"\n"}'
$ kubectl get configmaps -l app=web -o custom-columns=NAME:.metadata.name,TIER:.metadata.labels.tier
$ kubectl get configmaps -l app=web -o go-template='{{range .items}}{{.metadata.name}} {{end}}{{"\n"}}'
$ kubectl get configmaps -l app=web --sort-by=.metadata.labels.tier
$ kubectl get configmaps -l app=web --no-headers
$ kubectl get configmaps -l app=web --chunk-size=1
$ kubectl get pod web-1 -o yaml
$ kubectl get pods web-1 web-9
$ kubectl get configmap missing
$ kubectl get configmap missing --ignore-not-found
$ kubectl get nonsense
$ kubectl get configmaps -l 'a=b=c'
# Fields come in another order than the real server's, which is that of its Go types: read, not compared as text.
$ kubectl get --raw /api/v1/namespaces/get/configmaps/colours | kubectl create --dry-run=client -f - -o jsonpath='{.data}{"\n"}'
$ kubectl get --raw /readyz
$ kubectl get --raw /healthz
$ kubectl get --raw /livez
$ kubectl get --raw /api/v1/nonsense
