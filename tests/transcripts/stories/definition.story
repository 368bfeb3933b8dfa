# A definition of one's own, from its birth to its end.
$ cat >crd.yaml <<'END'
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: boats.definition.example.com
spec:
  group: definition.example.com
  names: {plural: boats, singular: boat, kind: Boat, shortNames: [bt], categories: [fleet]}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.crew, statusReplicasPath: .status.crew}
    selectableFields:
    - jsonPath: .spec.colour
    additionalPrinterColumns:
    - {name: Crew, type: integer, jsonPath: .spec.crew}
    - {name: Ready, type: string, jsonPath: '.status.conditions[?(@.type=="Ready")].status'}
    - {name: Colour, type: string, priority: 1, jsonPath: .spec.colour}
    - {name: Age, type: date, jsonPath: .metadata.creationTimestamp}
    schema:
      openAPIV3Schema:
        type: object
        description: A boat in the harbour.
        required: [spec]
        properties:
          spec:
            type: object
            x-kubernetes-validations:
            - {rule: 'self.crew <= 10 || self.colour == "grey"', message: only grey boats are large}
            - {rule: 'self.colour == oldSelf.colour', message: paint lasts}
            properties:
              crew: {type: integer, minimum: 1, default: 2, description: How many sail it.}
              colour: {type: string, enum: [red, blue, grey], default: blue}
              ports:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items:
                  type: object
                  required: [name]
                  properties: {name: {type: string}, nights: {type: integer}}
          status:
            type: object
            properties:
              crew: {type: integer}
              conditions:
                type: array
                items:
                  type: object
                  properties: {type: {type: string}, status: {type: string}}
END
$ kubectl apply -f crd.yaml
$ kubectl wait --for=condition=Established crd/boats.definition.example.com --timeout=30s
% serves boats
$ kubectl get crd boats.definition.example.com -o jsonpath='{range .status.conditions[*]}{.type} {.status} {.reason}{"\n"}{end}{.status.storedVersions} {.status.acceptedNames}{"\n"}'
$ kubectl api-resources --api-group=definition.example.com -o wide
$ printf 'apiVersion: definition.example.com/v1\nkind: Boat\nmetadata: {name: one}\nspec: {ports: [{name: hull}]}\n' >one.yaml; kubectl apply -f one.yaml
$ kubectl get boats
$ kubectl get bt -o wide
$ kubectl get fleet
$ kubectl get boat one -o yaml
$ kubectl get boats --field-selector spec.colour=blue -o name
$ kubectl get boats --field-selector spec.colour=red -o name
$ kubectl get boats --field-selector spec.crew=2
$ kubectl patch boat one --type=merge -p '{"spec":{"crew":20}}'
$ kubectl patch boat one --type=merge -p '{"spec":{"crew":0}}'
$ kubectl patch boat one --type=merge -p '{"spec":{"colour":"pink"}}'
$ kubectl patch boat one --type=merge -p '{"spec":{"colour":"red"}}'
$ kubectl patch boat one --type=merge -p '{"spec":{"crew":"many"}}'
$ kubectl patch boat one --type=merge -p '{"spec":{"ports":[{"name":"a"},{"name":"a"}]}}'
$ kubectl patch boat one --type=strategic -p '{"spec":{"crew":3}}'
$ printf 'apiVersion: definition.example.com/v1\nkind: Boat\nmetadata: {name: two}\nspec: {sails: 2}\n' | kubectl apply -f -
$ printf 'apiVersion: definition.example.com/v1\nkind: Boat\nmetadata: {name: two}\n' | kubectl apply -f -
$ kubectl scale boat one --replicas=5
$ kubectl get boat one --subresource=scale -o jsonpath='{.spec} {.status}{"\n"}'
$ kubectl patch boat one --subresource=status --type=merge -p '{"status":{"crew":5,"conditions":[{"type":"Ready","status":"True"}]}}'
$ kubectl get boats
$ kubectl explain boat.spec.crew
$ sed 's/minimum: 1, default: 2/minimum: 1, default: many/' crd.yaml | kubectl apply -f -
$ sed 's/nights: {type: integer}/nights: {type: whole}/' crd.yaml | kubectl apply -f -
$ sed 's/name: boats\./name: ships./' crd.yaml | kubectl apply -f -
$ kubectl delete crd boats.definition.example.com
$ kubectl get boats
