package main

import (
	"errors"
	"fmt"
	"sort"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
)

// The libraries read the clock. Times they set are later than any of ours and become the time of the step.
var libraryTime = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)

func stepTime(step int) string {
	return time.Date(2020, 1, 1, 0, 0, step, 0, time.UTC).Format(time.RFC3339)
}

// A step is one write. The live object of a step is the result of the one before it, unless it is said.
type step struct {
	Kind        string `json:"k,omitempty"`
	First       bool   `json:"first,omitempty"`
	Live        object `json:"live,omitempty"`
	Operation   string `json:"op"`
	Manager     string `json:"m"`
	Version     string `json:"v"`
	Subresource string `json:"sub,omitempty"`
	Force       bool   `json:"f,omitempty"`
	Now         string `json:"now"`
	// Whether the input carries the entries of the live object, which are then left out here.
	Carries bool   `json:"same,omitempty"`
	In      object `json:"in"`
	Out     any    `json:"out,omitempty"`
	Entries []any  `json:"mf,omitempty"`
	Error   string `json:"e,omitempty"`
	Causes  []any  `json:"c,omitempty"`
}

// stamped puts the time of the step where the library put its own.
func stamped(obj runtime.Object, now string) {
	at, err := time.Parse(time.RFC3339, now)
	check(err)
	accessor, err := meta.Accessor(obj)
	check(err)
	entries := accessor.GetManagedFields()
	for i := range entries {
		if entries[i].Time != nil && entries[i].Time.After(libraryTime) {
			entries[i].Time = &metav1.Time{Time: at}
		}
	}
	accessor.SetManagedFields(entries)
}

// write runs a step on a live object and gives what is stored after it.
func (s *step) write(manager *managedfields.FieldManager, live, in runtime.Object, asObject func(runtime.Object) object) (runtime.Object, bool) {
	var result runtime.Object
	var err error
	if s.Operation == "apply" {
		result, err = manager.Apply(live, in, s.Manager, s.Force)
	} else {
		result = manager.UpdateNoErrors(live, in, s.Manager)
	}
	if err != nil {
		s.Error = err.Error()
		var status *apierrors.StatusError
		if errors.As(err, &status) && status.ErrStatus.Details != nil {
			for _, cause := range status.ErrStatus.Details.Causes {
				s.Causes = append(s.Causes, cause.Message+"|"+cause.Field)
			}
			sort.Slice(s.Causes, func(i, j int) bool { return s.Causes[i].(string) < s.Causes[j].(string) })
		}
		// Several errors come in no order.
		return live, !strings.Contains(s.Error, "errors:")
	}
	stamped(result, s.Now)
	out := asObject(result)
	before := asObject(live)
	entries := takeEntries(out)
	old := takeEntries(before)
	for i, entry := range entries {
		for at, known := range old {
			if string(encode(entry)) == string(encode(known)) {
				entries[i] = at
				break
			}
		}
	}
	s.Entries = entries
	input := copiedObject(s.In)
	if sent := takeEntries(input); s.Operation == "update" && len(sent) > 0 && string(encode(sent)) == string(encode(old)) {
		s.Carries, s.In = true, copiedObject(input)
	}
	switch text := string(encode(out)); text {
	case string(encode(input)):
		s.Out = "in"
	case string(encode(before)):
		s.Out = "live"
	default:
		s.Out = out
	}
	return result, true
}

func takeEntries(value object) []any {
	metadata, _ := value["metadata"].(object)
	entries, _ := metadata["managedFields"].([]any)
	delete(metadata, "managedFields")
	return entries
}

func unstructuredObject(obj runtime.Object) object {
	return copiedObject(obj.(*unstructured.Unstructured).Object)
}

func short(value string) string {
	return fmt.Sprintf("%.40s", value)
}
