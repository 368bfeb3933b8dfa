// Command client-go exercises a Kubernetes API server the way controllers written in Go do: with client-go's typed,
// dynamic and metadata clients (protobuf where they speak it), informers, leader election, server-side apply, event
// recorders and discovery.
//
// It reads KUBECONFIG, prints one line a check and ends with 1 when one failed. Arguments are regular expressions: only
// checks that one of them matches are run. `stand NAMESPACE NAME IDENTITY` makes it a candidate for a lease instead, for
// tests of other electors. It writes into namespaces of its own and deletes them when it is done.
package main

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// patience is how long one check may take: forever, for a server that answers in milliseconds.
const patience = 90 * time.Second

// check is one thing that a server must do.
type check struct {
	name string
	run  func(ctx context.Context, t *trial)
}

func main() {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		fmt.Fprintf(os.Stderr, "no configuration from KUBECONFIG=%q: %v\n", os.Getenv("KUBECONFIG"), err)
		os.Exit(2)
	}
	config.QPS = -1
	config.UserAgent = "berth-client-go"

	if len(os.Args) == 5 && os.Args[1] == "stand" {
		if err := stand(config, os.Args[2], os.Args[3], os.Args[4]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}

	var wanted []*regexp.Regexp
	for _, argument := range os.Args[1:] {
		pattern, err := regexp.Compile(argument)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		wanted = append(wanted, pattern)
	}

	ran, failed := 0, 0
	for _, check := range everything() {
		if !matches(check.name, wanted) {
			continue
		}
		ran++
		begun := time.Now()
		if problem := attempt(config, check); problem != "" {
			failed++
			fmt.Printf("FAIL %s\n     %s\n", check.name, strings.ReplaceAll(strings.TrimSpace(problem), "\n", "\n     "))
		} else {
			fmt.Printf("ok   %s (%d ms)\n", check.name, time.Since(begun).Milliseconds())
		}
	}
	fmt.Printf("%d checks, %d failed\n", ran, failed)
	if failed > 0 || ran == 0 {
		os.Exit(1)
	}
}

func everything() []check {
	var all []check
	for _, group := range [][]check{
		objects, workloads, deletions, lists, watches, informing, applying, custom, recording, describing, evicting, permitting, electing,
	} {
		all = append(all, group...)
	}
	return all
}

func matches(name string, patterns []*regexp.Regexp) bool {
	for _, pattern := range patterns {
		if pattern.MatchString(name) {
			return true
		}
	}
	return len(patterns) == 0
}

// attempt runs one check in a namespace of its own and gives what was wrong, if anything was.
func attempt(config *rest.Config, check check) (problem string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	t := &trial{config: config}
	defer func() {
		if caught := recover(); caught != nil {
			stopped, expected := caught.(failure)
			if !expected {
				panic(caught)
			}
			problem = string(stopped)
		}
	}()
	t.client = t.typed(nil)
	t.namespace = t.makeNamespace(ctx)
	defer func() {
		background := metav1.DeletePropagationBackground
		// Not what is being checked; a namespace that stays behind disturbs nobody.
		_ = t.client.CoreV1().Namespaces().Delete(context.WithoutCancel(ctx), t.namespace, metav1.DeleteOptions{PropagationPolicy: &background})
	}()
	check.run(ctx, t)
	return ""
}
