package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/pager"
)

// fill makes count config maps, m-000 and on, every third of them labelled third=yes.
func fill(ctx context.Context, t *trial, count int) {
	for i := range count {
		labels := map[string]string{"third": "no"}
		if i%3 == 0 {
			labels["third"] = "yes"
		}
		sent := &corev1.ConfigMap{ObjectMeta: labelled(fmt.Sprintf("m-%03d", i), labels)}
		_, err := t.client.CoreV1().ConfigMaps(t.namespace).Create(ctx, sent, metav1.CreateOptions{})
		t.must(err, "create a config map")
	}
}

// lists: many objects at once.
var lists = []check{
	{"a list comes in pages that are of one moment", func(ctx context.Context, t *trial) {
		// Secrets, because nobody else makes one: every namespace is given a config map.
		secrets := t.client.CoreV1().Secrets(t.namespace)
		for i := range 10 {
			_, err := secrets.Create(ctx, &corev1.Secret{ObjectMeta: named(fmt.Sprintf("m-%03d", i))}, metav1.CreateOptions{})
			t.must(err, "create a secret")
		}
		first, err := secrets.List(ctx, metav1.ListOptions{Limit: 4})
		t.must(err, "list the first page")
		equal(t, "objects on the first page", len(first.Items), 4)
		equal(t, "objects to come", *first.RemainingItemCount, int64(6))
		t.must(secrets.Delete(ctx, "m-009", metav1.DeleteOptions{}), "delete one meanwhile")
		names := []string{}
		pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return secrets.List(ctx, options)
		})
		pages.PageSize = 4
		err = pages.EachListItem(ctx, metav1.ListOptions{Limit: 4, Continue: first.Continue}, func(object runtime.Object) error {
			names = append(names, object.(*corev1.Secret).Name)
			return nil
		})
		t.must(err, "list the other pages")
		equal(t, "objects on the other pages", names, []string{"m-004", "m-005", "m-006", "m-007", "m-008", "m-009"})
		_, err = secrets.List(ctx, metav1.ListOptions{Limit: 4, Continue: "nonsense"})
		t.refused(err, "a continue token that is none", "BadRequest", apierrors.IsBadRequest)
	}},
	{"a list is selected by labels and by fields", func(ctx context.Context, t *trial) {
		maps := t.client.CoreV1().ConfigMaps(t.namespace)
		fill(ctx, t, 7)
		for selector, want := range map[string]int{"third=yes": 3, "third!=yes": 4, "third in (yes,no)": 7, "third notin (yes)": 4, "!third": 0, "third": 7} {
			found, err := maps.List(ctx, metav1.ListOptions{LabelSelector: selector, FieldSelector: "metadata.name!=kube-root-ca.crt"})
			t.must(err, "list "+selector)
			equal(t, "objects with "+selector, len(found.Items), want)
		}
		_, err := maps.List(ctx, metav1.ListOptions{FieldSelector: "data.nothing=x"})
		t.refused(err, "a field that cannot be selected by", "BadRequest", apierrors.IsBadRequest)
		pods := t.client.CoreV1().Pods(t.namespace)
		for _, node := range []string{"node-1", "node-2"} {
			_, err := pods.Create(ctx, podOn(node, "on-"+node, nil), metav1.CreateOptions{})
			t.must(err, "create a pod")
		}
		found, err := pods.List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=node-2,status.phase!=Succeeded"})
		t.must(err, "list the pods of a node")
		equal(t, "pods on the node", len(found.Items), 1)
		equal(t, "pod on the node", found.Items[0].Name, "on-node-2")
	}},
	{"a list may be asked for as of a resource version", func(ctx context.Context, t *trial) {
		maps := t.client.CoreV1().ConfigMaps(t.namespace)
		fill(ctx, t, 3)
		before, err := maps.List(ctx, metav1.ListOptions{})
		t.must(err, "list")
		t.must(maps.Delete(ctx, "m-000", metav1.DeleteOptions{}), "delete one")
		exact, err := maps.List(ctx, metav1.ListOptions{ResourceVersion: before.ResourceVersion, ResourceVersionMatch: metav1.ResourceVersionMatchExact})
		t.must(err, "list as of before")
		equal(t, "objects before", len(exact.Items), len(before.Items))
		latest, err := maps.List(ctx, metav1.ListOptions{ResourceVersion: before.ResourceVersion, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan})
		t.must(err, "list not older than before")
		if len(latest.Items) > len(before.Items) {
			t.fail("%d objects, at most %d were ever there", len(latest.Items), len(before.Items))
		}
		_, err = maps.List(ctx, metav1.ListOptions{ResourceVersionMatch: metav1.ResourceVersionMatchExact})
		t.refused(err, "exactly no version", "Invalid", apierrors.IsInvalid)
	}},
	{"the metadata client sees metadata only", func(ctx context.Context, t *trial) {
		fill(ctx, t, 3)
		client, err := metadata.NewForConfig(t.config)
		t.must(err, "make a metadata client")
		maps := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace(t.namespace)
		found, err := maps.List(ctx, metav1.ListOptions{LabelSelector: "third"})
		t.must(err, "list metadata")
		equal(t, "objects", len(found.Items), 3)
		equal(t, "name", found.Items[0].Name, "m-000")
		one, err := maps.Get(ctx, "m-001", metav1.GetOptions{})
		t.must(err, "get metadata")
		equal(t, "label", one.Labels["third"], "no")
	}},
}
