# Events, in both groups of the API: one storage, two views.
% kubectl create configmap one --from-literal=a=b
% now=$(date -u +%Y-%m-%dT%H:%M:%SZ); for n in 1 2; do kubectl create -f - <<END
apiVersion: v1
kind: Event
metadata: {name: one.$n}
involvedObject: {apiVersion: v1, kind: ConfigMap, name: one, namespace: events}
reason: Seen$n
message: seen $n times
type: $([ $n = 1 ] && echo Normal || echo Warning)
source: {component: story}
count: $n
firstTimestamp: $now
lastTimestamp: $now
END
done
% kubectl create -f - <<END
apiVersion: events.k8s.io/v1
kind: Event
metadata: {name: two.1}
eventTime: $(date -u +%Y-%m-%dT%H:%M:%S.000000Z)
regarding: {apiVersion: v1, kind: ConfigMap, name: two, namespace: events}
reason: Noticed
action: Look
note: noticed in the other group
type: Normal
reportingController: example.com/story
reportingInstance: story-1
END
# Columns are squeezed, as their width follows the age.
$ kubectl events | tr -s ' '
$ kubectl events --for configmap/one | tr -s ' '
$ kubectl events --types=Warning | tr -s ' '
$ kubectl events -o name
$ kubectl get events --field-selector involvedObject.name=one,type=Warning | tr -s ' '
$ kubectl get events --field-selector reason=Noticed -o wide | tr -s ' '
$ kubectl get events.events.k8s.io two.1 -o yaml
$ kubectl get events two.1 -o yaml
$ kubectl get events.events.k8s.io one.2 -o yaml
$ kubectl create -f - <<'END'
apiVersion: events.k8s.io/v1
kind: Event
metadata: {name: three.1}
regarding: {kind: ConfigMap, name: three, namespace: events}
END
$ kubectl delete events --all
