package main

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/util/retry"
)

// podOn is a pod that a scheduler has put on node, or has yet to place when node is empty.
func podOn(node, name string, labels map[string]string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: labelled(name, labels),
		Spec: corev1.PodSpec{
			NodeName:                      node,
			Containers:                    []corev1.Container{{Name: "main", Image: "example.test/image:1"}},
			TerminationGracePeriodSeconds: pointer(int64(0)),
		},
	}
}

func deployment(name string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: labelled(name, labels),
		Spec: appsv1.DeploymentSpec{
			Replicas: pointer(int32(3)),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: podOn("", "", nil).Spec},
		},
	}
}

// workloads: what controllers of workloads write.
var workloads = []check{
	{"a deployment is defaulted and counts its generations", func(ctx context.Context, t *trial) {
		deployments := t.client.AppsV1().Deployments(t.namespace)
		template := deployment("web")
		template.Spec.Template.Spec.TerminationGracePeriodSeconds = nil
		made, err := deployments.Create(ctx, template, metav1.CreateOptions{})
		t.must(err, "create the deployment")
		equal(t, "generation", made.Generation, int64(1))
		equal(t, "strategy", made.Spec.Strategy.Type, appsv1.RollingUpdateDeploymentStrategyType)
		equal(t, "surge", made.Spec.Strategy.RollingUpdate.MaxSurge.String(), "25%")
		equal(t, "history", *made.Spec.RevisionHistoryLimit, int32(10))
		equal(t, "restart policy", made.Spec.Template.Spec.RestartPolicy, corev1.RestartPolicyAlways)
		equal(t, "image pull policy", made.Spec.Template.Spec.Containers[0].ImagePullPolicy, corev1.PullIfNotPresent)
		made.Spec.Replicas = pointer(int32(5))
		made.Status.Replicas = 9
		made, err = deployments.Update(ctx, made, metav1.UpdateOptions{})
		t.must(err, "update the deployment")
		equal(t, "generation after a change of the spec", made.Generation, int64(2))
		equal(t, "status written through the spec", made.Status.Replicas, int32(0))
		made.Status.Replicas, made.Status.ObservedGeneration = 5, 2
		made.Spec.Replicas = pointer(int32(1))
		made, err = deployments.UpdateStatus(ctx, made, metav1.UpdateOptions{})
		t.must(err, "update the status")
		equal(t, "generation after a change of the status", made.Generation, int64(2))
		equal(t, "replicas wanted", *made.Spec.Replicas, int32(5))
		equal(t, "replicas there", made.Status.Replicas, int32(5))
	}},
	{"a deployment scales through its scale", func(ctx context.Context, t *trial) {
		deployments := t.client.AppsV1().Deployments(t.namespace)
		_, err := deployments.Create(ctx, deployment("scaled"), metav1.CreateOptions{})
		t.must(err, "create the deployment")
		scale, err := deployments.GetScale(ctx, "scaled", metav1.GetOptions{})
		t.must(err, "get the scale")
		equal(t, "replicas", scale.Spec, autoscalingv1.ScaleSpec{Replicas: 3})
		equal(t, "selector", scale.Status.Selector, "app=scaled")
		scale.Spec.Replicas = 7
		_, err = deployments.UpdateScale(ctx, "scaled", scale, metav1.UpdateOptions{})
		t.must(err, "update the scale")
		found, err := deployments.Get(ctx, "scaled", metav1.GetOptions{})
		t.must(err, "get the deployment")
		equal(t, "replicas", *found.Spec.Replicas, int32(7))
	}},
	{"a deployment's containers are patched by name", func(ctx context.Context, t *trial) {
		deployments := t.client.AppsV1().Deployments(t.namespace)
		_, err := deployments.Create(ctx, deployment("named"), metav1.CreateOptions{})
		t.must(err, "create the deployment")
		body := `{"spec":{"template":{"spec":{"containers":[{"name":"side","image":"example.test/side:1"},{"name":"main","env":[{"name":"A","value":"1"}]}]}}}}`
		found, err := deployments.Patch(ctx, "named", types.StrategicMergePatchType, []byte(body), metav1.PatchOptions{})
		t.must(err, "patch the deployment")
		byName := map[string]corev1.Container{}
		for _, container := range found.Spec.Template.Spec.Containers {
			byName[container.Name] = container
		}
		equal(t, "containers", len(byName), 2)
		equal(t, "image", byName["main"].Image, "example.test/image:1")
		equal(t, "environment", byName["main"].Env, []corev1.EnvVar{{Name: "A", Value: "1"}})
	}},
	{"a selector that misses the template is refused", func(ctx context.Context, t *trial) {
		wrong := deployment("wrong")
		wrong.Spec.Selector.MatchLabels = map[string]string{"app": "other"}
		_, err := t.client.AppsV1().Deployments(t.namespace).Create(ctx, wrong, metav1.CreateOptions{})
		t.refused(err, "the deployment", "Invalid", apierrors.IsInvalid)
	}},
	{"a stateful set, a daemon set and a replica set are stored", func(ctx context.Context, t *trial) {
		like := deployment("set").Spec
		_, err := t.client.AppsV1().StatefulSets(t.namespace).Create(ctx, &appsv1.StatefulSet{
			ObjectMeta: named("set"), Spec: appsv1.StatefulSetSpec{Selector: like.Selector, Template: like.Template, ServiceName: "set"},
		}, metav1.CreateOptions{})
		t.must(err, "create the stateful set")
		_, err = t.client.AppsV1().DaemonSets(t.namespace).Create(ctx, &appsv1.DaemonSet{
			ObjectMeta: named("set"), Spec: appsv1.DaemonSetSpec{Selector: like.Selector, Template: like.Template},
		}, metav1.CreateOptions{})
		t.must(err, "create the daemon set")
		_, err = t.client.AppsV1().ReplicaSets(t.namespace).Create(ctx, &appsv1.ReplicaSet{
			ObjectMeta: named("set"), Spec: appsv1.ReplicaSetSpec{Selector: like.Selector, Template: like.Template},
		}, metav1.CreateOptions{})
		t.must(err, "create the replica set")
		found, err := t.client.AppsV1().StatefulSets(t.namespace).Get(ctx, "set", metav1.GetOptions{})
		t.must(err, "get the stateful set")
		equal(t, "replicas", *found.Spec.Replicas, int32(1))
		equal(t, "pod management", found.Spec.PodManagementPolicy, appsv1.OrderedReadyPodManagement)
	}},
	{"a disruption budget keeps a number or a share, and a status", func(ctx context.Context, t *trial) {
		budgets := t.client.PolicyV1().PodDisruptionBudgets(t.namespace)
		made, err := budgets.Create(ctx, &policyv1.PodDisruptionBudget{ObjectMeta: named("budget"), Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: pointer(intstr.FromString("50%")), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}},
		}}, metav1.CreateOptions{})
		t.must(err, "create the budget")
		equal(t, "share", made.Spec.MinAvailable.String(), "50%")
		// A server that keeps the status itself, as the hub does, may have written it in between.
		err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
			latest, err := budgets.Get(ctx, "budget", metav1.GetOptions{})
			if err != nil {
				return err
			}
			latest.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 1, DisruptionsAllowed: 2, CurrentHealthy: 4, DesiredHealthy: 2, ExpectedPods: 4}
			made, err = budgets.UpdateStatus(ctx, latest, metav1.UpdateOptions{})
			return err
		})
		t.must(err, "update the status")
		equal(t, "allowed", made.Status.DisruptionsAllowed, int32(2))
		_, err = budgets.Create(ctx, &policyv1.PodDisruptionBudget{ObjectMeta: named("both"), Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: pointer(intstr.FromInt32(1)), MaxUnavailable: pointer(intstr.FromInt32(1)),
		}}, metav1.CreateOptions{})
		t.refused(err, "a budget with both bounds", "Invalid", apierrors.IsInvalid)
	}},
	{"a pod is defaulted, bound to a node and reports its state", func(ctx context.Context, t *trial) {
		pods := t.client.CoreV1().Pods(t.namespace)
		made, err := pods.Create(ctx, podOn("", "bound", map[string]string{"app": "bound"}), metav1.CreateOptions{})
		t.must(err, "create the pod")
		equal(t, "phase", made.Status.Phase, corev1.PodPending)
		equal(t, "quality of service", made.Status.QOSClass, corev1.PodQOSBestEffort)
		equal(t, "scheduler", made.Spec.SchedulerName, "default-scheduler")
		binding := &corev1.Binding{ObjectMeta: named("bound"), Target: corev1.ObjectReference{Kind: "Node", Name: "node-1"}}
		t.must(pods.Bind(ctx, binding, metav1.CreateOptions{}), "bind the pod")
		found, err := pods.Get(ctx, "bound", metav1.GetOptions{})
		t.must(err, "get the pod")
		equal(t, "node", found.Spec.NodeName, "node-1")
		err = pods.Bind(ctx, binding, metav1.CreateOptions{})
		t.refused(err, "binding it again", "Conflict", apierrors.IsConflict)
		found.Status.Phase = corev1.PodRunning
		found.Status.Conditions = append(found.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue})
		found, err = pods.UpdateStatus(ctx, found, metav1.UpdateOptions{})
		t.must(err, "update the status")
		equal(t, "phase", found.Status.Phase, corev1.PodRunning)
		found.Spec.Containers[0].Image = "example.test/image:2"
		found, err = pods.Update(ctx, found, metav1.UpdateOptions{})
		t.must(err, "update the image")
		found.Spec.NodeName = "node-2"
		_, err = pods.Update(ctx, found, metav1.UpdateOptions{})
		t.refused(err, "moving the pod", "Invalid", apierrors.IsInvalid)
	}},
}
