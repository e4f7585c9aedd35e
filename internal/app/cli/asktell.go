package cli

import (
	"github.com/spf13/cobra"

	"github.com/fantasia-hpo/fantasia/internal/app/inject"
	"github.com/fantasia-hpo/fantasia/optimizer/asktell"
)

func newAskTellCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "ask-tell STUDY.yaml",
		Short: "Run only an optimiser, driven by JSON lines on standard input",
		Long: `Runs only the optimiser of a study, for benchmarks and for embedding. There is no
server and no worker, and the study's budget and program are not used. Each line
on standard input is a request, which gets one line on standard output:

  {"ask": 3}
    → {"suggestions": [{"trial": 1, "parameters": {…}, "why": {…}}, …]}
  {"ask": 1, "running": [{"trial": 2, "seconds": 40}]}
    → the same, knowing how long a trial has run
  {"tell": [{"trial": 1, "metrics": {"loss": 0.3}}, {"trial": 2, "failed": true},
            {"trial": 3, "infeasible": true}, {"parameters": {…}, "metrics": {…}}]}
    → {"told": 4}
  {"recommend": true}
    → {"recommended": {"trial": 1, "parameters": {…}, "mean": …, "sd": …}}
    → {"recommended": null}, if nothing has completed or the algorithm has no model

Trials that were asked for and not told are pending, and the optimiser takes them
into account. In a study with spec.cost, the metric of that name is what a trial has
cost, also of one that failed; "seconds" is how long it took. With the setting cost of
the algorithm, the reason of a suggestion says what it is expected to cost or to take.
An invalid request gets {"error": "…"} and changes nothing.`,
		Example: `  echo '{"ask": 2}' | fantasia ask-tell digits.yaml`,
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := a.readStudyFile(cmd, args[0])
			if err != nil {
				return err
			}
			s, err := inject.ParseStudy(args[0], []byte(text))
			if err != nil {
				return err
			}
			return asktell.Serve(cmd.Context(), s, a.Stdin, a.Stdout)
		},
	}
}
