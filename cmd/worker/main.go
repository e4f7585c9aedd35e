// Command worker evaluates trials: it takes assignments of its pool, runs their
// program, and reports the results.
package main

import (
	"context"
	"os"

	"github.com/fantasia-hpo/fantasia/internal/app/workercli"
	"github.com/fantasia-hpo/fantasia/internal/base/lifecycle"
)

// version is set by the linker: -X main.version=0.1.0.
var version = "dev"

func main() {
	lifecycle.Exit(func(ctx context.Context) int { return workercli.Main(ctx, os.Args[1:], version, os.Stderr) })
}
