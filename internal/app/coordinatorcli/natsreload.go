package coordinatorcli

import (
	"errors"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/fantasia-hpo/fantasia/internal/app/coordinatorcli/natsreload"
)

func natsReloadCommand() *cobra.Command {
	o := natsreload.Options{Every: time.Second}
	cmd := &cobra.Command{
		Use:   "nats-reload --file FILE",
		Short: "Reload a nats-server whenever its configuration changes",
		Long: `Sends nats-server SIGHUP when a file of its configuration is newer than the
configuration that the server uses. It runs beside the server, in the same PID
namespace and as the same user, until it is interrupted.`,
		Example: `  coordinator nats-reload --file /etc/nats/accounts.conf --pid-file /tmp/nats.pid`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(o.Files) == 0 {
				return errors.New("--file is empty; want at least one file of nats-server's configuration")
			}
			o.Log = slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
			return natsreload.Run(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&o.Files, "file", nil, "a file of nats-server's configuration; may be repeated")
	f.StringVar(&o.PIDFile, "pid-file", "/tmp/nats.pid", "nats-server's pid_file")
	f.StringVar(&o.Monitor, "monitor", "http://localhost:8222", "address of nats-server's monitoring port")
	return cmd
}
