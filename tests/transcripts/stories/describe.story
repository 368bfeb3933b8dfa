# Describe, which asks for events beside the object.
% kubectl create configmap one --from-literal=a=b
$ kubectl describe configmap one
$ kubectl apply -f - <<'END'
apiVersion: v1
kind: Pod
metadata:
  name: web
  labels: {app: web}
spec:
  nodeName: describe-node
  containers:
  - name: main
    image: example.com/web:1
    command: [serve, --all]
    env: [{name: COLOUR, value: blue}]
    resources: {limits: {cpu: 500m, memory: 64Mi}}
    ports: [{containerPort: 80}]
    readinessProbe: {httpGet: {path: /ready, port: 80}}
    volumeMounts: [{name: data, mountPath: /data}]
  volumes:
  - name: data
    emptyDir: {}
END
% kubectl create -f - <<END
apiVersion: v1
kind: Event
metadata: {name: web.1}
involvedObject: {apiVersion: v1, kind: Pod, name: web, namespace: describe, uid: $(kubectl get pod web -o jsonpath='{.metadata.uid}')}
reason: Scheduled
message: Assigned to a node that is not there
type: Normal
source: {component: story}
count: 1
firstTimestamp: $(date -u +%Y-%m-%dT%H:%M:%SZ)
lastTimestamp: $(date -u +%Y-%m-%dT%H:%M:%SZ)
END
$ kubectl describe pod web
$ kubectl create -f - <<'END'
apiVersion: v1
kind: Node
metadata:
  name: describe-node
  labels: {kubernetes.io/os: linux}
spec:
  taints: [{key: dedicated, value: web, effect: NoSchedule}]
END
% kubectl patch node describe-node --subresource=status --type=merge -p '{"status":{"capacity":{"cpu":"4","memory":"8Gi","pods":"110"},"allocatable":{"cpu":"3500m","memory":"7Gi","pods":"110"},"conditions":[{"type":"Ready","status":"True","reason":"KubeletReady","message":"ready","lastHeartbeatTime":"2026-01-01T00:00:00Z","lastTransitionTime":"2026-01-01T00:00:00Z"}],"addresses":[{"type":"InternalIP","address":"192.0.2.1"}],"nodeInfo":{"architecture":"amd64","bootID":"","containerRuntimeVersion":"none","kernelVersion":"6","kubeProxyVersion":"","kubeletVersion":"v1.36.0","machineID":"","operatingSystem":"linux","osImage":"none","systemUUID":""}}}'
% printf "apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {name: describe-node, namespace: kube-node-lease}\nspec: {holderIdentity: describe-node, leaseDurationSeconds: 40}\n" | kubectl create -f -
$ kubectl describe node describe-node
% kubectl apply --server-side -f crds/placements.cluster.open-cluster-management.io.yaml; serves placements
% printf 'apiVersion: cluster.open-cluster-management.io/v1beta1\nkind: Placement\nmetadata: {name: p, labels: {app: web}}\nspec: {numberOfClusters: 2, predicates: [{requiredClusterSelector: {labelSelector: {matchLabels: {region: eu}}}}]}\n' | kubectl create -f -
$ kubectl describe placement p
% kubectl create deployment web --image=example.com/web:1
$ kubectl describe deployment web
% kubectl create secret generic s --from-literal=password=hidden
$ kubectl describe secret s
$ kubectl describe namespace describe
$ kubectl create serviceaccount robot
$ kubectl describe serviceaccount robot
$ kubectl create pdb budget --selector=app=web --min-available=1
% kubectl wait pdb/budget --for=jsonpath='{.status.observedGeneration}'=1 --timeout=30s
$ kubectl describe pdb budget
$ kubectl describe configmap missing
$ kubectl describe configmaps on
