# Roles: read, granted, and never more than one has oneself.
$ kubectl get clusterrole cluster-admin -o yaml
$ kubectl get clusterrolebinding cluster-admin -o yaml
$ kubectl describe clusterrole system:basic-user
$ kubectl get clusterroles view edit admin -o jsonpath='{range .items[*]}{.metadata.name} {.aggregationRule}{"\n"}{end}'
$ kubectl create role small --verb=get --resource=configmaps
$ kubectl create role granter --verb=create --resource=roles.rbac.authorization.k8s.io,rolebindings.rbac.authorization.k8s.io
$ kubectl create rolebinding jane-grants --role=granter --user=jane
% may create roles.rbac.authorization.k8s.io jane
$ kubectl create role large --verb=get,delete --resource=secrets --as=jane
$ kubectl create rolebinding jane-more --role=small --user=jane --as=jane
$ kubectl create rolebinding jane-small --role=small --user=jane
% may get configmaps jane
$ kubectl create rolebinding jane-more --role=small --user=joe --as=jane
$ cat >role.yaml <<'END'
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: small, namespace: roles}
rules:
- {apiGroups: [""], resources: [configmaps], verbs: [get, list]}
END
$ kubectl auth reconcile -f role.yaml
$ kubectl get role small -o jsonpath='{.rules}{"\n"}'
$ kubectl patch rolebinding jane-small --type=merge -p '{"roleRef":{"name":"granter"}}'
# Aggregated roles gather the rules of those with a label.
$ kubectl create clusterrole roles-sum --aggregation-rule=rbac.example.com/roles-sum=true
$ kubectl create clusterrole roles-part --verb=get --resource=nodes
$ kubectl label clusterrole roles-part rbac.example.com/roles-sum=true
$ kubectl wait clusterrole/roles-sum --for=jsonpath='{.rules[0].resources[0]}'=nodes --timeout=30s
$ kubectl create role empty --verb=get --resource=nonsense
