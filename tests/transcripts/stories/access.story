# Who may do what, as kubectl asks it.
$ kubectl auth whoami
$ kubectl auth whoami -o yaml
$ kubectl auth can-i create pods
$ kubectl auth can-i '*' '*' --all-namespaces
$ kubectl auth can-i get /healthz
$ kubectl auth can-i create pods --as=jane
$ kubectl create rolebinding jane-edits --clusterrole=edit --user=jane
% may create pods jane
$ kubectl auth can-i create pods --as=jane
$ kubectl auth can-i create pods --as=jane -n default
$ kubectl auth can-i create roles --as=jane
$ kubectl auth can-i get pods --subresource=log --as=jane
$ kubectl auth can-i get nodes --as=jane
$ kubectl auth can-i list secrets --as=joe --as-group=system:masters
$ kubectl auth can-i get nonsense --as=jane
$ kubectl auth can-i --list --as=joe
$ kubectl get configmaps --as=joe
$ kubectl get nodes --as=jane
$ kubectl create configmap mine --from-literal=a=b --as=jane
$ kubectl delete namespace access --as=jane
$ kubectl auth whoami --as=jane --as-group=team
$ kubectl get configmap mine --as=joe --as-group=nobody -o yaml
# A service account with a token of its own.
$ kubectl create serviceaccount robot
$ kubectl create rolebinding robot-views --clusterrole=view --serviceaccount=access:robot
% may get configmaps system:serviceaccount:access:robot
$ TOKEN=$(kubectl create token robot); kubectl --kubeconfig=/dev/null --server=$(kubectl config view --minify -o jsonpath='{.clusters[0].cluster.server}') --insecure-skip-tls-verify --token=$TOKEN -n access auth whoami | sed -n '/Username/p; /Groups/p'
$ TOKEN=$(kubectl create token robot); kubectl --kubeconfig=/dev/null --server=$(kubectl config view --minify -o jsonpath='{.clusters[0].cluster.server}') --insecure-skip-tls-verify --token=$TOKEN -n access get configmap mine -o name
$ TOKEN=$(kubectl create token robot); kubectl --kubeconfig=/dev/null --server=$(kubectl config view --minify -o jsonpath='{.clusters[0].cluster.server}') --insecure-skip-tls-verify --token=$TOKEN -n access get secrets
$ kubectl --kubeconfig=/dev/null --server=$(kubectl config view --minify -o jsonpath='{.clusters[0].cluster.server}') --insecure-skip-tls-verify --token=nonsense get configmaps
