# Drain: pods are evicted, as far as their disruption budgets allow.
% printf 'apiVersion: v1\nkind: Node\nmetadata: {name: drain-node}\n' | kubectl create -f -
% for n in a; do printf "apiVersion: v1\nkind: Pod\nmetadata: {name: $n, labels: {app: $n}}\nspec: {nodeName: drain-node, containers: [{name: main, image: example.com/$n}]}\n" | kubectl create -f -; done
$ kubectl drain drain-node
$ kubectl get pods
$ kubectl drain drain-node --force
$ kubectl get pods
$ kubectl get node drain-node
# A budget that allows no disruption holds a drain up.
% kubectl uncordon drain-node
% kubectl create deployment web --image=example.com/web
% uid=$(kubectl get deployment web -o jsonpath='{.metadata.uid}'); printf "apiVersion: apps/v1\nkind: ReplicaSet\nmetadata: {name: web-1, labels: {app: web}, ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, uid: $uid, controller: true}]}\nspec: {replicas: 1, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: example.com/web}]}}}\n" | kubectl create -f -
% uid=$(kubectl get replicaset web-1 -o jsonpath='{.metadata.uid}'); printf "apiVersion: v1\nkind: Pod\nmetadata: {name: web-1-a, labels: {app: web}, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web-1, uid: $uid, controller: true}]}\nspec: {nodeName: drain-node, containers: [{name: main, image: example.com/web}]}\n" | kubectl create -f -
% kubectl patch pod web-1-a --subresource=status --type=merge -p '{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}'
$ kubectl create pdb web --selector=app=web --min-available=1
% kubectl wait pdb/web --for=jsonpath='{.status.observedGeneration}'=1 --timeout=30s
$ kubectl get pdb web
$ kubectl drain drain-node --timeout=2s | uniq
$ kubectl patch pdb web --type=merge -p '{"spec":{"minAvailable":0}}'
% kubectl wait pdb/web --for=jsonpath='{.status.disruptionsAllowed}'=1 --timeout=30s
$ kubectl drain drain-node
$ kubectl get pods -l app=web
$ kubectl drain drain-node --dry-run=server
