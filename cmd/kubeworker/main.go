// Command kubeworker evaluates trials in a Kubernetes cluster: each by a Job, or by
// another resource that a template makes.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/fantasia-hpo/fantasia/internal/app/kubeworkercli"
)

// version is set by the linker: -X main.version=0.1.0.
var version = "dev"

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A second signal ends the process at once.
	context.AfterFunc(ctx, stop)
	return kubeworkercli.Main(ctx, os.Args[1:], version, os.Stderr)
}
