package main

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
)

// definition is a CustomResourceDefinition of group, whose name is the trial's own so that trials do not meet.
func definition(group string) *unstructured.Unstructured {
	column := func(name, kind, path string) any { return map[string]any{"name": name, "type": kind, "jsonPath": path} }
	integer := func(more map[string]any) any {
		more["type"] = "integer"
		return more
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1",
		"kind":       "CustomResourceDefinition",
		"metadata":   map[string]any{"name": "ships." + group},
		"spec": map[string]any{
			"group": group,
			"scope": "Namespaced",
			"names": map[string]any{"plural": "ships", "singular": "ship", "kind": "Ship", "listKind": "ShipList", "shortNames": []any{"sh"}},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true,
				"subresources": map[string]any{
					"status": map[string]any{},
					"scale":  map[string]any{"specReplicasPath": ".spec.crew", "statusReplicasPath": ".status.aboard"},
				},
				"additionalPrinterColumns": []any{column("Crew", "integer", ".spec.crew")},
				"schema": map[string]any{"openAPIV3Schema": map[string]any{
					"type": "object",
					"properties": map[string]any{
						"spec": map[string]any{
							"type":     "object",
							"required": []any{"harbour"},
							"properties": map[string]any{
								"harbour": map[string]any{"type": "string", "minLength": int64(1)},
								"crew":    integer(map[string]any{"default": int64(3), "minimum": int64(1)}),
								"berths":  integer(map[string]any{}),
								"cargo": map[string]any{
									"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": []any{"name"},
									"items": map[string]any{"type": "object", "required": []any{"name"}, "properties": map[string]any{
										"name": map[string]any{"type": "string"}, "tons": integer(map[string]any{}),
									}},
								},
							},
							"x-kubernetes-validations": []any{map[string]any{
								"rule": "!has(self.berths) || self.berths >= self.crew", "message": "every sailor needs a berth",
							}},
						},
						"status": map[string]any{"type": "object", "properties": map[string]any{
							"aboard": integer(map[string]any{}), "phase": map[string]any{"type": "string"},
						}},
					},
				}},
			}},
		},
	}}
}

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// harbour defines ships in a group of the trial's own and gives a client of them and of everything.
func harbour(ctx context.Context, t *trial) (schema.GroupVersionResource, dynamic.Interface, func()) {
	client, err := dynamic.NewForConfig(t.config)
	t.must(err, "make a dynamic client")
	group := t.namespace + ".berth.dev"
	_, err = client.Resource(definitions).Create(ctx, definition(group), metav1.CreateOptions{})
	t.must(err, "define ships")
	t.eventually(ctx, "the definition", func() string {
		found, err := client.Resource(definitions).Get(ctx, "ships."+group, metav1.GetOptions{})
		t.must(err, "get the definition")
		conditions, _, _ := unstructured.NestedSlice(found.Object, "status", "conditions")
		for _, condition := range conditions {
			fields := condition.(map[string]any)
			if fields["type"] == "Established" && fields["status"] == "True" {
				return ""
			}
		}
		return fmt.Sprintf("is not established: %v", conditions)
	})
	resource := schema.GroupVersionResource{Group: group, Version: "v1", Resource: "ships"}
	// Established is what the definition says; the server's other parts follow within moments.
	t.eventually(ctx, "ships", func() string {
		if _, err := client.Resource(resource).List(ctx, metav1.ListOptions{}); err != nil {
			return err.Error()
		}
		return ""
	})
	return resource, client, func() {
		_ = client.Resource(definitions).Delete(context.WithoutCancel(ctx), "ships."+group, metav1.DeleteOptions{})
	}
}

func ship(group, name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": group + "/v1", "kind": "Ship", "metadata": map[string]any{"name": name}, "spec": spec,
	}}
}

func field(object *unstructured.Unstructured, path string) any {
	value, _, _ := unstructured.NestedFieldNoCopy(object.Object, strings.Split(path, ".")...)
	return value
}

