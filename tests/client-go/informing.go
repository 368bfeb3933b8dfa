package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// wire is what goes over a client's connections, and the means to cut them.
type wire struct {
	mutex       sync.Mutex
	connections []net.Conn
	requests    []string
}

// through has config's requests noted and its connections kept at hand.
func (w *wire) through(config *rest.Config) {
	dialer := &net.Dialer{}
	config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		connection, err := dialer.DialContext(ctx, network, address)
		if err == nil {
			w.mutex.Lock()
			defer w.mutex.Unlock()
			w.connections = append(w.connections, connection)
		}
		return connection, err
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return noted{w, next} })
}

type noted struct {
	*wire
	next http.RoundTripper
}

func (n noted) RoundTrip(request *http.Request) (*http.Response, error) {
	query := request.URL.Query()
	kind := "list"
	switch {
	case query.Get("sendInitialEvents") == "true":
		kind = "streaming list"
	case query.Get("watch") != "":
		kind = "watch"
	}
	n.mutex.Lock()
	n.requests = append(n.requests, kind)
	n.mutex.Unlock()
	return n.next.RoundTrip(request)
}

func (w *wire) cut() {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	for _, connection := range w.connections {
		_ = connection.Close()
	}
	w.connections = nil
}

// seen is the requests since the last call.
func (w *wire) seen() []string {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	seen := w.requests
	w.requests = nil
	return seen
}

// diary notes what an informer tells its handler.
type diary struct {
	mutex   sync.Mutex
	entries []string
}

func (d *diary) note(what string, object any) {
	if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = gone.Obj
	}
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.entries = append(d.entries, what+" "+object.(metav1.Object).GetName())
}

func (d *diary) handler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { d.note("add", object) },
		UpdateFunc: func(before, after any) {
			if before.(metav1.Object).GetResourceVersion() != after.(metav1.Object).GetResourceVersion() {
				d.note("update", after)
			}
		},
		DeleteFunc: func(object any) { d.note("delete", object) },
	}
}

// has awaits exactly these entries.
func (d *diary) has(ctx context.Context, t *trial, want ...string) {
	t.eventually(ctx, "what the informer tells", func() string {
		d.mutex.Lock()
		defer d.mutex.Unlock()
		if fmt.Sprint(d.entries) != fmt.Sprint(want) {
			return fmt.Sprintf("got %q, want %q", d.entries, want)
		}
		return ""
	})
}

// follow starts an informer on the config maps of the trial's namespace that match selector, and waits until it has
// synchronised.
func follow(ctx context.Context, t *trial, w *wire, selector string) (*diary, cache.SharedIndexInformer) {
	factory := informers.NewSharedInformerFactoryWithOptions(t.typed(w.through), 0, informers.WithNamespace(t.namespace),
		informers.WithTweakListOptions(func(options *metav1.ListOptions) { options.LabelSelector = selector }))
	informer, diary := factory.Core().V1().ConfigMaps().Informer(), &diary{}
	_, err := informer.AddEventHandler(diary.handler())
	t.must(err, "add a handler")
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		t.fail("the informer did not synchronise; its requests: %q", w.seen())
	}
	return diary, informer
}

