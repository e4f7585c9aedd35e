package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/internal/base/each"
	"github.com/fantasia-hpo/fantasia/internal/show/layout"
	"github.com/fantasia-hpo/fantasia/messaging"
)

func newWorkerCommand(a *app) *cobra.Command {
	r := &remote{}
	c := &cobra.Command{
		Use:     "worker",
		Short:   "Show the workers of a server",
		Example: "  fantasia worker list --pool gpu",
	}
	r.flags(c)
	return group(c, newWorkerListCommand(a, r))
}

func newWorkerListCommand(a *app, r *remote) *cobra.Command {
	var pool string
	c := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List workers",
		Long: `Lists the workers that the leader has heard. RUNS is what evaluates a worker's
trials: command, a program that it starts; sidecar, training code that asks for
trials over HTTP; kubejob, a Job of Kubernetes for each attempt; - if it does not
say. COMMANDS says whose commands it starts, its own or the studies'.`,
	}
	c.Flags().StringVar(&pool, "pool", "", "only workers of this `POOL`")
	return a.shows(c, func(cmd *cobra.Command, _ []string) (shown, error) {
		resp, err := ask(cmd, r, service.ListWorkers, &fantasiav1.ListWorkersRequest{Pool: pool})
		list := each.Of(resp.GetWorkers(), view.FromWorker)
		return shown{list, func(w screen) error { return workerTable(w, list, time.Now()) }}, err
	})
}

// workerTable prints a list of workers at the time now.
func workerTable(w screen, workers []view.Worker, now time.Time) error {
	rows := make([][]string, len(workers))
	for i, v := range workers {
		state := "active"
		if v.Leaving {
			state = "leaving"
		}
		commands := "own"
		switch {
		case v.StudyCommands:
			commands = "studies'"
		case v.Runs != "" && v.Runs != messaging.RunsCommand:
			commands = "-" // it starts no program
		}
		rows[i] = []string{
			v.Worker, v.Pool, state, fmt.Sprintf("%d/%d", v.Slots-v.Free, v.Slots), orDash(v.Runs), commands,
			orDash(v.Host), between(v.Seen, now), orDash(v.Software),
		}
	}
	return w.table([]layout.Column{
		{Head: "WORKER", Least: 12}, {Head: "POOL", Rank: 2, Least: 8}, {Head: "STATE"}, {Head: "BUSY"}, {Head: "RUNS", Rank: 4},
		{Head: "COMMANDS", Rank: 6}, {Head: "HOST", Rank: 3, Least: 12}, {Head: "HEARD", Rank: 1}, {Head: "SOFTWARE", Rank: 5},
	}, rows)
}
