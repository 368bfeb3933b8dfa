package main

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// failure ends a check; attempt catches it.
type failure string

// trial is what a check works with: clients of the administrator and a namespace of its own.
type trial struct {
	config    *rest.Config
	client    kubernetes.Interface
	namespace string
}

// typed makes a typed client that speaks protobuf, as controllers configure it, after change has had its way.
func (t *trial) typed(change func(*rest.Config)) kubernetes.Interface {
	config := rest.CopyConfig(t.config)
	config.ContentType = apiruntime.ContentTypeProtobuf
	config.AcceptContentTypes = apiruntime.ContentTypeProtobuf + "," + apiruntime.ContentTypeJSON
	if change != nil {
		change(config)
	}
	client, err := kubernetes.NewForConfig(config)
	t.must(err, "make a typed client")
	return client
}

// as makes a typed client of another user.
func (t *trial) as(user string, groups ...string) kubernetes.Interface {
	return t.typed(func(config *rest.Config) {
		config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
	})
}

func (t *trial) makeNamespace(ctx context.Context) string {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "client-go-"}}
	made, err := t.client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
	t.must(err, "make a namespace")
	return made.Name
}

// fail ends the check, naming the line that found the problem.
func (t *trial) fail(format string, arguments ...any) {
	for depth := 1; ; depth++ {
		_, file, line, known := runtime.Caller(depth)
		if !known || filepath.Base(file) != "trial.go" {
			panic(failure(fmt.Sprintf("line %d of %s: %s", line, filepath.Base(file), fmt.Sprintf(format, arguments...))))
		}
	}
}

// must ends the check when err is one.
func (t *trial) must(err error, doing string) {
	if err != nil {
		t.fail("cannot %s: %v", doing, err)
	}
}

// refused ends the check unless err is of the kind that is looked for.
func (t *trial) refused(err error, doing, want string, is func(error) bool) {
	if err == nil {
		t.fail("%s was allowed, want %s", doing, want)
	} else if !is(err) {
		t.fail("%s: want %s, got %s (%v)", doing, want, apierrors.ReasonForError(err), err)
	}
}

// equal ends the check with a difference unless both are the same.
func equal[T any](t *trial, what string, got, want T) {
	if difference := cmp.Diff(want, got); difference != "" {
		t.fail("%s differs (-want +got):\n%s", what, difference)
	}
}

// eventually looks until condition says nothing, and ends the check with what it said last.
func (t *trial) eventually(ctx context.Context, what string, condition func() string) {
	last := "never looked at"
	err := wait.PollUntilContextTimeout(ctx, 25*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
		last = condition()
		return last == "", nil
	})
	if err != nil {
		t.fail("%s: %s", what, last)
	}
}

func pointer[T any](value T) *T { return &value }

func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }

func labelled(name string, labels map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Labels: labels}
}
