package main

import (
	"context"
	"encoding/json"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"time"
)

// objects: the plain kinds, one object at a time.
var objects = []check{
	{"a namespace is created active, found and relabelled", func(ctx context.Context, t *trial) {
		namespaces := t.client.CoreV1().Namespaces()
		found, err := namespaces.Get(ctx, t.namespace, metav1.GetOptions{})
		t.must(err, "get the namespace")
		equal(t, "phase", found.Status.Phase, corev1.NamespaceActive)
		equal(t, "finalizers", found.Spec.Finalizers, []corev1.FinalizerName{corev1.FinalizerKubernetes})
		equal(t, "name label", found.Labels[corev1.LabelMetadataName], t.namespace)
		found.Labels["colour"] = "blue"
		changed, err := namespaces.Update(ctx, found, metav1.UpdateOptions{})
		t.must(err, "update the namespace")
		equal(t, "label", changed.Labels["colour"], "blue")
	}},
	{"a config map keeps text and bytes to the letter", func(ctx context.Context, t *trial) {
		maps := t.client.CoreV1().ConfigMaps(t.namespace)
		sent := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: "letters", Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"note": "Grüße, 世界 \u2028"}},
			Data:       map[string]string{"empty": "", "lines": "one\ntwo\r\n", "quote": `"\` + "\t<&>"},
			BinaryData: map[string][]byte{"bytes": {0, 1, 0xfe, 0xff}},
		}
		made, err := maps.Create(ctx, sent, metav1.CreateOptions{})
		t.must(err, "create the config map")
		found, err := maps.Get(ctx, "letters", metav1.GetOptions{})
		t.must(err, "get the config map")
		equal(t, "created and found", found, made)
		equal(t, "data", found.Data, sent.Data)
		equal(t, "binary data", found.BinaryData, sent.BinaryData)
		equal(t, "annotations", found.Annotations, sent.Annotations)
		if found.UID == "" || found.ResourceVersion == "" || found.CreationTimestamp.IsZero() || len(found.ManagedFields) != 1 {
			t.fail("the server's metadata is incomplete: %+v", found.ObjectMeta)
		}
		equal(t, "field manager", found.ManagedFields[0].Manager, "berth-client-go")
	}},
	{"a name is given when only its beginning is", func(ctx context.Context, t *trial) {
		maps := t.client.CoreV1().ConfigMaps(t.namespace)
		made, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "some-"}}, metav1.CreateOptions{})
		t.must(err, "create the config map")
		if !strings.HasPrefix(made.Name, "some-") || len(made.Name) != len("some-")+5 {
			t.fail("the name is %q", made.Name)
		}
	}},
	{"the same name twice, a missing object and an invalid one are refused by kind of error", func(ctx context.Context, t *trial) {
		maps := t.client.CoreV1().ConfigMaps(t.namespace)
		_, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: named("twice")}, metav1.CreateOptions{})
		t.must(err, "create the config map")
		_, err = maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: named("twice")}, metav1.CreateOptions{})
		t.refused(err, "creating it again", "AlreadyExists", apierrors.IsAlreadyExists)
		_, err = maps.Get(ctx, "never", metav1.GetOptions{})
		t.refused(err, "getting what is not there", "NotFound", apierrors.IsNotFound)
		equal(t, "message", err.Error(), `configmaps "never" not found`)
		_, err = maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: named("Not A Name")}, metav1.CreateOptions{})
		t.refused(err, "an invalid name", "Invalid", apierrors.IsInvalid)
		causes := err.(apierrors.APIStatus).Status().Details.Causes
		equal(t, "field at fault", causes[0].Field, "metadata.name")
	}},
	{"a stale update conflicts and a retried one succeeds", func(ctx context.Context, t *trial) {
		maps := t.client.CoreV1().ConfigMaps(t.namespace)
		first, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: named("stale")}, metav1.CreateOptions{})
		t.must(err, "create the config map")
		second := first.DeepCopy()
		second.Data = map[string]string{"by": "second"}
		second, err = maps.Update(ctx, second, metav1.UpdateOptions{})
		t.must(err, "update the config map")
		if second.ResourceVersion == first.ResourceVersion {
			t.fail("a change kept resource version %s", first.ResourceVersion)
		}
		first.Data = map[string]string{"by": "first"}
		_, err = maps.Update(ctx, first, metav1.UpdateOptions{})
		t.refused(err, "a stale update", "Conflict", apierrors.IsConflict)
		err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
			fresh, err := maps.Get(ctx, "stale", metav1.GetOptions{})
			if err != nil {
				return err
			}
			fresh.Data["by"] = "retry"
			_, err = maps.Update(ctx, fresh, metav1.UpdateOptions{})
			return err
		})
		t.must(err, "update with retries")
	}},
	{"an update that changes nothing keeps the resource version", func(ctx context.Context, t *trial) {
		maps := t.client.CoreV1().ConfigMaps(t.namespace)
		made, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: named("same"), Data: map[string]string{"a": "b"}}, metav1.CreateOptions{})
		t.must(err, "create the config map")
		again, err := maps.Update(ctx, made, metav1.UpdateOptions{})
		t.must(err, "update the config map")
		equal(t, "object", again, made)
	}},
	{"JSON, merge and strategic patches change what they name", func(ctx context.Context, t *trial) {
		maps := t.client.CoreV1().ConfigMaps(t.namespace)
		sent := &corev1.ConfigMap{ObjectMeta: named("patched"), Data: map[string]string{"keep": "1", "drop": "2"}}
		_, err := maps.Create(ctx, sent, metav1.CreateOptions{})
		t.must(err, "create the config map")
		for _, patch := range []struct {
			kind types.PatchType
			body string
		}{
			{types.JSONPatchType, `[{"op":"test","path":"/data/keep","value":"1"},{"op":"add","path":"/data/json","value":"yes"}]`},
			{types.MergePatchType, `{"data":{"drop":null,"merge":"yes"}}`},
			{types.StrategicMergePatchType, `{"metadata":{"finalizers":["berth.dev/hold"]},"data":{"strategic":"yes"}}`},
		} {
			_, err := maps.Patch(ctx, "patched", patch.kind, []byte(patch.body), metav1.PatchOptions{FieldManager: "patcher"})
			t.must(err, "patch with "+string(patch.kind))
		}
		found, err := maps.Patch(ctx, "patched", types.StrategicMergePatchType, []byte(`{"metadata":{"$deleteFromPrimitiveList/finalizers":["berth.dev/hold"]}}`), metav1.PatchOptions{})
		t.must(err, "take the finalizer away")
		equal(t, "data", found.Data, map[string]string{"keep": "1", "json": "yes", "merge": "yes", "strategic": "yes"})
		equal(t, "finalizers", len(found.Finalizers), 0)
		_, err = maps.Patch(ctx, "patched", types.JSONPatchType, []byte(`[{"op":"test","path":"/data/keep","value":"other"}]`), metav1.PatchOptions{})
		t.refused(err, "a patch whose test fails", "Invalid", apierrors.IsInvalid)
	}},
	{"a dry run answers as if and writes nothing", func(ctx context.Context, t *trial) {
		maps := t.client.CoreV1().ConfigMaps(t.namespace)
		made, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: named("dry")}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		t.must(err, "create without doing so")
		if made.UID == "" {
			t.fail("a dry run gives the object a uid, got none")
		}
		_, err = maps.Get(ctx, "dry", metav1.GetOptions{})
		t.refused(err, "getting it afterwards", "NotFound", apierrors.IsNotFound)
	}},
	{"a secret's text becomes its data and its type stays", func(ctx context.Context, t *trial) {
		secrets := t.client.CoreV1().Secrets(t.namespace)
		sent := &corev1.Secret{ObjectMeta: named("secret"), StringData: map[string]string{"password": "p"}, Data: map[string][]byte{"user": []byte("u")}}
		_, err := secrets.Create(ctx, sent, metav1.CreateOptions{})
		t.must(err, "create the secret")
		found, err := secrets.Get(ctx, "secret", metav1.GetOptions{})
		t.must(err, "get the secret")
		equal(t, "data", found.Data, map[string][]byte{"user": []byte("u"), "password": []byte("p")})
		equal(t, "text", len(found.StringData), 0)
		equal(t, "type", found.Type, corev1.SecretTypeOpaque)
		found.Type = corev1.SecretTypeBasicAuth
		_, err = secrets.Update(ctx, found, metav1.UpdateOptions{})
		t.refused(err, "another type", "Invalid", apierrors.IsInvalid)
	}},
	{"a service account's token is accepted and names it", func(ctx context.Context, t *trial) {
		accounts := t.client.CoreV1().ServiceAccounts(t.namespace)
		_, err := accounts.Create(ctx, &corev1.ServiceAccount{ObjectMeta: named("worker")}, metav1.CreateOptions{})
		t.must(err, "create the service account")
		request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: pointer(int64(600))}}
		token, err := accounts.CreateToken(ctx, "worker", request, metav1.CreateOptions{})
		t.must(err, "ask for a token")
		if token.Status.Token == "" || time.Until(token.Status.ExpirationTimestamp.Time) > 11*time.Minute {
			t.fail("token of %d bytes expires %v", len(token.Status.Token), token.Status.ExpirationTimestamp)
		}
		bearer := t.typed(func(config *rest.Config) {
			*config = *rest.AnonymousClientConfig(config)
			config.BearerToken = token.Status.Token
		})
		self, err := bearer.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		t.must(err, "ask who the token is")
		equal(t, "user", self.Status.UserInfo.Username, "system:serviceaccount:"+t.namespace+":worker")
		review, err := t.client.AuthenticationV1().TokenReviews().Create(ctx, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token.Status.Token}}, metav1.CreateOptions{})
		t.must(err, "have the token reviewed")
		equal(t, "authenticated", review.Status.Authenticated, true)
		_, err = bearer.CoreV1().ConfigMaps(t.namespace).Get(ctx, "any", metav1.GetOptions{})
		t.refused(err, "reading without a role", "Forbidden", apierrors.IsForbidden)
	}},
	{"a node keeps its taints and its status apart", func(ctx context.Context, t *trial) {
		nodes, name := t.client.CoreV1().Nodes(), "node-"+t.namespace
		sent := &corev1.Node{
			ObjectMeta: labelled(name, map[string]string{"zone": "a"}),
			Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: "maintenance", Effect: corev1.TaintEffectNoExecute}}},
		}
		made, err := nodes.Create(ctx, sent, metav1.CreateOptions{})
		t.must(err, "create the node")
		defer func() { _ = nodes.Delete(context.WithoutCancel(ctx), name, metav1.DeleteOptions{}) }()
		if made.Spec.Taints[0].Key != "maintenance" {
			t.fail("taints are %v", made.Spec.Taints)
		}
		made.Status.Capacity = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3500m"), corev1.ResourceMemory: resource.MustParse("8Gi")}
		made.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady"}}
		made.Spec.Unschedulable = true
		made, err = nodes.UpdateStatus(ctx, made, metav1.UpdateOptions{})
		t.must(err, "update the status")
		equal(t, "spec written through the status", made.Spec.Unschedulable, false)
		equal(t, "processors", made.Status.Capacity.Cpu().MilliValue(), int64(3500))
		added, err := nodes.Patch(ctx, name, types.StrategicMergePatchType, []byte(`{"status":{"conditions":[{"type":"DiskPressure","status":"False"}]}}`), metav1.PatchOptions{}, "status")
		t.must(err, "patch the status")
		equal(t, "conditions merged by type", len(added.Status.Conditions), 2)
		cordoned, err := nodes.Patch(ctx, name, types.StrategicMergePatchType, []byte(`{"spec":{"unschedulable":true}}`), metav1.PatchOptions{})
		t.must(err, "cordon the node")
		equal(t, "capacity after a patch of the spec", len(cordoned.Status.Capacity), 2)
	}},
	{"a lease keeps microseconds", func(ctx context.Context, t *trial) {
		leases := t.client.CoordinationV1().Leases(t.namespace)
		moment := metav1.NewMicroTime(time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.UTC))
		spec := coordinationv1.LeaseSpec{HolderIdentity: pointer("me"), LeaseDurationSeconds: pointer(int32(15)), RenewTime: &moment}
		_, err := leases.Create(ctx, &coordinationv1.Lease{ObjectMeta: named("lease"), Spec: spec}, metav1.CreateOptions{})
		t.must(err, "create the lease")
		found, err := leases.Get(ctx, "lease", metav1.GetOptions{})
		t.must(err, "get the lease")
		if !found.Spec.RenewTime.Time.Equal(moment.Time) {
			t.fail("renewed at %v, want %v", found.Spec.RenewTime, moment)
		}
		found.Spec.LeaseDurationSeconds = pointer(int32(0))
		_, err = leases.Update(ctx, found, metav1.UpdateOptions{})
		t.refused(err, "a lease of no time", "Invalid", apierrors.IsInvalid)
	}},
	{"a body in JSON and one in protobuf make the same object", func(ctx context.Context, t *trial) {
		plain := t.typed(func(config *rest.Config) { config.ContentType, config.AcceptContentTypes = "application/json", "" })
		sent := podOn("", "twin", map[string]string{"app": "twin"})
		sent.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("0.5")}
		binary, err := t.client.CoreV1().Pods(t.namespace).Create(ctx, sent, metav1.CreateOptions{})
		t.must(err, "create in protobuf")
		sent.Name = "other"
		text, err := plain.CoreV1().Pods(t.namespace).Create(ctx, sent, metav1.CreateOptions{})
		t.must(err, "create in JSON")
		binarySpec, err := json.Marshal(binary.Spec)
		t.must(err, "write the pod's spec")
		textSpec, err := json.Marshal(text.Spec)
		t.must(err, "write the pod's spec")
		equal(t, "spec", string(binarySpec), string(textSpec))
	}},
}
