// Command fantasia tunes programs, on this machine or on a server.
package main

import (
	"context"
	"os"

	"github.com/fantasia-hpo/fantasia/internal/app/cli"
	"github.com/fantasia-hpo/fantasia/internal/base/lifecycle"
)

// version is set by the linker: -X main.version=0.1.0.
var version = "dev"

func main() {
	lifecycle.Exit(func(ctx context.Context) int {
		return cli.Main(ctx, os.Args[1:], cli.Options{
			Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Version: version, Plugin: cli.IsPlugin(os.Args[0]),
		})
	})
}
