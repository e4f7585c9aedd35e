// Command worker evaluates trials: it takes assignments of its pool, runs their
// program, and reports the results.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/fantasia-hpo/fantasia/internal/app/workercli"
)

// version is set by the linker: -X main.version=0.1.0.
var version = "dev"

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A second signal ends the process at once.
	context.AfterFunc(ctx, stop)
	return workercli.Main(ctx, os.Args[1:], version, os.Stderr)
}
