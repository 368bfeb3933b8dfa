package main

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// may asks whether the client's own user may do verb on config maps of the trial's namespace.
func may(ctx context.Context, t *trial, client kubernetes.Interface, verb string) bool {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: t.namespace, Verb: verb, Resource: "configmaps"},
	}}
	answer, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	t.must(err, "ask for a review")
	return answer.Status.Allowed
}

// permit lets user do what rules say in the trial's namespace, and waits until the server has taken notice.
func permit(ctx context.Context, t *trial, user string, rules ...rbacv1.PolicyRule) {
	roles := t.client.RbacV1()
	_, err := roles.Roles(t.namespace).Create(ctx, &rbacv1.Role{ObjectMeta: named("role"), Rules: rules}, metav1.CreateOptions{})
	t.must(err, "create the role")
	_, err = roles.RoleBindings(t.namespace).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: named("binding"),
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "role"},
	}, metav1.CreateOptions{})
	t.must(err, "create the binding")
}

// permitting: who may do what.
var permitting = []check{
	{"a review says what RBAC allows", func(ctx context.Context, t *trial) {
		equal(t, "the administrator may", may(ctx, t, t.client, "delete"), true)
		jane := t.as("jane")
		equal(t, "jane may", may(ctx, t, jane, "get"), false)
		_, err := jane.CoreV1().ConfigMaps(t.namespace).Get(ctx, "any", metav1.GetOptions{})
		t.refused(err, "jane's reading", "Forbidden", apierrors.IsForbidden)
		want := fmt.Sprintf(`configmaps "any" is forbidden: User "jane" cannot get resource "configmaps" in API group "" in the namespace %q`, t.namespace)
		equal(t, "message", err.Error(), want)
		permit(ctx, t, "jane", rbacv1.PolicyRule{Verbs: []string{"get", "list"}, APIGroups: []string{""}, Resources: []string{"configmaps"}})
		t.eventually(ctx, "jane", func() string {
			if !may(ctx, t, jane, "get") {
				return "may still not read"
			}
			return ""
		})
		equal(t, "jane may delete", may(ctx, t, jane, "delete"), false)
		_, err = jane.CoreV1().ConfigMaps(t.namespace).Get(ctx, "any", metav1.GetOptions{})
		t.refused(err, "jane's reading", "NotFound", apierrors.IsNotFound)
		rules, err := jane.AuthorizationV1().SelfSubjectRulesReviews().Create(ctx, &authorizationv1.SelfSubjectRulesReview{
			Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: t.namespace},
		}, metav1.CreateOptions{})
		t.must(err, "ask for all rules")
		found := false
		for _, rule := range rules.Status.ResourceRules {
			found = found || fmt.Sprint(rule.Verbs, rule.Resources) == "[get list] [configmaps]"
		}
		equal(t, "jane's rule among her rules", found, true)
	}},
	{"the administrator asks about others", func(ctx context.Context, t *trial) {
		attributes := &authorizationv1.ResourceAttributes{Namespace: t.namespace, Verb: "create", Group: "apps", Resource: "deployments"}
		answer, err := t.client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{User: "joe", Groups: []string{"system:masters"}, ResourceAttributes: attributes},
		}, metav1.CreateOptions{})
		t.must(err, "ask about a master")
		equal(t, "a master may", answer.Status.Allowed, true)
		local, err := t.client.AuthorizationV1().LocalSubjectAccessReviews(t.namespace).Create(ctx, &authorizationv1.LocalSubjectAccessReview{
			ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace},
			Spec:       authorizationv1.SubjectAccessReviewSpec{User: "joe", ResourceAttributes: attributes},
		}, metav1.CreateOptions{})
		t.must(err, "ask about joe")
		equal(t, "joe may", local.Status.Allowed, false)
	}},
	{"nobody grants what they do not hold", func(ctx context.Context, t *trial) {
		climber := t.as("climber")
		permit(ctx, t, "climber", rbacv1.PolicyRule{Verbs: []string{"create"}, APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles"}})
		create := func(name string, rule rbacv1.PolicyRule) error {
			_, err := climber.RbacV1().Roles(t.namespace).Create(ctx, &rbacv1.Role{ObjectMeta: named(name), Rules: []rbacv1.PolicyRule{rule}}, metav1.CreateOptions{})
			return err
		}
		held := rbacv1.PolicyRule{Verbs: []string{"create"}, APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles"}}
		t.eventually(ctx, "what climber holds", func() string {
			if err := create("held", held); err != nil && !apierrors.IsAlreadyExists(err) {
				return err.Error()
			}
			return ""
		})
		err := create("more", rbacv1.PolicyRule{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}})
		t.refused(err, "a role with more", "Forbidden", apierrors.IsForbidden)
	}},
}
