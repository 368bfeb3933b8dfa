# Patches of each type, and of a subresource.
% kubectl create deployment web --image=example.com/web:1
$ kubectl patch deployment web -p '{"spec":{"template":{"spec":{"containers":[{"name":"web","env":[{"name":"A","value":"1"}]}]}}}}'
$ kubectl patch deployment web -p '{"spec":{"template":{"spec":{"containers":[{"name":"side","image":"example.com/side:1"}]}}}}'
$ kubectl get deployment web -o jsonpath='{.spec.template.spec.containers[*].name} {.spec.template.spec.containers[?(@.name=="web")].image}{"\n"}'
$ kubectl patch deployment web -p '{"spec":{"template":{"spec":{"containers":[{"$patch":"delete","name":"side"}]}}}}'
$ kubectl patch deployment web -p '{"spec":{"replicas":1}}'
$ kubectl patch deployment web --type=merge -p '{"spec":{"replicas":4}}'
$ kubectl patch deployment web --type=json -p '[{"op":"test","path":"/spec/replicas","value":4},{"op":"replace","path":"/spec/replicas","value":5}]'
$ kubectl patch deployment web --type=json -p '[{"op":"test","path":"/spec/replicas","value":4}]'
$ kubectl patch deployment web --type=json -p '[{"op":"remove","path":"/spec/nothing"}]'
$ kubectl patch deployment web --type=json -p '[{"op":"jump","path":"/spec"}]'
$ kubectl patch deployment web --type=json -p '{"not":"a list"}'
$ kubectl patch deployment web --type=merge -p '{"spec":{"replicas":"many"}}'
$ kubectl patch deployment web --type=merge -p '{"spec":{"selector":null}}'
$ kubectl patch deployment web --type=merge -p 'spec: {replicas: 2}'
$ kubectl patch deployment web --type=merge -p '{"spec":'
$ kubectl patch deployment web --subresource=status --type=merge -p '{"status":{"replicas":2,"readyReplicas":1,"updatedReplicas":2,"availableReplicas":1,"unavailableReplicas":1},"spec":{"replicas":9}}'
$ kubectl get deployment web
$ kubectl get deployment web --subresource=status -o jsonpath='{.spec.replicas} {.status}{"\n"}'
$ kubectl get deployment web --subresource=scale
$ kubectl patch deployment web --subresource=scale --type=merge -p '{"spec":{"replicas":7}}'
$ kubectl get deployment web -o jsonpath='{.spec.replicas} {.metadata.generation}{"\n"}'
$ kubectl patch deployment web --dry-run=server --type=merge -p '{"spec":{"replicas":8}}'
$ kubectl patch deployment web --type=merge -p '{"metadata":{"resourceVersion":"1"},"spec":{"replicas":8}}'
$ kubectl patch deployment web --type=merge -p '{"metadata":{"name":"other"}}'
$ kubectl patch deployment missing --type=merge -p '{}'
$ kubectl set image deployment/web web=example.com/web:9
$ kubectl set env deployment/web COLOUR=blue
$ kubectl set resources deployment/web --limits=cpu=200m,memory=512Mi
$ kubectl get deployment web -o jsonpath='{.spec.template.spec.containers[0]}{"\n"}'
