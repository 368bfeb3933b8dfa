package main

import (
	"encoding/json"
	"math/rand"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// kinds are the built-in kinds of the vectors, by what they are called there.
var kinds = map[string]func() runtime.Object{
	"v1/Pod":              func() runtime.Object { return &corev1.Pod{} },
	"v1/ConfigMap":        func() runtime.Object { return &corev1.ConfigMap{} },
	"v1/ServiceAccount":   func() runtime.Object { return &corev1.ServiceAccount{} },
	"v1/Node":             func() runtime.Object { return &corev1.Node{} },
	"v1/Event":            func() runtime.Object { return &corev1.Event{} },
	"apps/v1/Deployment":  func() runtime.Object { return &appsv1.Deployment{} },
	"apps/v1/StatefulSet": func() runtime.Object { return &appsv1.StatefulSet{} },
	"rbac.authorization.k8s.io/v1/ClusterRole": func() runtime.Object { return &rbacv1.ClusterRole{} },
}

var kindNames = []string{"v1/Pod", "v1/Pod", "v1/ConfigMap", "v1/ServiceAccount", "v1/Node", "v1/Event", "apps/v1/Deployment", "apps/v1/Deployment", "apps/v1/StatefulSet", "rbac.authorization.k8s.io/v1/ClusterRole"}

func splitKind(name string) (version, kind string) {
	for at := len(name) - 1; ; at-- {
		if name[at] == '/' {
			return name[:at], name[at+1:]
		}
	}
}

func maybe(r *rand.Rand, percent int, into object, name string, value func() any) {
	if chance(r, percent) {
		into[name] = value()
	}
}

func environment(r *rand.Rand) any {
	list := []any{}
	for _, name := range []string{"A", "B", "C"} {
		if chance(r, 45) {
			entry := object{"name": name}
			if chance(r, 70) {
				entry["value"] = pick(r, "1", "2")
			} else {
				entry["valueFrom"] = object{"fieldRef": object{"fieldPath": "metadata.name"}}
			}
			list = append(list, entry)
		}
	}
	r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

func containers(r *rand.Rand) any {
	list := []any{}
	for _, name := range []string{"app", "side", "log"} {
		if !chance(r, 55) {
			continue
		}
		entry := object{"name": name, "image": pick(r, "i:1", "i:2")}
		maybe(r, 40, entry, "env", func() any { return environment(r) })
		maybe(r, 20, entry, "args", func() any { return texts(r, "-a", "-b") })
		maybe(r, 40, entry, "ports", func() any {
			ports := []any{}
			for _, port := range []int{80, 443, 9000} {
				if chance(r, 45) {
					entry := object{"containerPort": port, "protocol": pick(r, "TCP", "UDP")}
					maybe(r, 40, entry, "name", func() any { return pick(r, "web", "admin") })
					ports = append(ports, entry)
				}
			}
			return ports
		})
		maybe(r, 30, entry, "resources", func() any { return object{"limits": object{"cpu": pick(r, "1", "2")}} })
		maybe(r, 25, entry, "volumeMounts", func() any {
			return []any{object{"name": "data", "mountPath": pick(r, "/a", "/b")}}
		})
		maybe(r, 15, entry, "livenessProbe", func() any {
			return object{"httpGet": object{"path": pick(r, "/x", "/y"), "port": pick(r, any(80), any("web"))}}
		})
		list = append(list, entry)
	}
	if len(list) == 0 {
		// An empty list that is always written reads back as none at all from the server's store.
		list = append(list, object{"name": "app", "image": "i:1"})
	}
	r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

func podSpec(r *rand.Rand) any {
	out := object{"containers": containers(r)}
	maybe(r, 30, out, "volumes", func() any {
		list := []any{}
		for _, name := range []string{"data", "tmp"} {
			if chance(r, 60) {
				entry := object{"name": name}
				switch r.Intn(3) {
				case 0:
					entry["emptyDir"] = object{}
				case 1:
					entry["configMap"] = object{"name": pick(r, "c", "d")}
				}
				list = append(list, entry)
			}
		}
		return list
	})
	maybe(r, 30, out, "nodeSelector", func() any { return textMap(r) })
	maybe(r, 30, out, "tolerations", func() any { return []any{object{"key": pick(r, "k", "l"), "operator": "Exists"}} })
	maybe(r, 30, out, "imagePullSecrets", func() any {
		list := []any{}
		for _, name := range []string{"s", "t"} {
			if chance(r, 60) {
				list = append(list, object{"name": name})
			}
		}
		return list
	})
	maybe(r, 25, out, "topologySpreadConstraints", func() any {
		return []any{object{"topologyKey": pick(r, "zone", "host"), "maxSkew": 1 + r.Intn(2), "whenUnsatisfiable": pick(r, "DoNotSchedule", "ScheduleAnyway")}}
	})
	maybe(r, 20, out, "hostNetwork", func() any { return chance(r, 50) })
	maybe(r, 20, out, "securityContext", func() any { return object{"runAsUser": r.Intn(3)} })
	return out
}

func builtinMetadata(r *rand.Rand) object {
	out := object{"name": "x", "namespace": "n"}
	maybe(r, 45, out, "labels", func() any { return textMap(r) })
	maybe(r, 25, out, "annotations", func() any { return textMap(r) })
	maybe(r, 25, out, "finalizers", func() any { return texts(r, "f/1", "f/2", "f/3", "f/4") })
	maybe(r, 20, out, "ownerReferences", func() any {
		list := []any{}
		for _, uid := range []string{"1", "2"} {
			if chance(r, 60) {
				list = append(list, object{"apiVersion": "v1", "kind": "Owner", "name": pick(r, "o", "p"), "uid": uid})
			}
		}
		return list
	})
	return out
}

func builtin(r *rand.Rand, name string) object {
	version, kind := splitKind(name)
	out := object{"apiVersion": version, "kind": kind, "metadata": builtinMetadata(r)}
	switch kind {
	case "Pod":
		out["spec"] = podSpec(r)
		maybe(r, 30, out, "status", func() any {
			status := object{"phase": pick(r, "Pending", "Running")}
			maybe(r, 60, status, "conditions", func() any {
				list := []any{}
				for _, name := range []string{"Ready", "Initialized"} {
					if chance(r, 60) {
						list = append(list, object{"type": name, "status": pick(r, "True", "False")})
					}
				}
				return list
			})
			maybe(r, 40, status, "podIPs", func() any { return []any{object{"ip": pick(r, "10.0.0.1", "10.0.0.2")}} })
			maybe(r, 40, status, "hostIPs", func() any { return []any{object{"ip": pick(r, "10.0.0.1", "10.0.0.2")}} })
			return status
		})
	case "ConfigMap":
		maybe(r, 70, out, "data", func() any { return textMap(r) })
		maybe(r, 20, out, "immutable", func() any { return chance(r, 50) })
	case "ServiceAccount":
		maybe(r, 60, out, "secrets", func() any {
			list := []any{}
			for _, name := range []string{"s", "t", "u"} {
				if chance(r, 50) {
					list = append(list, object{"name": name})
				}
			}
			return list
		})
		maybe(r, 40, out, "imagePullSecrets", func() any { return []any{object{"name": pick(r, "s", "t")}} })
	case "Node":
		delete(out["metadata"].(object), "namespace")
		out["spec"] = object{}
		maybe(r, 50, out["spec"].(object), "taints", func() any {
			return []any{object{"key": pick(r, "k", "l"), "effect": pick(r, "NoSchedule", "NoExecute")}}
		})
		maybe(r, 40, out["spec"].(object), "podCIDRs", func() any { return texts(r, "10.0.0.0/24", "10.0.1.0/24", "fd00::/64") })
		maybe(r, 50, out, "status", func() any {
			status := object{}
			maybe(r, 60, status, "capacity", func() any { return object{"cpu": pick(r, "1", "2"), "memory": "1Gi"} })
			maybe(r, 60, status, "addresses", func() any {
				list := []any{}
				for _, name := range []string{"InternalIP", "Hostname"} {
					if chance(r, 60) {
						list = append(list, object{"type": name, "address": pick(r, "a", "b")})
					}
				}
				return list
			})
			return status
		})
	case "Event":
		out["involvedObject"] = object{"kind": "Pod", "name": pick(r, "p", "q")}
		out["reason"] = pick(r, "A", "B")
		maybe(r, 60, out, "message", func() any { return pick(r, "m", "n") })
		maybe(r, 50, out, "count", func() any { return r.Intn(3) })
		maybe(r, 40, out, "source", func() any { return object{"component": pick(r, "c", "d")} })
	case "Deployment", "StatefulSet":
		template := object{"metadata": object{"labels": object{"app": pick(r, "a", "b")}}, "spec": podSpec(r)}
		spec := object{"selector": object{"matchLabels": object{"app": pick(r, "a", "b")}}, "template": template}
		maybe(r, 60, spec, "replicas", func() any { return r.Intn(4) })
		if kind == "Deployment" {
			maybe(r, 40, spec, "strategy", func() any {
				if chance(r, 40) {
					return object{"type": "Recreate"}
				}
				return object{"type": "RollingUpdate", "rollingUpdate": object{"maxSurge": pick(r, any(1), any("25%"))}}
			})
		} else {
			spec["serviceName"] = pick(r, "s", "t")
		}
		out["spec"] = spec
	case "ClusterRole":
		delete(out["metadata"].(object), "namespace")
		maybe(r, 70, out, "rules", func() any {
			return []any{object{"apiGroups": []any{""}, "resources": []any{pick(r, "pods", "nodes")}, "verbs": []any{"get"}}}
		})
		maybe(r, 30, out, "aggregationRule", func() any {
			return object{"clusterRoleSelectors": []any{object{"matchLabels": textMap(r)}}}
		})
	}
	return out
}

// typed reads an object as its kind, and gives its JSON as the server has it.
func typed(name string, value object) (runtime.Object, object) {
	out := kinds[name]()
	check(json.Unmarshal(encode(value), out))
	return out, copied(raw(encode(out))).(object)
}

// meddle puts directives and mistakes into a patch.
func meddle(r *rand.Rand, name string, patch object) {
	path := []string{"spec"}
	if name == "apps/v1/Deployment" || name == "apps/v1/StatefulSet" {
		path = []string{"spec", "template", "spec"}
	}
	inner := patch
	for _, part := range path {
		next, ok := inner[part].(object)
		if !ok {
			next = object{}
			inner[part] = next
		}
		inner = next
	}
	metadata, ok := patch["metadata"].(object)
	if !ok {
		metadata = object{}
		patch["metadata"] = metadata
	}
	list, _ := inner["containers"].([]any)
	switch r.Intn(26) {
	case 0:
		metadata["$patch"] = pick(r, any("replace"), any("delete"), any("merge"), any("frob"), any(1))
	case 1:
		inner["containers"] = append(list, object{"name": pick(r, "app", "side", "gone"), "$patch": "delete"})
	case 2:
		inner["containers"] = append(list, object{"$patch": pick(r, "replace", "replace", "merge", "frob")})
	case 3:
		inner["containers"] = append(list, object{"image": "nameless"})
	case 4:
		inner["containers"] = append(list, object{"$patch": "delete"})
	case 5:
		metadata["$deleteFromPrimitiveList/finalizers"] = texts(r, "f/1", "f/2", "f/9")
	case 6:
		metadata["$setElementOrder/finalizers"] = texts(r, "f/1", "f/2", "f/3", "f/4")
	case 7:
		metadata["finalizers"] = texts(r, "f/3", "f/2", "f/5")
		metadata["$setElementOrder/finalizers"] = texts(r, "f/5", "f/3", "f/2", "f/1")
	case 8:
		order := []any{}
		for _, name := range []string{"log", "side", "app"} {
			if chance(r, 80) {
				order = append(order, object{"name": name})
			}
		}
		inner["$setElementOrder/containers"] = order
	case 9:
		inner["$retainKeys"] = texts(r, "containers", "volumes", "nodeSelector", "hostNetwork")
	case 10:
		spec, _ := patch["spec"].(object)
		spec["strategy"] = object{"type": "Recreate", "$retainKeys": pick(r, any([]any{"type"}), any([]any{}), any("type"))}
	case 11:
		inner["volumes"] = []any{object{"name": "data", "emptyDir": object{}, "$retainKeys": []any{"name", "emptyDir"}}}
	case 12:
		metadata["labels"] = pick(r, any(nil), any(object{"a": nil, "z": "1"}), any(object{"$patch": "replace", "z": "1", "y": nil}))
	case 13:
		inner["containers"] = []any{object{"name": "app", "env": []any{object{"name": "A", "value": nil}, object{"name": "Z", "value": "1"}}}}
	case 14:
		inner["containers"] = []any{"app"}
	case 15:
		inner["containers"] = []any{[]any{"app"}}
	case 16:
		metadata["finalizers"] = []any{"f/1", 1}
	case 17:
		metadata["$setElementOrder/finalizers"] = "x"
	case 18:
		metadata["$setElementOrder"] = []any{"x"}
	case 19:
		metadata["$deleteFromPrimitiveList"] = []any{"x"}
	case 20:
		inner["containers"] = pick(r, any(nil), any("x"), any(object{"name": "app"}))
	case 21:
		inner["nodeSelector"] = object{"a": object{"b": "c"}}
	case 22:
		inner["tolerations"] = []any{object{"$patch": "replace"}, object{"key": "q"}}
	case 23:
		inner["containers"] = []any{object{"name": "new", "image": "i", "env": nil, "ports": []any{object{"containerPort": 1, "$patch": "delete"}}}}
	case 24:
		patch["$patch"] = pick(r, "replace", "delete")
	case 25:
		inner["containers"] = []any{object{"name": "app", "ports": []any{object{"containerPort": 80, "name": "z"}, object{"containerPort": 80.5}}}}
	}
}

func strategicPatches(r *rand.Rand, s *sink) {
	for range scaled(1200) {
		name := pick(r, kindNames...)
		current, original := typed(name, builtin(r, name))
		var patch object
		if chance(r, 60) {
			_, modified := typed(name, builtin(r, name))
			made, err := strategicpatch.CreateTwoWayMergePatch(encode(original), encode(modified), kinds[name]())
			if err != nil {
				continue
			}
			patch = copied(raw(made)).(object)
		} else {
			patch = builtin(r, name)
			delete(patch, "apiVersion")
			delete(patch, "kind")
			if chance(r, 50) {
				delete(patch, "metadata")
			}
			if chance(r, 50) {
				delete(patch, "spec")
			}
		}
		if chance(r, 65) {
			meddle(r, name, patch)
		}
		vector := object{"k": name, "t": original, "p": copied(patch)}
		// The library walks fields in no order; where that shows, nothing can be said.
		first, stable := "", true
		for range 24 {
			again := object{}
			record(again, func() ([]byte, error) { return strategic(name, current, patch) })
			if text := string(encode(again)); first == "" {
				first = text
			} else if text != first {
				stable = false
			}
		}
		if stable && record(vector, func() ([]byte, error) { return strategic(name, current, patch) }) {
			s.put(vector)
		}
	}
}

func strategic(name string, current runtime.Object, patch object) ([]byte, error) {
	live, err := runtime.DefaultUnstructuredConverter.ToUnstructured(current)
	check(err)
	result, err := strategicpatch.StrategicMergeMapPatch(live, copiedObject(patch), kinds[name]())
	if err != nil {
		return nil, err
	}
	return encode(result), nil
}
