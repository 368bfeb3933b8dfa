# What the server refuses, and how it says so.
$ printf 'apiVersion: v1\nkind: Nonsense\nmetadata: {name: a}\n' | kubectl create -f -
$ printf 'apiVersion: nonsense.example.com/v1\nkind: Nonsense\nmetadata: {name: a}\n' | kubectl create -f -
$ printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: {"bad key": x}}\n' | kubectl create -f -
$ printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: {}\n' | kubectl create -f -
$ printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {"a b": x}\n' | kubectl create -f -
$ printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: [1]\n' | kubectl create -f -
$ printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: 1}\n' | kubectl create -f -
$ printf 'apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: []}\n' | kubectl create -f -
$ printf 'apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: A_B}]}\n' | kubectl create -f -
$ printf 'apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {a: "not base64!"}\n' | kubectl create -f -
$ printf 'apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ntype: kubernetes.io/tls\n' | kubectl create -f -
$ printf 'apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {}\n' | kubectl create -f -
$ printf 'apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: a}\nspec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: c}}, spec: {containers: [{name: x, image: example.com/x}]}}}\n' | kubectl create -f -
$ printf 'apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: a}\nspec: {minAvailable: 1, maxUnavailable: 1}\n' | kubectl create -f -
$ printf 'apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {name: a}\nspec: {leaseDurationSeconds: 0}\n' | kubectl create -f -
$ printf 'apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: system-mine}\nvalue: 1\n' | kubectl create -f -
$ printf 'apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: refusals-slow}\n' | kubectl create -f -
$ printf 'apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: a}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: Roll, name: x}\n' | kubectl create -f -
$ printf 'apiVersion: v1\nkind: Namespace\nmetadata: {name: UPPER}\n' | kubectl create -f -
$ printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: default}\n' | kubectl create -n refusals -f -
$ printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: big}\nmetadatas: {}\nkinds: x\n' | kubectl create -f -
$ printf '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"x":"1","x":"2"}}' | kubectl create -f -
$ printf 'not: [yaml' | kubectl create -f -
$ kubectl get pods --subresource=nonsense
$ kubectl patch configmap missing --subresource=status --type=merge -p '{}'
