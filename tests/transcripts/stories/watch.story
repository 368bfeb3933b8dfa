# Watching from a second terminal.
% kubectl create configmap first --from-literal=a=1
% kubectl get configmaps --field-selector metadata.name!=kube-root-ca.crt -w --output-watch-events >watched 2>&1 & echo $! >watcher
% shows watched first
$ kubectl create configmap second --from-literal=a=1
% shows watched second
$ kubectl patch configmap first --type=merge -p '{"data":{"b":"2"}}'
% shows watched MODIFIED
$ kubectl delete configmap second
% shows watched DELETED
$ kill $(cat watcher); cat watched
# Only what a selector picks: entering it and leaving it are events as well.
% kubectl get configmaps -l watched -w --output-watch-events >picked 2>&1 & echo $! >watcher
% kubectl get configmaps --field-selector metadata.name=first -w --output-watch-events -o name >named 2>&1 & echo $! >watcher2
% shows named first
# The first list of the selection is empty and prints nothing, so that it may begin after the label is set: then the same events come.
% kubectl label configmap first watched=yes
% shows picked ADDED
% kubectl label configmap first watched-
% shows picked DELETED
$ kill $(cat watcher) $(cat watcher2); cat picked
$ kubectl get configmap first --watch-only --request-timeout=1s
