// Command kubeworker evaluates trials in a Kubernetes cluster: each by a Job, or by
// another resource that a template makes.
package main

import (
	"context"
	"os"

	"github.com/fantasia-hpo/fantasia/internal/app/kubeworkercli"
	"github.com/fantasia-hpo/fantasia/internal/base/lifecycle"
)

// version is set by the linker: -X main.version=0.1.0.
var version = "dev"

func main() {
	lifecycle.Exit(func(ctx context.Context) int { return kubeworkercli.Main(ctx, os.Args[1:], version, os.Stderr) })
}
