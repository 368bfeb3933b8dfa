package main

import (
	"math/rand"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

func builtinManager(name, subresource string) *managedfields.FieldManager {
	version, kind := splitKind(name)
	gv, err := schema.ParseGroupVersion(version)
	check(err)
	paths := fieldpath.NewSet(fieldpath.MakePathOrDie("status"))
	if subresource == "status" {
		paths = fieldpath.NewSet(fieldpath.MakePathOrDie("metadata"), fieldpath.MakePathOrDie("spec"))
	}
	reset := map[fieldpath.APIVersion]fieldpath.Filter{fieldpath.APIVersion(version): fieldpath.NewExcludeSetFilter(paths)}
	manager, err := managedfields.NewDefaultFieldManager(applyconfigurations.NewTypeConverter(scheme.Scheme), scheme.Scheme, scheme.Scheme, scheme.Scheme, gv.WithKind(kind), gv, subresource, reset)
	check(err)
	return manager
}

func typedObject(obj runtime.Object) object {
	return copied(raw(encode(obj))).(object)
}

func builtinApplies(r *rand.Rand, s *sink) {
	managers := map[string]*managedfields.FieldManager{}
	for _, name := range kindNames {
		for _, subresource := range []string{"", "status"} {
			managers[name+"|"+subresource] = builtinManager(name, subresource)
		}
	}
	for range scaled(170) {
		builtinScenario(r, s, managers)
	}
}

func builtinScenario(r *rand.Rand, s *sink, managers map[string]*managedfields.FieldManager) {
	name := pick(r, kindNames...)
	version, kind := splitKind(name)
	var live runtime.Object
	first := true
	for n := range 4 + r.Intn(3) {
		now := step{Kind: name, First: first, Manager: pick(r, "alice", "bob", "kubectl"), Version: version, Now: stepTime(n), Operation: pick(r, "update", "apply", "apply"), Force: chance(r, 60)}
		base := live
		if live == nil {
			base = kinds[name]()
			base.GetObjectKind().SetGroupVersionKind(schema.FromAPIVersionAndKind(version, kind))
		}
		in := builtin(r, name)
		if live != nil && now.Operation == "update" {
			sent := typedObject(live)["metadata"].(object)["managedFields"]
			if sent != nil {
				in["metadata"].(object)["managedFields"] = sent
			}
			in["metadata"].(object)["uid"] = "u"
			if chance(r, 25) && (kind == "Pod" || kind == "Node") {
				now.Subresource = "status"
			}
		}
		if now.Operation == "apply" {
			// Pieces of an object.
			for _, part := range []string{"spec", "status", "data", "rules"} {
				if chance(r, 25) {
					delete(in, part)
				}
			}
			if spec, ok := in["spec"].(object); ok && chance(r, 50) {
				for _, part := range []string{"replicas", "selector", "template", "containers", "serviceName"} {
					if chance(r, 35) {
						delete(spec, part)
					}
				}
			}
		}
		var sent runtime.Object
		if now.Operation == "apply" {
			now.In = copiedObject(in)
			sent = &unstructured.Unstructured{Object: copiedObject(in)}
		} else {
			now.Force = false
			sent, now.In = typed(name, in)
		}
		result, ok := now.attemptTyped(managers[name+"|"+now.Subresource], base.DeepCopyObject(), sent)
		if !ok {
			continue
		}
		s.put(now)
		first = false
		if now.Error == "" {
			result.(metav1.Object).SetUID("u")
			live = result
		}
	}
}

func (s *step) attemptTyped(manager *managedfields.FieldManager, live, in runtime.Object) (result runtime.Object, ok bool) {
	defer func() {
		if recover() != nil {
			result, ok = nil, false
		}
	}()
	return s.write(manager, live, in, typedObject)
}
