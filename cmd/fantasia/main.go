// Command fantasia tunes programs, on this machine or on a server.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/fantasia-hpo/fantasia/internal/app/cli"
)

// version is set by the linker: -X main.version=0.1.0.
var version = "dev"

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The first signal ends the work cleanly. Signals then have their usual effect
	// again, so a second one ends the program at once.
	context.AfterFunc(ctx, stop)
	return cli.Main(ctx, os.Args[1:], cli.Options{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Version: version, Plugin: cli.IsPlugin(os.Args[0]),
	})
}
