package main

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// candidate runs for the trial's lease and says on a channel when it leads.
func candidate(ctx context.Context, t *trial, name string) (elected <-chan struct{}, ended <-chan struct{}) {
	leads, over := make(chan struct{}), make(chan struct{})
	lock, err := resourcelock.New(resourcelock.LeasesResourceLock, t.namespace, "leader", t.client.CoreV1(), t.client.CoordinationV1(), resourcelock.ResourceLockConfig{Identity: name})
	t.must(err, "make a lock")
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: 4 * time.Second, RenewDeadline: 3 * time.Second, RetryPeriod: 200 * time.Millisecond, ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) { close(leads) }, OnStoppedLeading: func() {}},
	})
	t.must(err, "make an elector")
	go func() {
		defer close(over)
		elector.Run(ctx)
	}()
	return leads, over
}

// electing: one leader at a time.
var electing = []check{
	{"a candidate leads alone until it lets go, and the other takes over", func(ctx context.Context, t *trial) {
		firstContext, resign := context.WithCancel(ctx)
		defer resign()
		secondContext, leave := context.WithCancel(ctx)
		await := func(what string, signal <-chan struct{}) {
			select {
			case <-signal:
			case <-time.After(30 * time.Second):
				t.fail("%s: not after 30 s", what)
			}
		}
		firstLeads, firstEnded := candidate(firstContext, t, "first")
		await("the first leads", firstLeads)
		secondLeads, secondEnded := candidate(secondContext, t, "second")
		defer func() { leave(); <-secondEnded }()
		select {
		case <-secondLeads:
			t.fail("both lead")
		case <-time.After(time.Second):
		}
		resign()
		await("the first ends", firstEnded)
		await("the second leads", secondLeads)
		lease, err := t.client.CoordinationV1().Leases(t.namespace).Get(ctx, "leader", metav1.GetOptions{})
		t.must(err, "get the lease")
		equal(t, "holder", *lease.Spec.HolderIdentity, "second")
		equal(t, "transitions", *lease.Spec.LeaseTransitions, int32(1))
	}},
}
