# Scale and rollouts.
% kubectl create deployment web --image=example.com/web:1
$ kubectl scale deployment web --replicas=3
$ kubectl get deployment web
$ kubectl scale deployment web --replicas=4 --current-replicas=9
$ kubectl scale deployment web --replicas=4 --current-replicas=3
$ kubectl scale deployment/missing --replicas=1
$ kubectl scale configmap/none --replicas=1
$ kubectl scale deployment web --replicas=-1
$ kubectl rollout status deployment/web --watch=false
$ kubectl rollout status deployment/web --timeout=1s
$ kubectl rollout restart deployment/web
$ kubectl get deployment web -o jsonpath='{.metadata.generation} {.spec.template.metadata.annotations}{"\n"}'
$ kubectl rollout pause deployment/web
$ kubectl rollout pause deployment/web
$ kubectl rollout resume deployment/web
% kubectl rollout status deployment/web --timeout=30s >rolled 2>&1 & echo
% shows rolled Waiting
$ kubectl patch deployment web --subresource=status --type=merge -p '{"status":{"observedGeneration":6,"replicas":4,"updatedReplicas":4,"readyReplicas":4,"availableReplicas":4}}'
% shows rolled successfully
$ tail -1 rolled
$ kubectl rollout history deployment/web
$ printf 'apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: db}\nspec: {serviceName: db, selector: {matchLabels: {app: db}}, template: {metadata: {labels: {app: db}}, spec: {containers: [{name: db, image: example.com/db}]}}}\n' | kubectl create -f -
$ kubectl scale statefulset db --replicas=2
$ kubectl get statefulset db -o wide
$ kubectl rollout status statefulset/db --watch=false
$ printf 'apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: agent}\nspec: {selector: {matchLabels: {app: agent}}, template: {metadata: {labels: {app: agent}}, spec: {containers: [{name: agent, image: example.com/agent}]}}}\n' | kubectl create -f -
$ kubectl get daemonset agent
$ kubectl rollout status daemonset/agent --watch=false
