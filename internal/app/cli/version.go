package cli

import (
	"runtime"

	"github.com/spf13/cobra"
)

// versionInfo is the output of `fantasia version`.
type versionInfo struct {
	Version  string `json:"version"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func newVersionCommand(a *app) *cobra.Command {
	var output format
	c := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  arguments,
		RunE: func(*cobra.Command, []string) error {
			v := versionInfo{Version: a.Version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
			return output.write(a.Stdout, v, func(w screen) error {
				return say(w, "fantasia %s (%s, %s)", v.Version, v.Go, v.Platform)
			})
		},
	}
	addOutput(c, &output)
	return c
}
