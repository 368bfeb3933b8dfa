package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// stand runs for a lease as one candidate among others, until its standard input ends. It tells what happens to it, one
// line each: "leading", "stopped", and "sees NAME" for each leader it learns of.
func stand(config *rest.Config, namespace, name, identity string) error {
	ctx, resign := context.WithTimeout(context.Background(), patience)
	defer resign()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		resign()
	}()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	lock, err := resourcelock.New(resourcelock.LeasesResourceLock, namespace, name, client.CoreV1(), client.CoordinationV1(), resourcelock.ResourceLockConfig{Identity: identity})
	if err != nil {
		return err
	}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: time.Minute, RenewDeadline: 40 * time.Second, RetryPeriod: 200 * time.Millisecond, ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { fmt.Println("leading") },
			OnStoppedLeading: func() { fmt.Println("stopped") },
			OnNewLeader:      func(leader string) { fmt.Println("sees " + leader) },
		},
	})
	if err != nil {
		return err
	}
	elector.Run(ctx)
	return nil
}
