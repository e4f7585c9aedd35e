// Command coordinator is a replica of Fantasia's coordinator. It campaigns for
// leadership, leads the studies while it is the leader, and serves the API.
package main

import (
	"context"
	"os"

	"github.com/fantasia-hpo/fantasia/internal/app/coordinatorcli"
	"github.com/fantasia-hpo/fantasia/internal/base/lifecycle"
)

// version is set by the linker: -X main.version=0.1.0.
var version = "dev"

func main() {
	lifecycle.Exit(func(ctx context.Context) int { return coordinatorcli.Main(ctx, os.Args[1:], version, os.Stderr) })
}
