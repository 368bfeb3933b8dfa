# Every form of delete.
% for n in 1 2 3 4 5 6 7 8; do kubectl create configmap m$n --from-literal=a=b; kubectl label configmap m$n app=x; done >/dev/null
$ kubectl delete configmap m1
$ kubectl delete configmap m1
$ kubectl delete configmap m1 --ignore-not-found
$ kubectl delete configmap/m2 configmap/m3
$ kubectl delete configmap m4 --wait=false
$ kubectl delete configmap m5 --dry-run=server
$ kubectl delete configmap m5 -o name
$ kubectl delete configmaps -l app=x,nothing
$ kubectl delete configmaps -l app=x
$ printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\n' | kubectl create -f - -o name
$ printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\n' | kubectl delete -f -
# Pods that no kubelet has seen go at once, whatever their grace.
$ kubectl run p1 --image=example.com/p:1
$ kubectl run p2 --image=example.com/p:1
$ kubectl delete pod p1
$ kubectl delete pod p2 --grace-period=0 --force
$ kubectl delete pod p3 --now
# A finalizer keeps an object until it is taken off.
$ printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: held, finalizers: [example.com/hold]}\n' | kubectl create -f -
$ kubectl delete configmap held --wait=false
$ kubectl get configmap held -o jsonpath='{.metadata.deletionGracePeriodSeconds} {.metadata.finalizers}{"\n"}'
$ kubectl delete configmap held --timeout=1s
$ kubectl patch configmap held --type=merge -p '{"metadata":{"finalizers":["example.com/other"]}}'
$ kubectl patch configmap held --type=merge -p '{"metadata":{"finalizers":null}}'
$ kubectl get configmap held
# Owners: what belongs to an object goes with it, before it, or not at all.
% owned() { kubectl create configmap $1 >/dev/null; uid=$(kubectl get configmap $1 -o jsonpath='{.metadata.uid}'); printf "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: $1-child, labels: {child: 'yes'}, ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: $1, uid: $uid, blockOwnerDeletion: true}]}\n" | kubectl create -f - ; }; owned background; owned foreground; owned orphan
$ kubectl get configmaps -l child
$ kubectl delete configmap background --cascade=background
$ kubectl wait --for=delete configmap/background-child --timeout=30s
$ kubectl delete configmap foreground --cascade=foreground
$ kubectl get configmaps -l child
$ kubectl delete configmap orphan --cascade=orphan
$ kubectl get configmap orphan-child -o jsonpath='{.metadata.ownerReferences}{"\n"}'
# Everything of a kind; a whole namespace.
% kubectl create secret generic s1; kubectl create secret generic s2
$ kubectl delete secrets --all
$ kubectl create namespace delete-whole
$ kubectl -n delete-whole create configmap inside --from-literal=a=b
$ kubectl delete namespace delete-whole
$ kubectl -n delete-whole get configmaps -o name
$ kubectl -n delete-whole create configmap late --from-literal=a=b
$ kubectl delete namespace default
$ kubectl delete namespace kube-system
