package main

import (
	"context"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// deletions: how objects leave.
var deletions = []check{
	{"a deletion with the uid of another object conflicts", func(ctx context.Context, t *trial) {
		maps := t.client.CoreV1().ConfigMaps(t.namespace)
		made, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: named("kept")}, metav1.CreateOptions{})
		t.must(err, "create the config map")
		stranger := types.UID("00000000-0000-0000-0000-000000000000")
		err = maps.Delete(ctx, "kept", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &stranger}})
		t.refused(err, "deleting it", "Conflict", apierrors.IsConflict)
		err = maps.Delete(ctx, "kept", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &made.UID, ResourceVersion: pointer("1")}})
		t.refused(err, "deleting another version", "Conflict", apierrors.IsConflict)
		err = maps.Delete(ctx, "kept", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &made.UID, ResourceVersion: &made.ResourceVersion}})
		t.must(err, "delete it")
		err = maps.Delete(ctx, "kept", metav1.DeleteOptions{})
		t.refused(err, "deleting it again", "NotFound", apierrors.IsNotFound)
	}},
	{"a finalizer holds an object until it is taken away", func(ctx context.Context, t *trial) {
		maps := t.client.CoreV1().ConfigMaps(t.namespace)
		sent := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "held", Finalizers: []string{"berth.dev/hold"}}}
		_, err := maps.Create(ctx, sent, metav1.CreateOptions{})
		t.must(err, "create the config map")
		t.must(maps.Delete(ctx, "held", metav1.DeleteOptions{}), "delete the config map")
		held, err := maps.Get(ctx, "held", metav1.GetOptions{})
		t.must(err, "get what is held")
		if held.DeletionTimestamp == nil {
			t.fail("it is not being deleted")
		}
		held.Finalizers = append(held.Finalizers, "berth.dev/more")
		_, err = maps.Update(ctx, held, metav1.UpdateOptions{})
		t.refused(err, "another finalizer on a leaving object", "Invalid", apierrors.IsInvalid)
		held.Finalizers = nil
		_, err = maps.Update(ctx, held, metav1.UpdateOptions{})
		t.must(err, "take the finalizer away")
		_, err = maps.Get(ctx, "held", metav1.GetOptions{})
		t.refused(err, "getting it afterwards", "NotFound", apierrors.IsNotFound)
	}},
	{"a pod on a node leaves in its own time, or at once when asked to", func(ctx context.Context, t *trial) {
		pods := t.client.CoreV1().Pods(t.namespace)
		// Only a node whose kubelet renews its lease has somebody who ends pods; the lease stands in for it here.
		leases := t.client.CoordinationV1().Leases("kube-node-lease")
		moment := metav1.NowMicro()
		spec := coordinationv1.LeaseSpec{HolderIdentity: pointer("node-1"), LeaseDurationSeconds: pointer(int32(600)), RenewTime: &moment}
		_, err := leases.Create(ctx, &coordinationv1.Lease{ObjectMeta: named("node-1"), Spec: spec}, metav1.CreateOptions{})
		t.must(err, "create the node's lease")
		defer func() { t.must(leases.Delete(ctx, "node-1", metav1.DeleteOptions{}), "delete the node's lease") }()
		slow := podOn("node-1", "slow", nil)
		slow.Spec.TerminationGracePeriodSeconds = pointer(int64(30))
		_, err = pods.Create(ctx, slow, metav1.CreateOptions{})
		t.must(err, "create the pod")
		t.must(pods.Delete(ctx, "slow", metav1.DeleteOptions{}), "delete the pod")
		leaving, err := pods.Get(ctx, "slow", metav1.GetOptions{})
		t.must(err, "get the leaving pod")
		if leaving.DeletionTimestamp == nil || leaving.DeletionGracePeriodSeconds == nil {
			t.fail("it is not leaving: %+v", leaving.ObjectMeta)
		}
		equal(t, "grace", *leaving.DeletionGracePeriodSeconds, int64(30))
		t.must(pods.Delete(ctx, "slow", metav1.DeleteOptions{GracePeriodSeconds: pointer(int64(0))}), "delete the pod at once")
		_, err = pods.Get(ctx, "slow", metav1.GetOptions{})
		t.refused(err, "getting it afterwards", "NotFound", apierrors.IsNotFound)
	}},
	{"a foreground deletion waits for its dependents, an orphaning one says so", func(ctx context.Context, t *trial) {
		maps := t.client.CoreV1().ConfigMaps(t.namespace)
		for name, want := range map[string]struct {
			policy    metav1.DeletionPropagation
			finalizer string
		}{
			"foreground": {metav1.DeletePropagationForeground, metav1.FinalizerDeleteDependents},
			"orphan":     {metav1.DeletePropagationOrphan, metav1.FinalizerOrphanDependents},
		} {
			// With a finalizer of ours the object is still there to look at, garbage collector or not.
			sent := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: []string{"berth.dev/hold"}}}
			_, err := maps.Create(ctx, sent, metav1.CreateOptions{})
			t.must(err, "create the config map")
			watch, err := maps.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
			t.must(err, "watch it")
			t.must(maps.Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: &want.policy}), "delete it")
			seen := false
			for event := range watch.ResultChan() {
				if object, ok := event.Object.(*corev1.ConfigMap); ok && object.DeletionTimestamp != nil {
					for _, finalizer := range object.Finalizers {
						seen = seen || finalizer == want.finalizer
					}
					break
				}
			}
			watch.Stop()
			equal(t, "finalizer "+want.finalizer, seen, true)
			_, err = maps.Patch(ctx, name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
			t.must(err, "let it go")
		}
	}},
	{"a collection is deleted by selector", func(ctx context.Context, t *trial) {
		pods := t.client.CoreV1().Pods(t.namespace)
		for _, name := range []string{"a", "b", "c"} {
			_, err := pods.Create(ctx, podOn("node-1", "go-"+name, map[string]string{"go": "yes"}), metav1.CreateOptions{})
			t.must(err, "create a pod")
		}
		_, err := pods.Create(ctx, podOn("node-1", "stay", map[string]string{"go": "no"}), metav1.CreateOptions{})
		t.must(err, "create a pod")
		err = pods.DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: pointer(int64(0))}, metav1.ListOptions{LabelSelector: "go=yes"})
		t.must(err, "delete the collection")
		left, err := pods.List(ctx, metav1.ListOptions{})
		t.must(err, "list the pods")
		equal(t, "pods left", len(left.Items), 1)
		equal(t, "pod left", left.Items[0].Name, "stay")
	}},
	{"a deleted namespace takes in nothing new", func(ctx context.Context, t *trial) {
		namespace := t.makeNamespace(ctx)
		maps := t.client.CoreV1().ConfigMaps(namespace)
		// What is held keeps the namespace from vanishing where somebody empties namespaces.
		_, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "held", Finalizers: []string{"berth.dev/hold"}}}, metav1.CreateOptions{})
		t.must(err, "create the config map")
		t.must(t.client.CoreV1().Namespaces().Delete(ctx, namespace, metav1.DeleteOptions{}), "delete the namespace")
		leaving, err := t.client.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
		t.must(err, "get the namespace")
		equal(t, "phase", leaving.Status.Phase, corev1.NamespaceTerminating)
		_, err = maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: named("late")}, metav1.CreateOptions{})
		t.refused(err, "creating in it", "Forbidden", apierrors.IsForbidden)
		equal(t, "cause", apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause), true)
		_, err = maps.Patch(ctx, "held", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		t.must(err, "let it go")
	}},
}
