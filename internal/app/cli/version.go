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
	return a.shows(&cobra.Command{
		Use:   "version",
		Short: "Print the version",
	}, func(*cobra.Command, []string) (shown, error) {
		v := versionInfo{Version: a.Version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
		return line(v, "fantasia %s (%s, %s)", v.Version, v.Go, v.Platform), nil
	})
}
