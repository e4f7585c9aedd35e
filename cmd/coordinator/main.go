// Command coordinator is a replica of Fantasia's coordinator. It campaigns for
// leadership, leads the studies while it is the leader, and serves the API.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/fantasia-hpo/fantasia/internal/app/coordinatorcli"
)

// version is set by the linker: -X main.version=0.1.0.
var version = "dev"

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return coordinatorcli.Main(ctx, os.Args[1:], version, os.Stderr)
}
