# What is served, and who asks.
$ kubectl version
$ kubectl cluster-info
$ kubectl api-resources --api-group=apps
$ kubectl api-resources --api-group=policy -o wide
$ kubectl api-resources --api-group=rbac.authorization.k8s.io --namespaced=false
$ kubectl api-resources --api-group=coordination.k8s.io -o name
$ kubectl api-resources --api-group=apiextensions.k8s.io --no-headers
$ kubectl api-resources --api-group=apiregistration.k8s.example.com
$ kubectl api-resources --categories=all --api-group=apps --verbs=deletecollection
$ kubectl api-versions | grep -e '^v1$' -e '^apps/' -e '^policy/' -e '^rbac' -e '^coordination' -e '^events'
$ kubectl get all
$ kubectl get --raw /apis/policy/v1
$ kubectl get --raw /apis/coordination.k8s.io