// custom: a kind of one's own, through the dynamic client.
var custom = []check{
	{"a custom resource is defaulted, pruned, validated and counted", func(ctx context.Context, t *trial) {
		resource, client, remove := harbour(ctx, t)
		defer remove()
		ships := client.Resource(resource).Namespace(t.namespace)
		made, err := ships.Create(ctx, ship(resource.Group, "gorch", map[string]any{"harbour": "Kiel", "sails": "23"}), metav1.CreateOptions{})
		t.must(err, "create a ship")
		equal(t, "spec", field(made, "spec"), any(map[string]any{"harbour": "Kiel", "crew": int64(3)}))
		equal(t, "generation", made.GetGeneration(), int64(1))
		for what, spec := range map[string]map[string]any{
			"a crew of none":         {"harbour": "Kiel", "crew": int64(0)},
			"a ship without harbour": {},
			"a crew of words":        {"harbour": "Kiel", "crew": "many"},
			"too few berths":         {"harbour": "Kiel", "crew": int64(5), "berths": int64(4)},
		} {
			_, err := ships.Create(ctx, ship(resource.Group, "wreck", spec), metav1.CreateOptions{})
			t.refused(err, what, "Invalid", apierrors.IsInvalid)
		}
		_, err = ships.Create(ctx, ship(resource.Group, "strict", map[string]any{"harbour": "Kiel", "sails": "23"}), metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
		t.refused(err, "an unknown field, strictly", "BadRequest", apierrors.IsBadRequest)
		made.Object["status"] = map[string]any{"aboard": int64(2)}
		t.must(unstructured.SetNestedField(made.Object, int64(9), "spec", "crew"), "change the crew")
		made, err = ships.UpdateStatus(ctx, made, metav1.UpdateOptions{})
		t.must(err, "update the status")
		equal(t, "crew written through the status", field(made, "spec.crew"), any(int64(3)))
		equal(t, "aboard", field(made, "status.aboard"), any(int64(2)))
		equal(t, "generation", made.GetGeneration(), int64(1))
		made, err = ships.Patch(ctx, "gorch", types.MergePatchType, []byte(`{"spec":{"crew":4},"status":{"aboard":7}}`), metav1.PatchOptions{})
		t.must(err, "patch the crew")
		equal(t, "generation", made.GetGeneration(), int64(2))
		equal(t, "aboard written through the spec", field(made, "status.aboard"), any(int64(2)))
		scale, err := ships.Get(ctx, "gorch", metav1.GetOptions{}, "scale")
		t.must(err, "get the scale")
		equal(t, "scale", field(scale, "spec.replicas"), any(int64(4)))
		_, err = ships.Patch(ctx, "gorch", types.StrategicMergePatchType, []byte(`{}`), metav1.PatchOptions{})
		t.refused(err, "a strategic patch", "UnsupportedMediaType", apierrors.IsUnsupportedMediaType)
	}},
	{"a custom resource is applied, its lists merged by key", func(ctx context.Context, t *trial) {
		resource, client, remove := harbour(ctx, t)
		defer remove()
		ships := client.Resource(resource).Namespace(t.namespace)
		cargo := func(name string, tons int64) []any { return []any{map[string]any{"name": name, "tons": tons}} }
		_, err := ships.Apply(ctx, "barge", ship(resource.Group, "barge", map[string]any{"harbour": "Kiel", "cargo": cargo("coal", 5)}), metav1.ApplyOptions{FieldManager: "first"})
		t.must(err, "apply as first")
		made, err := ships.Apply(ctx, "barge", ship(resource.Group, "barge", map[string]any{"cargo": cargo("iron", 7)}), metav1.ApplyOptions{FieldManager: "second"})
		t.must(err, "apply as second")
		equal(t, "cargo", field(made, "spec.cargo"), any(append(cargo("coal", 5), cargo("iron", 7)...)))
		_, err = ships.Apply(ctx, "barge", ship(resource.Group, "barge", map[string]any{"cargo": cargo("coal", 6)}), metav1.ApplyOptions{FieldManager: "second"})
		t.refused(err, "changing another's cargo", "Conflict", apierrors.IsConflict)
		if !strings.Contains(err.Error(), `.spec.cargo[name="coal"].tons`) {
			t.fail("the conflict reads %q", err)
		}
	}},
	{"an informer follows a custom resource", func(ctx context.Context, t *trial) {
		resource, client, remove := harbour(ctx, t)
		defer remove()
		ships := client.Resource(resource).Namespace(t.namespace)
		factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, t.namespace, nil)
		informer, diary := factory.ForResource(resource).Informer(), &diary{}
		_, err := informer.AddEventHandler(diary.handler())
		t.must(err, "add a handler")
		factory.Start(ctx.Done())
		if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			t.fail("the informer did not synchronise")
		}
		_, err = ships.Create(ctx, ship(resource.Group, "gorch", map[string]any{"harbour": "Kiel"}), metav1.CreateOptions{})
		t.must(err, "create a ship")
		_, err = ships.Patch(ctx, "gorch", types.JSONPatchType, []byte(`[{"op":"replace","path":"/spec/crew","value":4}]`), metav1.PatchOptions{})
		t.must(err, "patch it")
		t.must(ships.Delete(ctx, "gorch", metav1.DeleteOptions{}), "delete it")
		diary.has(ctx, t, "add gorch", "update gorch", "delete gorch")
	}},
	{"a definition takes its objects with it", func(ctx context.Context, t *trial) {
		resource, client, _ := harbour(ctx, t)
		ships := client.Resource(resource).Namespace(t.namespace)
		_, err := ships.Create(ctx, ship(resource.Group, "gorch", map[string]any{"harbour": "Kiel"}), metav1.CreateOptions{})
		t.must(err, "create a ship")
		t.must(client.Resource(definitions).Delete(ctx, "ships."+resource.Group, metav1.DeleteOptions{}), "delete the definition")
		t.eventually(ctx, "the definition", func() string {
			_, err := client.Resource(definitions).Get(ctx, "ships."+resource.Group, metav1.GetOptions{})
			if !apierrors.IsNotFound(err) {
				return fmt.Sprintf("is still there (%v)", err)
			}
			return ""
		})
		t.eventually(ctx, "its objects", func() string {
			_, err := ships.Get(ctx, "gorch", metav1.GetOptions{})
			if !apierrors.IsNotFound(err) {
				return fmt.Sprintf("are still there (%v)", err)
			}
			return ""
		})
	}},
}
