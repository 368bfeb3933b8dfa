package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// evicting: pods leave as their budget allows. The checks keep the budget's status themselves, because a server
// without controllers has nobody who does; where somebody does, the figures are what that one would write.
var evicting = []check{
	{"an eviction takes from the budget, and the next one is refused until there is room", func(ctx context.Context, t *trial) {
		pods, budgets := t.client.CoreV1().Pods(t.namespace), t.client.PolicyV1().PodDisruptionBudgets(t.namespace)
		labels := map[string]string{"app": "guarded"}
		for i := range 2 {
			pod, err := pods.Create(ctx, podOn("node-1", fmt.Sprintf("pod-%d", i), labels), metav1.CreateOptions{})
			t.must(err, "create a pod")
			pod.Status.Phase = corev1.PodRunning
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
			_, err = pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{})
			t.must(err, "let the pod run")
		}
		budget, err := budgets.Create(ctx, &policyv1.PodDisruptionBudget{ObjectMeta: named("guard"), Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: pointer(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: labels},
		}}, metav1.CreateOptions{})
		t.must(err, "create the budget")
		grant := func(allowed, healthy int32) {
			t.eventually(ctx, "the budget", func() string {
				budget, err = budgets.Get(ctx, "guard", metav1.GetOptions{})
				t.must(err, "get the budget")
				disrupted := budget.Status.DisruptedPods
				budget.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: budget.Generation, DisruptionsAllowed: allowed, CurrentHealthy: healthy, DesiredHealthy: 1, ExpectedPods: healthy, DisruptedPods: disrupted}
				if _, err = budgets.UpdateStatus(ctx, budget, metav1.UpdateOptions{}); err != nil {
					return err.Error()
				}
				return ""
			})
		}
		evict := func(name string) error {
			return pods.EvictV1(ctx, &policyv1.Eviction{ObjectMeta: named(name)})
		}
		grant(1, 2)
		t.must(evict("pod-0"), "evict the first pod")
		_, err = pods.Get(ctx, "pod-0", metav1.GetOptions{})
		t.refused(err, "getting the evicted pod", "NotFound", apierrors.IsNotFound)
		budget, err = budgets.Get(ctx, "guard", metav1.GetOptions{})
		t.must(err, "get the budget")
		equal(t, "disruptions left", budget.Status.DisruptionsAllowed, int32(0))
		err = evict("pod-1")
		t.refused(err, "evicting the last pod", "TooManyRequests", apierrors.IsTooManyRequests)
		equal(t, "message", err.Error(), "Cannot evict pod as it would violate the pod's disruption budget.")
		equal(t, "cause", apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause), true)
		t.must(budgets.Delete(ctx, "guard", metav1.DeleteOptions{}), "delete the budget")
		t.must(evict("pod-1"), "evict without a budget")
	}},
	{"an eviction of what is not there, and one as a dry run", func(ctx context.Context, t *trial) {
		pods := t.client.CoreV1().Pods(t.namespace)
		err := pods.EvictV1(ctx, &policyv1.Eviction{ObjectMeta: named("nobody")})
		t.refused(err, "evicting nobody", "NotFound", apierrors.IsNotFound)
		_, err = pods.Create(ctx, podOn("node-1", "dry", nil), metav1.CreateOptions{})
		t.must(err, "create a pod")
		t.must(pods.EvictV1(ctx, &policyv1.Eviction{ObjectMeta: named("dry"), DeleteOptions: &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}}), "evict it without doing so")
		_, err = pods.Get(ctx, "dry", metav1.GetOptions{})
		t.must(err, "get the pod")
	}},
}
