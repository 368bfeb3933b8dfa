# Explain: from the OpenAPI documents alone.
% kubectl apply --server-side -f crds/placements.cluster.open-cluster-management.io.yaml; serves placements
$ kubectl explain placement
$ kubectl explain placement.spec.predicates
$ kubectl explain placement.spec.tolerations --recursive
$ kubectl explain placements.cluster.open-cluster-management.io --recursive
$ kubectl explain configmap.metadata.labels
$ kubectl explain configmap --recursive
$ kubectl explain pod.spec.containers.resources.limits
$ kubectl explain poddisruptionbudget.spec.minAvailable
$ kubectl explain events.events.k8s.io.eventTime
$ kubectl explain pod.spec.nonsense
$ kubectl explain nonsense
$ kubectl explain placement --api-version=cluster.open-cluster-management.io/v9
