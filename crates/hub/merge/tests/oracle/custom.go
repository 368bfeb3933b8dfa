package main

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"runtime/debug"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

const group = "berth.test"

var versions = []string{"v1", "v1beta1"}

// objectMeta is what the metadata of every object is to the library.
const objectMeta = `{"type":"object","properties":{
"annotations":{"type":"object","additionalProperties":{"type":"string"}},
"creationTimestamp":{"type":"string","format":"date-time"},
"deletionGracePeriodSeconds":{"type":"integer"},
"deletionTimestamp":{"type":"string","format":"date-time"},
"finalizers":{"type":"array","items":{"type":"string"},"x-kubernetes-list-type":"set","x-kubernetes-patch-strategy":"merge"},
"generateName":{"type":"string"},"generation":{"type":"integer"},
"labels":{"type":"object","additionalProperties":{"type":"string"}},
"managedFields":{"type":"array","items":{"type":"object"},"x-kubernetes-list-type":"atomic"},
"name":{"type":"string"},"namespace":{"type":"string"},
"ownerReferences":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["uid"],
 "items":{"type":"object","x-kubernetes-map-type":"atomic","properties":{"apiVersion":{"type":"string"},"blockOwnerDeletion":{"type":"boolean"},"controller":{"type":"boolean"},"kind":{"type":"string"},"name":{"type":"string"},"uid":{"type":"string"}}}},
"resourceVersion":{"type":"string"},"selfLink":{"type":"string"},"uid":{"type":"string"}}}`

// noConversion gives an object another version and nothing else.
type noConversion struct{}

func (noConversion) Convert(in, out, context any) error { return fmt.Errorf("not used") }
func (noConversion) ConvertFieldLabel(gvk schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}
func (noConversion) ConvertToVersion(in runtime.Object, gv runtime.GroupVersioner) (runtime.Object, error) {
	from := in.GetObjectKind().GroupVersionKind()
	to, ok := gv.KindForGroupVersionKinds([]schema.GroupVersionKind{from})
	if !ok {
		if asked, is := gv.(schema.GroupVersion); is {
			to = asked.WithKind(from.Kind)
		} else {
			return nil, runtime.NewNotRegisteredErrForTarget("oracle", nil, gv)
		}
	}
	for _, version := range versions {
		if to.Group == group && to.Version == version {
			out := in.DeepCopyObject()
			out.GetObjectKind().SetGroupVersionKind(to)
			return out, nil
		}
	}
	return nil, runtime.NewNotRegisteredErrForKind("oracle", to)
}

func (noConversion) Default(in runtime.Object) {}
func (noConversion) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	out := &unstructured.Unstructured{Object: object{}}
	out.SetGroupVersionKind(kind)
	return out, nil
}

func customConverter() managedfields.TypeConverter {
	text, err := os.ReadFile(filepath.Join(".", "thing.json"))
	check(err)
	models := map[string]*spec.Schema{}
	meta := &spec.Schema{}
	check(json.Unmarshal([]byte(objectMeta), meta))
	models["meta"] = meta
	for _, version := range versions {
		model := &spec.Schema{}
		check(json.Unmarshal(text, model))
		model.Properties["metadata"] = *spec.RefSchema("#/definitions/meta")
		model.AddExtension("x-kubernetes-group-version-kind", []any{object{"group": group, "version": version, "kind": "Thing"}})
		models[version+".Thing"] = model
	}
	converter, err := managedfields.NewTypeConverter(models, false)
	check(err)
	return converter
}

func customManager(converter managedfields.TypeConverter, version, subresource string) *managedfields.FieldManager {
	reset := map[fieldpath.APIVersion]fieldpath.Filter{}
	for _, known := range versions {
		paths := fieldpath.NewSet(fieldpath.MakePathOrDie("status"))
		if subresource == "status" {
			paths = fieldpath.NewSet(fieldpath.MakePathOrDie("metadata"), fieldpath.MakePathOrDie("spec"))
		}
		reset[fieldpath.APIVersion(group+"/"+known)] = fieldpath.NewExcludeSetFilter(paths)
	}
	kind := schema.GroupVersionKind{Group: group, Version: version, Kind: "Thing"}
	manager, err := managedfields.NewDefaultCRDFieldManager(converter, noConversion{}, noConversion{}, noConversion{}, kind, schema.GroupVersion{Group: group, Version: "v1"}, subresource, reset)
	check(err)
	return manager
}

