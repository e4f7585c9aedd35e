package coordinatorcli

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fantasia-hpo/fantasia/internal/app/coordinatorcli/natsreload"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/messaging/natsbus"
)

func natsConfigCommand() *cobra.Command {
	var a natsbus.Accounts
	var workers []string
	var store string
	var accountsOnly bool
	cmd := &cobra.Command{
		Use:   "nats-config --pool NAME…",
		Short: "Print a NATS configuration that confines workers",
		Long: `Prints the configuration that nats-server needs for Fantasia: JetStream that syncs
to disk before it acknowledges, and two accounts. The coordinators' account holds
the streams. The workers' account imports only what a worker may call, for its own
pool.

The users are "coordinator", "pool-NAME" for each --pool, whose workers share a
password, and "worker-POOL.NAME" for each --worker, whose password works only for
that worker's name. A user's password, or its bcrypt hash, comes from a variable in
nats-server's environment: $PASSWORD_COORDINATOR, $PASSWORD_POOL_NAME and so on.
nats-server parses the variable as a configuration value, so the variable must
contain double quotes around the password. --identity uses a bcrypt hash, a public
NKey or another variable instead.`,
		Example: `  coordinator nats-config --pool default --pool gpu > nats.conf
  PASSWORD_COORDINATOR='"…"' PASSWORD_POOL_DEFAULT='"…"' PASSWORD_POOL_GPU='"…"' nats-server -c nats.conf`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, w := range workers {
				pool, name, ok := strings.Cut(w, "/")
				if !ok {
					return fmt.Errorf("--worker is %q; want POOL/NAME", w)
				}
				a.Workers = append(a.Workers, messaging.WorkerName(pool, name))
			}
			text, err := a.Config()
			if err != nil {
				return err
			}
			if !accountsOnly {
				text = fmt.Sprintf("jetstream { store_dir: %q, sync_interval: always }\n%s", store, text)
			}
			_, err = fmt.Fprint(cmd.OutOrStdout(), text)
			return err
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&a.Pools, "pool", nil, "a pool whose workers share a password; may be repeated")
	f.StringSliceVar(&workers, "worker", nil, "POOL/NAME of a worker with a password of its own; may be repeated")
	f.StringToStringVar(&a.Identity, "identity", nil, "USER=IDENTITY: a bcrypt hash, a public NKey or a $VARIABLE; may be repeated")
	f.Int64Var(&a.MaxStore, "max-store", 0, "limit of the streams' data on disk, in bytes; 0 is no limit")
	f.StringVar(&store, "store", "nats", "directory of JetStream's data")
	f.BoolVar(&accountsOnly, "accounts-only", false, "print only the accounts, to be included in another configuration")
	return cmd
}

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
