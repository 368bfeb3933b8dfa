package main

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
)

// managers is who owns fields of an object, as NAME/OPERATION, by name: the server's order depends on the second.
func managers(object metav1.Object) []string {
	var all []string
	for _, entry := range object.GetManagedFields() {
		name := entry.Manager + "/" + string(entry.Operation)
		if entry.Subresource != "" {
			name += "/" + entry.Subresource
		}
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

// applying: server-side apply with typed configurations.
var applying = []check{
	{"two managers apply their own keys, a third who takes one conflicts until it forces", func(ctx context.Context, t *trial) {
		maps := t.client.CoreV1().ConfigMaps(t.namespace)
		apply := func(manager string, force bool, data map[string]string) (*corev1.ConfigMap, error) {
			return maps.Apply(ctx, corev1ac.ConfigMap("shared", t.namespace).WithData(data), metav1.ApplyOptions{FieldManager: manager, Force: force})
		}
		_, err := apply("first", false, map[string]string{"a": "1", "b": "1"})
		t.must(err, "apply as first, which creates it")
		made, err := apply("second", false, map[string]string{"c": "2"})
		t.must(err, "apply as second")
		equal(t, "data", made.Data, map[string]string{"a": "1", "b": "1", "c": "2"})
		equal(t, "managers", managers(made), []string{"first/Apply", "second/Apply"})
		_, err = apply("third", false, map[string]string{"a": "3"})
		t.refused(err, "taking a", "Conflict", apierrors.IsConflict)
		if !strings.Contains(err.Error(), `conflict with "first": .data.a`) {
			t.fail("the conflict reads %q", err)
		}
		causes := err.(apierrors.APIStatus).Status().Details.Causes
		equal(t, "cause", causes, []metav1.StatusCause{{Type: metav1.CauseTypeFieldManagerConflict, Message: `conflict with "first"`, Field: ".data.a"}})
		made, err = apply("third", true, map[string]string{"a": "3"})
		t.must(err, "take a by force")
		equal(t, "data", made.Data, map[string]string{"a": "3", "b": "1", "c": "2"})
		made, err = apply("first", false, map[string]string{})
		t.must(err, "let go as first")
		equal(t, "data", made.Data, map[string]string{"a": "3", "c": "2"})
		equal(t, "managers", managers(made), []string{"second/Apply", "third/Apply"})
	}},
	{"the same value may be owned by two, and stays until both let go", func(ctx context.Context, t *trial) {
		maps := t.client.CoreV1().ConfigMaps(t.namespace)
		apply := func(manager string, data map[string]string) *corev1.ConfigMap {
			made, err := maps.Apply(ctx, corev1ac.ConfigMap("common", t.namespace).WithData(data), metav1.ApplyOptions{FieldManager: manager})
			t.must(err, "apply as "+manager)
			return made
		}
		apply("first", map[string]string{"a": "1"})
		apply("second", map[string]string{"a": "1"})
		equal(t, "data", apply("first", nil).Data, map[string]string{"a": "1"})
		equal(t, "data", len(apply("second", nil).Data), 0)
	}},
	{"an update takes over what it changes, and apply then conflicts with it", func(ctx context.Context, t *trial) {
		maps := t.client.CoreV1().ConfigMaps(t.namespace)
		configuration := corev1ac.ConfigMap("updated", t.namespace).WithData(map[string]string{"a": "1", "b": "1"})
		made, err := maps.Apply(ctx, configuration, metav1.ApplyOptions{FieldManager: "applier"})
		t.must(err, "apply")
		made.Data["a"] = "2"
		made, err = maps.Update(ctx, made, metav1.UpdateOptions{FieldManager: "editor"})
		t.must(err, "update")
		equal(t, "managers", managers(made), []string{"applier/Apply", "editor/Update"})
		_, err = maps.Apply(ctx, configuration, metav1.ApplyOptions{FieldManager: "applier"})
		t.refused(err, "applying again", "Conflict", apierrors.IsConflict)
		if !strings.Contains(err.Error(), `conflict with "editor" using v1`) {
			t.fail("the conflict reads %q", err)
		}
	}},
	{"applying the same again changes nothing", func(ctx context.Context, t *trial) {
		maps := t.client.CoreV1().ConfigMaps(t.namespace)
		configuration := corev1ac.ConfigMap("again", t.namespace).WithData(map[string]string{"a": "1"})
		first, err := maps.Apply(ctx, configuration, metav1.ApplyOptions{FieldManager: "applier"})
		t.must(err, "apply")
		second, err := maps.Apply(ctx, configuration, metav1.ApplyOptions{FieldManager: "applier"})
		t.must(err, "apply again")
		equal(t, "object", second, first)
	}},
	{"what one applied is extracted from the object again", func(ctx context.Context, t *trial) {
		maps := t.client.CoreV1().ConfigMaps(t.namespace)
		configuration := corev1ac.ConfigMap("extracted", t.namespace).WithData(map[string]string{"mine": "1"}).WithLabels(map[string]string{"l": "v"})
		_, err := maps.Apply(ctx, configuration, metav1.ApplyOptions{FieldManager: "first"})
		t.must(err, "apply as first")
		made, err := maps.Apply(ctx, corev1ac.ConfigMap("extracted", t.namespace).WithData(map[string]string{"theirs": "2"}), metav1.ApplyOptions{FieldManager: "second"})
		t.must(err, "apply as second")
		extracted, err := corev1ac.ExtractConfigMap(made, "first")
		t.must(err, "extract")
		equal(t, "configuration", extracted, configuration)
	}},
	{"containers, ports and environment are merged by their keys", func(ctx context.Context, t *trial) {
		deployments := t.client.AppsV1().Deployments(t.namespace)
		labels := map[string]string{"app": "merged"}
		container := func() *corev1ac.ContainerApplyConfiguration { return corev1ac.Container().WithName("main") }
		with := func(container *corev1ac.ContainerApplyConfiguration) *appsv1ac.DeploymentApplyConfiguration {
			return appsv1ac.Deployment("merged", t.namespace).WithSpec(appsv1ac.DeploymentSpec().WithTemplate(
				corev1ac.PodTemplateSpec().WithSpec(corev1ac.PodSpec().WithContainers(container))))
		}
		whole := with(container().WithImage("example.test/image:1").WithEnv(corev1ac.EnvVar().WithName("A").WithValue("1")).
			WithPorts(corev1ac.ContainerPort().WithContainerPort(80)))
		whole.Spec.WithReplicas(2).WithSelector(metav1ac.LabelSelector().WithMatchLabels(labels))
		whole.Spec.Template.WithLabels(labels)
		_, err := deployments.Apply(ctx, whole, metav1.ApplyOptions{FieldManager: "owner"})
		t.must(err, "apply as owner")
		part := with(container().WithEnv(corev1ac.EnvVar().WithName("B").WithValue("2")).
			WithPorts(corev1ac.ContainerPort().WithContainerPort(80).WithProtocol(corev1.ProtocolUDP)))
		made, err := deployments.Apply(ctx, part, metav1.ApplyOptions{FieldManager: "tuner"})
		t.must(err, "apply as tuner")
		main := made.Spec.Template.Spec.Containers[0]
		equal(t, "containers", len(made.Spec.Template.Spec.Containers), 1)
		equal(t, "image", main.Image, "example.test/image:1")
		equal(t, "environment", main.Env, []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "2"}})
		equal(t, "ports", len(main.Ports), 2)
		made, err = deployments.Apply(ctx, with(container()), metav1.ApplyOptions{FieldManager: "tuner"})
		t.must(err, "let go as tuner")
		equal(t, "environment", made.Spec.Template.Spec.Containers[0].Env, []corev1.EnvVar{{Name: "A", Value: "1"}})
		equal(t, "ports", len(made.Spec.Template.Spec.Containers[0].Ports), 1)
	}},
	{"a status is applied by itself", func(ctx context.Context, t *trial) {
		nodes, name := t.client.CoreV1().Nodes(), "node-"+t.namespace
		_, err := nodes.Apply(ctx, corev1ac.Node(name).WithLabels(map[string]string{"zone": "a"}), metav1.ApplyOptions{FieldManager: "owner"})
		t.must(err, "apply the node")
		defer func() { _ = nodes.Delete(context.WithoutCancel(ctx), name, metav1.DeleteOptions{}) }()
		condition := corev1ac.NodeCondition().WithType(corev1.NodeReady).WithStatus(corev1.ConditionTrue)
		made, err := nodes.ApplyStatus(ctx, corev1ac.Node(name).WithStatus(corev1ac.NodeStatus().WithConditions(condition)), metav1.ApplyOptions{FieldManager: "kubelet"})
		t.must(err, "apply the status")
		equal(t, "condition", made.Status.Conditions[0].Status, corev1.ConditionTrue)
		equal(t, "label", made.Labels["zone"], "a")
		equal(t, "managers", managers(made), []string{"kubelet/Apply/status", "owner/Apply"})
	}},
}
