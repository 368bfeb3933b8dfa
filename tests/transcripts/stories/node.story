# Nodes: taints and cordons.
$ printf 'apiVersion: v1\nkind: Node\nmetadata: {name: node-1, labels: {story: node}}\n' | kubectl create -f -
$ kubectl get nodes -l story=node
$ kubectl get nodes -l story=node -o wide
$ kubectl taint node node-1 dedicated=web:NoSchedule
$ kubectl taint node node-1 dedicated=web:NoSchedule
$ kubectl taint node node-1 dedicated=other:NoSchedule --overwrite
$ kubectl taint node node-1 maintenance:NoExecute spot=yes:PreferNoSchedule
$ kubectl get node node-1 -o jsonpath='{.spec.taints}{"\n"}'
$ kubectl taint node node-1 dedicated-
$ kubectl taint node node-1 dedicated-
$ kubectl taint node node-1 bad=x:Sometimes
$ kubectl taint nodes -l story=node maintenance:NoExecute-
$ kubectl cordon node-1
$ kubectl cordon node-1
$ kubectl get node node-1
$ kubectl get nodes --field-selector spec.unschedulable=true -l story=node -o name
$ kubectl uncordon node-1
$ kubectl uncordon node-1
$ kubectl cordon missing
$ kubectl get node node-1 -o jsonpath='{.spec}{"\n"}'
# The real server marks a node without a heartbeat; what a kubelet would say is written here.
% kubectl patch node node-1 --subresource=status --type=merge -p '{"status":{"conditions":[{"type":"Ready","status":"True"}],"nodeInfo":{"architecture":"amd64","bootID":"","containerRuntimeVersion":"containerd://2","kernelVersion":"6.1","kubeProxyVersion":"","kubeletVersion":"v1.36.0","machineID":"","operatingSystem":"linux","osImage":"Linux","systemUUID":""},"addresses":[{"type":"InternalIP","address":"192.0.2.1"},{"type":"Hostname","address":"node-1"}]}}'
$ kubectl get node node-1 -o wide
$ kubectl delete node node-1