// informing: what every controller in Go stands on.
var informing = []check{
	{"an informer synchronises by a streaming list and sees add, update and delete", func(ctx context.Context, t *trial) {
		maps, wire := t.client.CoreV1().ConfigMaps(t.namespace), &wire{}
		fill(ctx, t, 1)
		diary, informer := follow(ctx, t, wire, "third")
		equal(t, "requests until synchronised", wire.seen(), []string{"streaming list"})
		diary.has(ctx, t, "add m-000")
		_, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: labelled("new", map[string]string{"third": "new"})}, metav1.CreateOptions{})
		t.must(err, "create one")
		_, err = maps.Patch(ctx, "new", types.MergePatchType, []byte(`{"data":{"a":"b"}}`), metav1.PatchOptions{})
		t.must(err, "patch it")
		t.must(maps.Delete(ctx, "new", metav1.DeleteOptions{}), "delete it")
		diary.has(ctx, t, "add m-000", "add new", "update new", "delete new")
		equal(t, "objects kept", len(informer.GetStore().List()), 1)
	}},
	{"an informer with a selector is told of what leaves it", func(ctx context.Context, t *trial) {
		maps := t.client.CoreV1().ConfigMaps(t.namespace)
		fill(ctx, t, 3)
		diary, _ := follow(ctx, t, &wire{}, "third=yes")
		for _, label := range []string{"no", "yes"} {
			_, err := maps.Patch(ctx, "m-000", types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{"third":%q}}}`, label), metav1.PatchOptions{})
			t.must(err, "relabel it")
		}
		diary.has(ctx, t, "add m-000", "delete m-000", "add m-000")
	}},
	{"an informer whose connections are cut goes on where it was", func(ctx context.Context, t *trial) {
		maps, wire := t.client.CoreV1().ConfigMaps(t.namespace), &wire{}
		fill(ctx, t, 1)
		diary, _ := follow(ctx, t, wire, "third")
		// client-go lists anew after a watch that was short and silent, so this one has something to tell first.
		_, err := maps.Patch(ctx, "m-000", types.MergePatchType, []byte(`{"data":{"a":"b"}}`), metav1.PatchOptions{})
		t.must(err, "patch it")
		diary.has(ctx, t, "add m-000", "update m-000")
		wire.seen()
		wire.cut()
		_, err = maps.Patch(ctx, "m-000", types.MergePatchType, []byte(`{"data":{"a":"c"}}`), metav1.PatchOptions{})
		t.must(err, "patch it meanwhile")
		diary.has(ctx, t, "add m-000", "update m-000", "update m-000")
		for _, request := range wire.seen() {
			equal(t, "request after the cut", request, "watch")
		}
	}},
	{"an informer on pods indexes them by node", func(ctx context.Context, t *trial) {
		factory := informers.NewSharedInformerFactoryWithOptions(t.client, 0, informers.WithNamespace(t.namespace))
		pods := factory.Core().V1().Pods()
		err := pods.Informer().AddIndexers(cache.Indexers{"node": func(object any) ([]string, error) {
			pod, ok := object.(*corev1.Pod)
			if !ok {
				return nil, errors.New("no pod")
			}
			return []string{pod.Spec.NodeName}, nil
		}})
		t.must(err, "add an index")
		factory.Start(ctx.Done())
		factory.WaitForCacheSync(ctx.Done())
		for _, node := range []string{"node-1", "node-1", "node-2"} {
			pod := podOn(node, "", nil)
			pod.GenerateName = "indexed-"
			_, err := t.client.CoreV1().Pods(t.namespace).Create(ctx, pod, metav1.CreateOptions{})
			t.must(err, "create a pod")
		}
		t.eventually(ctx, "pods of node-1", func() string {
			found, err := pods.Informer().GetIndexer().ByIndex("node", "node-1")
			if err != nil || len(found) != 2 {
				return fmt.Sprintf("%d, want 2 (%v)", len(found), err)
			}
			return ""
		})
	}},
	{"a watch from long ago is told to start over", func(ctx context.Context, t *trial) {
		// Revision 1 of a new server may still be there; what matters is that the answer is events or Expired.
		events, err := t.client.CoreV1().ConfigMaps(t.namespace).Watch(ctx, metav1.ListOptions{ResourceVersion: "1", TimeoutSeconds: pointer(int64(1))})
		if err != nil {
			t.refused(err, "the watch", "Expired", func(err error) bool { return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) })
			return
		}
		begun := time.Now()
		for event := range events.ResultChan() {
			if status, ok := event.Object.(*metav1.Status); ok && status.Code != http.StatusGone {
				t.fail("got %v", status)
			}
		}
		if time.Since(begun) > 20*time.Second {
			t.fail("it took %v to end", time.Since(begun))
		}
	}},
}
