# Labels and annotations, set, changed and taken off.
% kubectl create configmap one --from-literal=a=b
% kubectl create configmap two --from-literal=a=b
$ kubectl label configmap one team=blue
$ kubectl label configmap one team=blue
$ kubectl label configmap one team=red
$ kubectl label --overwrite configmap one team=red size=large
$ kubectl label configmaps one two shared=yes
$ kubectl get configmaps -l shared --show-labels
$ kubectl label configmap one size-
$ kubectl label configmap one size-
$ kubectl label configmap one 'bad key=x'
$ kubectl label configmap one key='bad value!'
$ kubectl label configmap one --list | sort
$ kubectl label --dry-run=server configmap one trial=1
$ kubectl label --resource-version=1 configmap one late=1
$ kubectl annotate configmap one example.com/note='a long story'
$ kubectl annotate configmap one example.com/note='another'
$ kubectl annotate --overwrite configmap one example.com/note='another'
$ kubectl annotate configmap one --list | sort
$ kubectl annotate configmap one example.com/note-
$ kubectl label configmap missing a=b
$ kubectl get configmap one -o jsonpath='{.metadata.labels}{"\n"}'
