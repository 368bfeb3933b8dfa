# The example fleet, on a cluster that has nothing but our kinds: everything is taken at the first try.
% kubectl apply -f crds/
% serves placements; serves managedclusters; serves addonplacementscores
$ kubectl apply -f examples/fleet/
$ kubectl get managedclustersets
$ kubectl get placements -A
$ kubectl get managedclusters -l region=eu-north -o name
$ kubectl apply --server-side --subresource=status -f examples/fleet/clusters-eu.yaml -o name | wc -l
$ kubectl get managedclusters sto-prod-1 sto-prod-2
$ kubectl delete -f examples/fleet/bindings.yaml
