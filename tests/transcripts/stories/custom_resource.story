# OCM's Placement: applied, listed with its own columns, decided, deleted.
$ kubectl apply --server-side -f crds/placements.cluster.open-cluster-management.io.yaml -f crds/placementdecisions.cluster.open-cluster-management.io.yaml
% serves placements
$ cat >p.yaml <<'END'
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata:
  name: web
  labels: {app: web}
spec:
  numberOfClusters: 2
  tolerations:
  - {key: example.com/slow, operator: Exists}
END
$ kubectl apply -f p.yaml
$ kubectl get placements
$ kubectl get placement web -o yaml
$ kubectl patch placement web --subresource=status --type=merge -p '{"status":{"numberOfSelectedClusters":2,"conditions":[{"type":"PlacementSatisfied","status":"True","reason":"AllDecisionsScheduled","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}'
$ kubectl get placements
$ kubectl get placements -o wide
$ kubectl get placements -l app=web -o custom-columns=NAME:.metadata.name,N:.status.numberOfSelectedClusters
$ sed -i 's/numberOfClusters: 2/numberOfClusters: 3/' p.yaml && kubectl apply -f p.yaml
$ kubectl get placement web -o jsonpath='{.metadata.generation} {.status.numberOfSelectedClusters}{"\n"}'
$ kubectl apply --server-side --field-manager=other -f p.yaml
$ sed 's/: 3/: 4/' p.yaml | kubectl apply --server-side --field-manager=other -f -
$ sed 's/: 3/: 9/' p.yaml | kubectl apply --server-side --field-manager=third -f -
$ kubectl get placement web -o yaml --show-managed-fields
$ sed 's/numberOfClusters: 3/numberOfClusters: three/' p.yaml | kubectl apply -f -
$ sed 's/numberOfClusters/number/' p.yaml | kubectl apply -f -
$ sed 's/numberOfClusters/number/' p.yaml | kubectl create --validate=ignore -f - --dry-run=server -o jsonpath='{.spec}{"\n"}'
$ sed 's/: web$/: Web/' p.yaml | kubectl apply -f -
$ kubectl label placement web team=blue
$ kubectl diff -f p.yaml
$ kubectl wait placement/web --for=condition=PlacementSatisfied --timeout=30s
$ kubectl delete placement web
$ kubectl get placements
