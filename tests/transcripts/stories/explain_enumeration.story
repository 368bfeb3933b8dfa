# Fields of built-in kinds with a few values.
$ kubectl explain pod.spec.tolerations
$ kubectl explain deployment.spec.strategy --recursive
