package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// next gives the next count events that are no bookmarks, as TYPE name.
func next(ctx context.Context, t *trial, events watch.Interface, count int) []string {
	var seen []string
	for len(seen) < count {
		select {
		case event, open := <-events.ResultChan():
			if !open {
				t.fail("the watch ended after %v", seen)
			}
			switch object := event.Object.(type) {
			case *metav1.Status:
				t.fail("the watch failed after %v: %v", seen, apierrors.FromObject(object))
			case metav1.Object:
				if event.Type != watch.Bookmark {
					seen = append(seen, fmt.Sprintf("%s %s", event.Type, object.GetName()))
				}
			}
		case <-ctx.Done():
			t.fail("after %v nothing more came, want %d events", seen, count)
		}
	}
	return seen
}

// watches: what happens, as it happens.
var watches = []check{
	{"a watch from a list sees everything after it, in order", func(ctx context.Context, t *trial) {
		maps := t.client.CoreV1().ConfigMaps(t.namespace)
		listed, err := maps.List(ctx, metav1.ListOptions{})
		t.must(err, "list")
		fill(ctx, t, 3)
		_, err = maps.Patch(ctx, "m-001", types.MergePatchType, []byte(`{"data":{"a":"b"}}`), metav1.PatchOptions{})
		t.must(err, "patch one")
		t.must(maps.Delete(ctx, "m-002", metav1.DeleteOptions{}), "delete one")
		events, err := maps.Watch(ctx, metav1.ListOptions{ResourceVersion: listed.ResourceVersion, FieldSelector: "metadata.name!=kube-root-ca.crt"})
		t.must(err, "watch")
		defer events.Stop()
		equal(t, "events", next(ctx, t, events, 5), []string{"ADDED m-000", "ADDED m-001", "ADDED m-002", "MODIFIED m-001", "DELETED m-002"})
	}},
	{"an object that leaves a selector is deleted for its watchers", func(ctx context.Context, t *trial) {
		maps := t.client.CoreV1().ConfigMaps(t.namespace)
		events, err := maps.Watch(ctx, metav1.ListOptions{LabelSelector: "colour=red"})
		t.must(err, "watch")
		defer events.Stop()
		_, err = maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: labelled("changing", map[string]string{"colour": "blue"})}, metav1.CreateOptions{})
		t.must(err, "create the config map")
		for _, colour := range []string{"red", "green", "red"} {
			_, err = maps.Patch(ctx, "changing", types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{"colour":%q}}}`, colour), metav1.PatchOptions{})
			t.must(err, "recolour it")
		}
		equal(t, "events", next(ctx, t, events, 3), []string{"ADDED changing", "DELETED changing", "ADDED changing"})
	}},
	{"a streaming list ends with a bookmark that says so", func(ctx context.Context, t *trial) {
		fill(ctx, t, 2)
		events, err := t.client.CoreV1().ConfigMaps(t.namespace).Watch(ctx, metav1.ListOptions{
			SendInitialEvents: pointer(true), AllowWatchBookmarks: true, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, LabelSelector: "third",
		})
		t.must(err, "watch")
		defer events.Stop()
		var seen []string
		for event := range events.ResultChan() {
			object, ok := event.Object.(*corev1.ConfigMap)
			if !ok {
				t.fail("got %s %v", event.Type, event.Object)
			}
			if event.Type == watch.Bookmark {
				equal(t, "end of the initial events", object.Annotations[metav1.InitialEventsAnnotationKey], "true")
				break
			}
			seen = append(seen, object.Name)
		}
		equal(t, "initial events", seen, []string{"m-000", "m-001"})
	}},
	{"a watch ends when its time is over", func(ctx context.Context, t *trial) {
		events, err := t.client.CoreV1().ConfigMaps(t.namespace).Watch(ctx, metav1.ListOptions{TimeoutSeconds: pointer(int64(1))})
		t.must(err, "watch")
		for event := range events.ResultChan() {
			if event.Type == watch.Error {
				t.fail("it ended with %v", event.Object)
			}
		}
		t.must(ctx.Err(), "see it end")
	}},
}