func texts(r *rand.Rand, from ...string) []any {
	list := []any{}
	for _, text := range from {
		if chance(r, 40) {
			list = append(list, text)
		}
	}
	r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

func textMap(r *rand.Rand) object {
	out := object{}
	for _, name := range []string{"a", "b", "c"} {
		if chance(r, 40) {
			out[name] = pick(r, "1", "2")
		}
	}
	return out
}

func items(r *rand.Rand) []any {
	list := []any{}
	for _, name := range []string{"x", "y", "z", "w"} {
		if !chance(r, 40) {
			continue
		}
		item := object{"name": name}
		if chance(r, 50) {
			item["value"] = pick(r, "1", "2")
		}
		if chance(r, 30) {
			sub := object{}
			if chance(r, 60) {
				sub["a"] = pick(r, "1", "2")
			}
			if chance(r, 40) {
				sub["b"] = r.Intn(3)
			}
			item["sub"] = sub
		}
		if chance(r, 30) {
			item["tags"] = texts(r, "t", "u", "v")
		}
		if chance(r, 40) {
			ports := []any{}
			for _, port := range []int{80, 443, 9} {
				if chance(r, 50) {
					entry := object{"port": port}
					if chance(r, 60) {
						entry["protocol"] = pick(r, "TCP", "UDP")
					}
					if chance(r, 50) {
						entry["name"] = pick(r, "p", "q")
					}
					ports = append(ports, entry)
				}
			}
			item["ports"] = ports
		}
		list = append(list, item)
	}
	r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

// specField makes a value for a field of the schema.
func specField(r *rand.Rand, name string) any {
	switch name {
	case "name":
		return pick(r, "n", "o")
	case "count":
		return r.Intn(3)
	case "ratio":
		return pick(r, any(0.5), any(1), any(2.5))
	case "on":
		return chance(r, 50)
	case "port":
		return pick(r, any(80), any("http"))
	case "when":
		return pick(r, "2020-01-01T00:00:00Z", "2021-01-01T00:00:00Z")
	case "any":
		return pick(r, any("s"), any(1), any(object{"a": 1, "b": object{"c": "d"}}), any([]any{1, object{"a": 2}}), any(object{}), any(object{"l": []any{1, 2}}))
	case "free":
		return pick(r, object{"a": 1, "b": object{"c": "d"}}, object{"b": object{"e": []any{"f"}}}, object{})
	case "open":
		out := object{}
		if chance(r, 50) {
			out["k"] = pick(r, "1", "2")
		}
		if chance(r, 50) {
			out["in"] = object{"a": pick(r, "1", "2")}
		}
		if chance(r, 50) {
			out["unknown"] = pick(r, any("u"), any(object{"deep": 1}), any([]any{1}))
		}
		return out
	case "obj":
		out := object{}
		if chance(r, 50) {
			out["a"] = pick(r, "1", "2")
		}
		if chance(r, 60) {
			inner := object{}
			if chance(r, 50) {
				inner["c"] = pick(r, "1", "2")
			}
			if chance(r, 50) {
				inner["d"] = r.Intn(3)
			}
			out["b"] = inner
		}
		return out
	case "atomic":
		return pick(r, object{"x": "1"}, object{"x": "1", "y": 2}, object{"y": 3}, object{})
	case "labels", "selector":
		return textMap(r)
	case "entries":
		out := object{}
		for _, key := range []string{"e", "f"} {
			if chance(r, 50) {
				entry := object{}
				if chance(r, 60) {
					entry["p"] = pick(r, "1", "2")
				}
				if chance(r, 40) {
					entry["q"] = texts(r, "m", "n")
				}
				out[key] = entry
			}
		}
		return out
	case "set":
		return texts(r, "a", "b", "c", "d")
	case "numbers":
		list := []any{}
		for n := range 12 {
			if chance(r, 25) {
				list = append(list, n)
			}
		}
		return list
	case "list":
		return texts(r, "a", "b", "c")
	case "items":
		return items(r)
	case "whole":
		list := []any{}
		for id := range 3 {
			if chance(r, 50) {
				list = append(list, object{"id": id, "v": pick(r, "1", "2")})
			}
		}
		return list
	}
	panic(name)
}

var specFields = []string{"name", "count", "ratio", "on", "port", "when", "any", "free", "open", "obj", "atomic", "labels", "selector", "entries", "set", "numbers", "list", "items", "items", "whole"}

func thing(r *rand.Rand, version string, percent int) object {
	fields := object{}
	for _, name := range specFields {
		if chance(r, percent) {
			fields[name] = specField(r, name)
		}
	}
	metadata := object{"name": "t", "namespace": "n"}
	if chance(r, 40) {
		metadata["labels"] = textMap(r)
	}
	if chance(r, 15) {
		metadata["finalizers"] = texts(r, "f/1", "f/2", "f/3")
	}
	if chance(r, 15) {
		owners := []any{}
		for _, uid := range []string{"1", "2"} {
			if chance(r, 60) {
				owners = append(owners, object{"apiVersion": "v1", "kind": "Owner", "name": pick(r, "o", "p"), "uid": uid})
			}
		}
		metadata["ownerReferences"] = owners
	}
	out := object{"apiVersion": group + "/" + version, "kind": "Thing", "metadata": metadata}
	if len(fields) > 0 || chance(r, 30) {
		out["spec"] = fields
	}
	return out
}

func status(r *rand.Rand) object {
	out := object{}
	if chance(r, 60) {
		out["phase"] = pick(r, "A", "B")
	}
	if chance(r, 40) {
		out["ready"] = r.Intn(3)
	}
	if chance(r, 60) {
		conditions := []any{}
		for _, name := range []string{"Ready", "Bound"} {
			if chance(r, 60) {
				conditions = append(conditions, object{"type": name, "status": pick(r, "True", "False")})
			}
		}
		out["conditions"] = conditions
	}
	return out
}

// changed is the live object as a client would send it back after an edit.
func changed(r *rand.Rand, live object) object {
	out := copiedObject(live)
	fields, ok := out["spec"].(object)
	if !ok {
		fields = object{}
		out["spec"] = fields
	}
	for range 1 + r.Intn(3) {
		name := pick(r, specFields...)
		if _, has := fields[name]; has && chance(r, 40) {
			delete(fields, name)
		} else {
			fields[name] = specField(r, name)
		}
	}
	if chance(r, 20) {
		metadata := out["metadata"].(object)
		metadata["labels"] = textMap(r)
	}
	return out
}

// spoilt puts one mistake into a configuration.
func spoilt(r *rand.Rand, config object) {
	fields, ok := config["spec"].(object)
	if !ok {
		fields = object{}
		config["spec"] = fields
	}
	switch r.Intn(14) {
	case 0:
		fields["unknown"] = 1
	case 1:
		fields["count"] = pick(r, any("x"), any(true), any([]any{1}), any(object{"a": 1}))
	case 2:
		fields["name"] = pick(r, any(1.5), any(true), any([]any{"a"}), any(object{"a": "b"}))
	case 3:
		fields["on"] = pick(r, any(1), any("x"), any([]any{}))
	case 4:
		fields["set"] = []any{"a", "b", "a"}
	case 5:
		fields["set"] = []any{"a", pick(r, any(nil), any(object{}), any([]any{}))}
	case 6:
		fields["items"] = []any{object{"name": "x"}, object{"name": "x", "value": "1"}}
	case 7:
		fields["items"] = []any{pick(r, any(object{"value": "1"}), any(nil), any("x"))}
	case 8:
		fields["items"] = pick(r, any("x"), any(object{"name": "x"}), any(1))
	case 9:
		fields["obj"] = pick(r, any("x"), any([]any{1}), any(2))
	case 10:
		fields["when"] = pick(r, any([]any{"x"}), any(object{"y": 1}))
	case 11:
		config["metadata"].(object)["managedFields"] = []any{}
	case 12:
		fields["items"] = []any{object{"name": "x", "ports": []any{object{"port": 1}, object{"port": 1, "protocol": "TCP"}}}}
	case 13:
		config["apiVersion"] = group + "/v9"
	}
}

func asLive(value object) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: copiedObject(value)}
}

