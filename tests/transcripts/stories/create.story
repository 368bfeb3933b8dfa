# Every generator: kubectl sends these as protobuf.
$ kubectl create namespace create-another
$ kubectl create namespace create-another
$ kubectl create configmap literal --from-literal=a=1 --from-literal=b=two
% printf 'lines\nof text\n' >file.txt; printf '\000\377' >raw.bin
$ kubectl create configmap files --from-file=file.txt --from-file=raw=raw.bin
$ kubectl get configmap files -o yaml
$ kubectl create secret generic password --from-literal=password=secret --type=example.com/kind
$ kubectl get secret password -o yaml
$ kubectl create secret docker-registry registry --docker-server=registry.example.com --docker-username=me --docker-password=secret
$ kubectl get secrets
$ kubectl create serviceaccount robot
$ kubectl create token robot
$ kubectl create token robot --duration=1h --audience=https://example.com
$ kubectl create token nobody
$ kubectl create poddisruptionbudget budget --selector=app=web --min-available=1
$ kubectl create pdb share --selector=app=web --max-unavailable=50%
$ kubectl get pdb
$ kubectl create quota limits --hard=pods=2 --scopes=BestEffort
$ kubectl create deployment web --image=example.com/web:1 --replicas=2 --port=80
$ kubectl get deployment web -o yaml
$ kubectl create job once --image=example.com/job:1 -- run it
$ kubectl get job once -o jsonpath='{.spec.template.spec.containers[0].command}{"\n"}'
$ kubectl create role reader --verb=get,list --resource=pods,configmaps
$ kubectl create role writer --verb=update --resource=deployments.apps/scale --resource-name=web
$ kubectl create clusterrole create-reader --verb=get --resource=nodes
$ kubectl create clusterrole create-health --verb=get --non-resource-url=/create-health
$ kubectl create clusterrole create-sum --aggregation-rule=rbac.example.com/create-sum=true
$ kubectl create rolebinding readers --role=reader --user=jane --group=team --serviceaccount=create:robot
$ kubectl create clusterrolebinding create-readers --clusterrole=create-reader --serviceaccount=create:robot
$ kubectl get role,rolebinding
$ kubectl get role,rolebinding -o wide
$ kubectl get clusterrolebinding create-readers -o wide
$ kubectl create priorityclass create-urgent --value=1000 --description='goes first' --preemption-policy=Never
$ kubectl get priorityclass create-urgent
$ kubectl create service clusterip web --tcp=80:8080
$ kubectl create configmap dry --from-literal=a=b --dry-run=server -o yaml
$ kubectl create configmap dry --from-literal=a=b --dry-run=client -o yaml
$ kubectl create configmap 'Bad Name' --from-literal=a=b
$ kubectl create -f - <<'END'
apiVersion: v1
kind: ConfigMap
metadata: {generateName: many-}
END
$ kubectl create -f - <<'END'
apiVersion: v1
kind: ConfigMap
metadata: {name: elsewhere, namespace: not-there}
END
$ kubectl create -f - <<'END'
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: listed-1}}
- {apiVersion: v1, kind: Secret, metadata: {name: listed-2}, stringData: {a: plain}}
END
$ kubectl get secret listed-2 -o jsonpath='{.data}{"\n"}'
$ kubectl run web --image=example.com/web:1 --labels=app=web
$ kubectl get pod web
