# Wait: for conditions, for fields, for an end.
% kubectl create deployment web --image=example.com/web
% kubectl apply --server-side -f crds/placements.cluster.open-cluster-management.io.yaml; serves placements
$ kubectl wait --for=condition=Established crd/placements.cluster.open-cluster-management.io --timeout=30s
$ kubectl wait --for=condition=Available deployment/web --timeout=1s
% kubectl wait --for=condition=Available deployment/web --timeout=30s >waited 2>&1 & echo $! >waiter
$ kubectl patch deployment web --subresource=status --type=merge -p '{"status":{"observedGeneration":1,"replicas":1,"updatedReplicas":1,"readyReplicas":1,"availableReplicas":1,"conditions":[{"type":"Available","status":"True","reason":"MinimumReplicasAvailable","message":"enough"}]}}'
% shows waited met
$ cat waited
$ kubectl wait --for=jsonpath='{.status.readyReplicas}'=1 deployment/web --timeout=30s
$ kubectl wait --for=jsonpath='{.status.readyReplicas}'=2 deployment/web --timeout=1s
$ kubectl wait --for=condition=Available=False deployment/web --timeout=1s
$ kubectl rollout status deployment/web --timeout=30s
$ kubectl create configmap late --from-literal=a=b
% kubectl wait --for=delete configmap/late --timeout=30s -v=6 >gone 2>requests & echo
% shows requests watch=true
$ kubectl delete configmap late
% shows gone met
$ cat gone
$ kubectl wait --for=delete configmap/late --timeout=5s
$ kubectl wait --for=create configmap/none --timeout=1s
$ kubectl wait --for=condition=Ready configmap/none --timeout=1s
