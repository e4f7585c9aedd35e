package cli

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/fantasia-hpo/fantasia/coordinator/journal"
	"github.com/fantasia-hpo/fantasia/internal/app/local"
	"github.com/fantasia-hpo/fantasia/internal/show/dashboard"
)

const dashboardLong = `Serves the dashboard of a study that a Go program keeps in a file (Options.State), until
Ctrl-C. The pages follow the file while the program writes it. Nothing is changed, and the
program need not run.

Other studies have their dashboard where they run: fantasia run --ui, fantasia serve and
every coordinator serve it.`

func newDashboardCommand(a *app) *cobra.Command {
	var state, listen string
	c := &cobra.Command{
		Use:     "dashboard",
		Short:   "Serve the dashboard of a Go program's study",
		Long:    dashboardLong,
		Example: `  fantasia dashboard --state batches.study`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !journal.Is(state) {
				return usagef(cmd, "--state is %q; want the state file of a Go program (for a study of fantasia run, use fantasia run --ui or "+
					"fantasia report)", state)
			}
			l, err := listenUI(cmd, "listen", listen)
			if err != nil {
				return err
			}
			ready := func(name string) error {
				return say(a.Stdout, "http://%s%sstudies/%s", l.Addr(), dashboard.Path, name)
			}
			err = local.Dashboard(cmd.Context(), state, l, ready, slog.New(slog.NewTextHandler(a.Stderr, nil)))
			if errors.Is(err, local.ErrNoState) {
				return exitWith(ExitUsage, err)
			}
			if err != nil {
				return fmt.Errorf("serve the dashboard: %w", err)
			}
			return nil
		},
	}
	c.Flags().StringVar(&state, "state", "", "state `FILE` of a Go program")
	c.Flags().StringVar(&listen, "listen", uiAddress, "`ADDRESS` of this machine")
	return c
}
