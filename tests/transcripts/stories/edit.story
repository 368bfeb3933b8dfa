# Edit: what an editor leaves behind is sent as a patch.
% kubectl create configmap one --from-literal=a=old
$ EDITOR='sed -i s/old/new/' kubectl edit configmap one
$ kubectl get configmap one -o jsonpath='{.data.a}{"\n"}'
$ EDITOR=true kubectl edit configmap one
$ EDITOR='sed -i s/^kind:.*/kind:/' kubectl edit configmap one
% kubectl create deployment web --image=example.com/web:1
$ EDITOR='sed -i s/web:1/web:2/' kubectl edit deployment web
$ kubectl get deployment web -o jsonpath='{.spec.template.spec.containers[0].image} {.metadata.generation}{"\n"}'
% kubectl apply --server-side -f crds/placements.cluster.open-cluster-management.io.yaml; serves placements
% printf 'apiVersion: cluster.open-cluster-management.io/v1beta1\nkind: Placement\nmetadata: {name: p}\nspec: {numberOfClusters: 1}\n' | kubectl create -f -
$ EDITOR='sed -i s/numberOfClusters:.*/numberOfClusters:\ 5/' kubectl edit placement p
$ kubectl get placement p -o jsonpath='{.spec.numberOfClusters}{"\n"}'