func customApplies(r *rand.Rand, s *sink) {
	converter := customConverter()
	managers := map[string]*managedfields.FieldManager{}
	for _, version := range versions {
		for _, subresource := range []string{"", "status"} {
			managers[version+"/"+subresource] = customManager(converter, version, subresource)
		}
	}
	for range scaled(275) {
		scenario(r, s, managers)
	}
}

const remembered = "kubectl.kubernetes.io/last-applied-configuration"

func scenario(r *rand.Rand, s *sink, managers map[string]*managedfields.FieldManager) {
	var live runtime.Object
	names := []string{"alice", "bob", "kubectl", "carol"}
	if chance(r, 10) {
		for n := range 12 {
			names = append(names, fmt.Sprintf("updater-%d", n))
		}
	}
	first := true
	length := 5 + r.Intn(4)
	if len(names) > 4 {
		length = 16
	}
	density := pick(r, 10, 20, 35)
	for n := range length {
		version := "v1"
		if chance(r, 12) {
			version = "v1beta1"
		}
		now := step{First: first, Manager: pick(r, names...), Version: group + "/" + version, Now: stepTime(n)}
		var in object
		base := live
		if live == nil {
			empty, _ := noConversion{}.New(schema.GroupVersionKind{Group: group, Version: version, Kind: "Thing"})
			base = empty
			in = thing(r, version, density)
			now.Operation = pick(r, "update", "apply")
		} else {
			current := unstructuredObject(live)
			current["apiVersion"] = group + "/" + version
			switch kind := r.Intn(100); {
			case kind < 25 || len(names) > 4:
				now.Operation = "update"
				in = changed(r, current)
			case kind < 35:
				now.Operation, now.Subresource = "update", "status"
				in = copiedObject(current)
				in["status"] = status(r)
			case kind < 42:
				now.Operation, now.Subresource = "apply", "status"
				in = object{"apiVersion": group + "/" + version, "kind": "Thing", "metadata": object{"name": "t", "namespace": "n"}, "status": status(r)}
			case kind < 45:
				// Entries edited by hand.
				now.Operation = "update"
				in = changed(r, current)
				metadata := in["metadata"].(object)
				metadata["managedFields"] = pick(r, any([]any{}), any([]any{object{}}), any(nil), any([]any{object{"manager": "m", "operation": "Update", "apiVersion": group + "/" + pick(r, "v1", "v7"), "fieldsType": "FieldsV1", "time": "2019-05-05T07:00:00+02:00", "fieldsV1": object{"f:spec": object{"f:name": object{}, "f:list": object{"i:0": object{}}, "x:y": object{}}}}}))
			case kind < 48:
				// Names of items that repeat.
				now.Operation = "update"
				in = changed(r, current)
				fields := in["spec"].(object)
				fields["items"] = append(items(r), object{"name": "x", "value": "1"}, object{"name": "x", "value": pick(r, "1", "2")})
			case kind < 52:
				// The annotation of a client that applies by itself.
				now.Operation, now.Manager = "update", "kubectl-client-side-apply"
				in = changed(r, current)
				config := copiedObject(in)
				takeEntries(config)
				delete(config, "status")
				delete(config["metadata"].(object), "annotations")
				in["metadata"].(object)["annotations"] = map[string]any{remembered: string(encode(config)) + "\n"}
			case kind < 56:
				now.Operation = "apply"
				in = thing(r, version, density)
				spoilt(r, in)
				now.Force = true
			default:
				now.Operation = "apply"
				in = thing(r, version, density)
				now.Force = chance(r, 55)
			}
		}
		in = copiedObject(in)
		now.In = in
		if live != nil && chance(r, 4) && now.Operation == "apply" {
			// An object nobody was recorded for.
			stripped := unstructuredObject(live)
			takeEntries(stripped)
			live, base = asLive(stripped), asLive(stripped)
			now.Live = stripped
		}
		// Reading a live object of another version is the caller's part.
		versioned := base.DeepCopyObject().(*unstructured.Unstructured)
		versioned.SetAPIVersion(group + "/" + version)
		result, ok := now.attempt(managers[version+"/"+now.Subresource], versioned, asLive(in))
		if !ok {
			continue
		}
		s.put(now)
		first = false
		if now.Error == "" {
			stored := result.(*unstructured.Unstructured)
			stored.SetUID("u")
			live = stored
		}
	}
}

func (s *step) attempt(manager *managedfields.FieldManager, live, in runtime.Object) (result runtime.Object, ok bool) {
	defer func() {
		if cause := recover(); cause != nil {
			fmt.Fprintln(os.Stderr, "library fell over:", cause, short(string(debug.Stack())))
			result, ok = nil, false
		}
	}()
	// The library gives the stored version back; the answer to a client is in the written one.
	return s.write(manager, live, in, func(obj runtime.Object) object {
		out := unstructuredObject(obj)
		out["apiVersion"] = s.Version
		return out
	})
}
