package main

import (
	"context"
	"encoding/json"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/restmapper"
)

// describing: what the server says it has.
var describing = []check{
	{"discovery lists groups, resources, verbs and the version", func(_ context.Context, t *trial) {
		client, err := discovery.NewDiscoveryClientForConfig(t.config)
		t.must(err, "make a discovery client")
		version, err := client.ServerVersion()
		t.must(err, "get the version")
		equal(t, "major version", version.Major, "1")
		groups, resources, err := client.ServerGroupsAndResources()
		t.must(err, "discover")
		have := map[string]bool{}
		for _, group := range groups {
			have[group.Name] = true
		}
		for _, group := range []string{"", "apps", "policy", "coordination.k8s.io", "events.k8s.io", "rbac.authorization.k8s.io", "apiextensions.k8s.io", "authorization.k8s.io", "authentication.k8s.io"} {
			if !have[group] {
				t.fail("group %q is missing", group)
			}
		}
		verbs := map[string]string{}
		for _, list := range resources {
			for _, resource := range list.APIResources {
				text, err := json.Marshal(resource.Verbs)
				t.must(err, "write the verbs")
				verbs[list.GroupVersion+"/"+resource.Name] = string(text)
			}
		}
		all := `["create","delete","deletecollection","get","list","patch","update","watch"]`
		for resource, want := range map[string]string{
			"v1/configmaps": all, "apps/v1/deployments": all, "v1/pods/status": `["get","patch","update"]`, "v1/pods/eviction": `["create"]`,
			"apps/v1/deployments/scale": `["get","patch","update"]`, "v1/pods/binding": `["create"]`, "v1/serviceaccounts/token": `["create"]`,
		} {
			equal(t, "verbs of "+resource, verbs[resource], want)
		}
	}},
	{"a mapper finds resources by kind and by short name", func(ctx context.Context, t *trial) {
		resource, _, remove := harbour(ctx, t)
		defer remove()
		client, err := discovery.NewDiscoveryClientForConfig(t.config)
		t.must(err, "make a discovery client")
		cached := memory.NewMemCacheClient(client)
		mapper := restmapper.NewDeferredDiscoveryRESTMapper(cached)
		mapping, err := mapper.RESTMapping(schema.GroupKind{Group: "apps", Kind: "Deployment"})
		t.must(err, "map Deployment")
		equal(t, "resource", mapping.Resource, schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"})
		equal(t, "scope", mapping.Scope.Name(), meta.RESTScopeNameNamespace)
		mapping, err = mapper.RESTMapping(schema.GroupKind{Kind: "Node"})
		t.must(err, "map Node")
		equal(t, "scope", mapping.Scope.Name(), meta.RESTScopeNameRoot)
		t.eventually(ctx, "the mapping of Ship", func() string {
			mapper.Reset()
			mapping, err := mapper.RESTMapping(schema.GroupKind{Group: resource.Group, Kind: "Ship"})
			if err != nil {
				return err.Error()
			}
			equal(t, "resource", mapping.Resource, resource)
			return ""
		})
		short := restmapper.NewShortcutExpander(mapper, cached, nil)
		for name, want := range map[string]string{"po": "pods", "deploy": "deployments", "pdb": "poddisruptionbudgets", "sa": "serviceaccounts", "sh": "ships"} {
			found, err := short.ResourceFor(schema.GroupVersionResource{Resource: name})
			t.must(err, "expand "+name)
			equal(t, "short name "+name, found.Resource, want)
		}
	}},
	{"schemas are served by group and version", func(_ context.Context, t *trial) {
		client, err := discovery.NewDiscoveryClientForConfig(t.config)
		t.must(err, "make a discovery client")
		paths, err := client.OpenAPIV3().Paths()
		t.must(err, "list the schemas")
		for path, kind := range map[string]string{"api/v1": "io.k8s.api.core.v1.Pod", "apis/apps/v1": "io.k8s.api.apps.v1.Deployment"} {
			group, found := paths[path]
			if !found {
				t.fail("no schema of %s", path)
			}
			text, err := group.Schema("application/json")
			t.must(err, "get the schema of "+path)
			var document struct {
				Components struct{ Schemas map[string]any }
			}
			t.must(json.Unmarshal(text, &document), "read the schema of "+path)
			if document.Components.Schemas[kind] == nil {
				t.fail("the schema of %s lacks %s", path, kind)
			}
		}
	}},
}
