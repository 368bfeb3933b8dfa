package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record"
)

// recording: events, by the recorders that controllers use.
var recording = []check{
	{"an event is recorded, repeated into a series and read through both groups", func(ctx context.Context, t *trial) {
		regarding, err := t.client.CoreV1().ConfigMaps(t.namespace).Create(ctx, &corev1.ConfigMap{ObjectMeta: named("subject")}, metav1.CreateOptions{})
		t.must(err, "create the config map")
		broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: t.client.EventsV1()})
		defer broadcaster.Shutdown()
		t.must(broadcaster.StartRecordingToSinkWithContext(ctx), "start recording")
		recorder := broadcaster.NewRecorder(scheme.Scheme, "berth.dev/client-go")
		list := func(want func(eventsv1.Event) string) {
			t.eventually(ctx, "the event", func() string {
				found, err := t.client.EventsV1().Events(t.namespace).List(ctx, metav1.ListOptions{})
				t.must(err, "list the events")
				if len(found.Items) != 1 {
					return fmt.Sprintf("there are %d, want 1", len(found.Items))
				}
				return want(found.Items[0])
			})
		}
		recorder.Eventf(regarding, nil, corev1.EventTypeWarning, "Evicted", "Evicting", "left for %s", "good")
		list(func(event eventsv1.Event) string {
			got := fmt.Sprintf("%s/%s/%s/%s/%s", event.Type, event.Reason, event.Action, event.Note, event.Regarding.Name)
			if want := "Warning/Evicted/Evicting/left for good/subject"; got != want {
				return fmt.Sprintf("got %s, want %s", got, want)
			}
			return ""
		})
		recorder.Eventf(regarding, nil, corev1.EventTypeWarning, "Evicted", "Evicting", "left for %s", "good")
		list(func(event eventsv1.Event) string {
			if event.Series == nil || event.Series.Count != 2 {
				return fmt.Sprintf("series %+v, want a count of 2", event.Series)
			}
			return ""
		})
		found, err := t.client.CoreV1().Events(t.namespace).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=subject,type=Warning"})
		t.must(err, "list the events of the core group")
		equal(t, "events in the core group", len(found.Items), 1)
		equal(t, "message", found.Items[0].Message, "left for good")
		equal(t, "reporting controller", found.Items[0].ReportingController, "berth.dev/client-go")
	}},
	{"an event of the core group is counted up", func(ctx context.Context, t *trial) {
		subject, err := t.client.CoreV1().ConfigMaps(t.namespace).Create(ctx, &corev1.ConfigMap{ObjectMeta: named("subject")}, metav1.CreateOptions{})
		t.must(err, "create the config map")
		broadcaster := record.NewBroadcaster(record.WithContext(ctx))
		defer broadcaster.Shutdown()
		broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: t.client.CoreV1().Events(t.namespace)})
		recorder := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "client-go"})
		for range 3 {
			recorder.Event(subject, corev1.EventTypeNormal, "Seen", "seen again")
		}
		t.eventually(ctx, "the event", func() string {
			found, err := t.client.CoreV1().Events(t.namespace).List(ctx, metav1.ListOptions{FieldSelector: "reason=Seen"})
			t.must(err, "list the events")
			if len(found.Items) != 1 || found.Items[0].Count != 3 {
				return fmt.Sprintf("got %d events, want one with a count of 3", len(found.Items))
			}
			return ""
		})
	}},
}
