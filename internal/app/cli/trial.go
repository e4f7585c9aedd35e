package cli

import (
	"context"
	"crypto/rand"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/structpb"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/internal/app/local"
	"github.com/fantasia-hpo/fantasia/internal/base/each"
	"github.com/fantasia-hpo/fantasia/internal/exchange/fetch"
	"github.com/fantasia-hpo/fantasia/internal/show/diagnosis"
	"github.com/fantasia-hpo/fantasia/study"
)

func newTrialCommand(a *app) *cobra.Command {
	r := &remote{}
	c := &cobra.Command{
		Use:   "trial",
		Short: "Show the trials of a study, and continue one that was stopped early",
		Example: `  fantasia trial list digits --status failed
  fantasia trial list --state .fantasia/digits   # of fantasia run
  fantasia trial get digits 7
  fantasia trial logs digits 7 --follow
  fantasia trial watch digits --status completed -o json`,
	}
	r.flags(c)
	return group(c, newTrialListCommand(a, r), newTrialGetCommand(a, r), newTrialLogsCommand(a, r), newTrialEditCommand(a, r),
		newTrialContinueCommand(a, r), newTrialWatchCommand(a, r))
}

func newTrialListCommand(a *app, r *remote) *cobra.Command {
	var only, labels []string
	c := r.reads(&cobra.Command{
		Use:     "list STUDY",
		Aliases: []string{"ls"},
		Short:   "List the trials of a study",
	})
	addStates(c, &only)
	labelFilter(c, &labels)
	return a.shows(c, func(cmd *cobra.Command, args []string) (shown, error) {
		name, _, err := r.studyIn(cmd, args, 0)
		if err != nil {
			return shown{}, err
		}
		q := &fantasiav1.ListTrialsRequest{}
		if q.Parent, q.States, err = selection(cmd, name, only); err != nil {
			return shown{}, err
		}
		if q.Labels, err = wantedLabels(cmd, labels); err != nil {
			return shown{}, err
		}
		var list []view.Trial
		err = r.call(cmd, func(ctx context.Context, c service) error {
			trials, err := fetch.Trials(ctx, c, q)
			if err != nil {
				return err
			}
			list = each.Of(trials, view.FromTrial)
			objectives, err := fetch.Mark(ctx, c, q.GetParent(), list)
			for i := range list {
				list[i].Objectives = objectives
			}
			return err
		})
		return shown{list, func(w screen) error { return trialTable(w, list) }}, err
	})
}

func newTrialGetCommand(a *app, r *remote) *cobra.Command {
	c := r.reads(&cobra.Command{
		Use:   "get STUDY TRIAL",
		Short: "Show one trial: its point, why it was suggested, its attempts, and its curves",
	})
	return a.shows(c, func(cmd *cobra.Command, args []string) (shown, error) {
		t, err := r.trial(cmd, args)
		if err != nil {
			return shown{}, err
		}
		v := view.FromTrial(t)
		err = r.call(cmd, func(ctx context.Context, c service) (err error) {
			v.Measurements, err = fetch.Measurements(ctx, c, t.GetName())
			if err != nil {
				return err
			}
			parent, _, _ := strings.Cut(t.GetName(), "/trials/")
			return fetch.MarkOne(ctx, c, parent, &v)
		})
		if err == nil && v.State == study.TrialRunning {
			v.Takes = r.takes(cmd, t.GetName(), &v)
		}
		return shown{v, func(w screen) error {
			if err := trialBlock(w, t, v, r.idle); err != nil {
				return err
			}
			width, _ := terminal(a.Stdout)
			return curves(w, v.Measurements, width)
		}}, err
	})
}

func newTrialContinueCommand(a *app, r *remote) *cobra.Command {
	c := r.reads(&cobra.Command{
		Use:   "continue STUDY TRIAL",
		Short: "Run a trial to its end that was stopped early",
		Long: `Adds a trial with the parameters of one that was stopped early (PRUNED). It comes before
the next suggestion, and is not stopped early. It continues from the checkpoint of the
stopped trial, if that has left one, and begins anew otherwise. It counts against
maxTrials, but may be beyond it: a study that has ended with its last trial goes on for
it alone, and ends again. With --state, which names the state directory of fantasia run,
the trial runs when the study is run again.`,
		Example: `  fantasia trial continue digits 7
  fantasia trial continue digits 7 --state .fantasia && fantasia run digits.yaml`,
	})
	return a.shows(c, func(cmd *cobra.Command, args []string) (shown, error) {
		name, number, err := r.trialIn(cmd, args)
		if err != nil {
			return shown{}, err
		}
		if r.state != "" {
			added, err := local.Continue(cmd.Context(), r.state, name, number, a.Version)
			if err != nil {
				return shown{}, err
			}
			resp, err := ask(cmd, r, service.GetTrial, &fantasiav1.GetTrialRequest{Name: view.TrialName(name, added)})
			if err != nil {
				return shown{}, err
			}
			return line(view.FromTrial(resp.GetTrial()), "trial %d continues trial %d when the study is run again", added, number), nil
		}
		resp, err := ask(cmd, r, service.EnqueueTrial, &fantasiav1.EnqueueTrialRequest{
			Parent: "studies/" + name, Parameters: &structpb.Struct{}, Continues: int32(number), RequestId: rand.Text(),
		})
		if err != nil {
			return shown{}, err
		}
		t := view.FromTrial(resp.GetTrial())
		return line(t, "trial %d continues trial %d", t.Trial, number), nil
	})
}

// mostTimed is the number of a trial up to which the trials are fetched to say how long it takes.
const mostTimed = 3000

// takes returns how long a trial with a resource name is expected to take, nil if that is not known.
func (r *remote) takes(cmd *cobra.Command, name string, t *view.Trial) *view.Takes {
	parent, _, _ := strings.Cut(name, "/trials/")
	if t.Trial > mostTimed {
		return nil
	}
	s, trials, err := fetch.StudyAndTrials(r.within(cmd), parent)
	if err != nil { // the trial can be shown without
		return nil
	}
	pace, err := diagnosis.NewPace(cmd.Context(), s, view.List(trials), time.Now())
	if err != nil {
		return nil
	}
	return pace.Takes(t, time.Now())
}

func newTrialWatchCommand(a *app, r *remote) *cobra.Command {
	var output format
	var only []string
	var all bool
	c := &cobra.Command{
		Use:               "watch STUDY",
		Short:             "Follow the trials of a study until it ends",
		ValidArgsFunction: r.completeStudy,
		RunE: func(cmd *cobra.Command, args []string) error {
			if r.state != "" {
				return usagef(cmd, "trial watch follows a study on a server; fantasia run shows a local one live")
			}
			parent, states, err := selection(cmd, args[0], only)
			if err != nil {
				return err
			}
			// A resumed watch repeats what was shown before.
			shown := map[int]study.TrialState{}
			mark := func(*view.Trial) error { return nil }
			return watch(cmd, r, func(ctx context.Context, c service) (*connect.ServerStreamForClient[fantasiav1.WatchTrialsResponse], error) {
				mark = func(t *view.Trial) error {
					if t.State != study.TrialCompleted {
						return nil
					}
					return fetch.MarkOne(ctx, c, parent, t) // by the limits as they are now
				}
				return c.WatchTrials(ctx, connect.NewRequest(&fantasiav1.WatchTrialsRequest{Parent: parent, States: states, IncludeExisting: all}))
			}, func(m *fantasiav1.WatchTrialsResponse) error {
				t := view.FromTrial(m.GetTrial())
				if shown[t.Trial] == t.State {
					return nil
				}
				if err := mark(&t); err != nil {
					return err
				}
				shown[t.Trial] = t.State
				return output.stream(a.Stdout, t, func(w screen) error { return say(w, "%s", trialLine(t)) })
			})
		},
	}
	c.Flags().BoolVar(&all, "all", false, "first show the trials that exist already")
	r.stateFlag(c)
	_ = c.Flags().MarkHidden("state") // it was --status
	addStates(c, &only)
	addOutput(c, &output)
	return c
}

// trial fetches the trial that the arguments STUDY TRIAL name.
func (r *remote) trial(cmd *cobra.Command, args []string) (*fantasiav1.Trial, error) {
	name, number, err := r.trialIn(cmd, args)
	if err != nil {
		return nil, err
	}
	resp, err := ask(cmd, r, service.GetTrial, &fantasiav1.GetTrialRequest{Name: view.TrialName(name, number)})
	return resp.GetTrial(), err
}

// addStates adds --status to a command.
func addStates(c *cobra.Command, only *[]string) {
	c.Flags().StringSliceVar(only, "status", nil, "only trials in these `STATES`: "+strings.Join(fetch.TrialStates(), ", "))
	choices(c, "status", fetch.TrialStates()...)
}

// selection returns the study and the states that a command applies to.
func selection(cmd *cobra.Command, nameOrID string, only []string) (parent string, states []fantasiav1.TrialState, err error) {
	if parent, err = studyName(cmd, nameOrID); err != nil {
		return "", nil, err
	}
	for _, name := range only {
		name = strings.ToLower(strings.TrimSpace(name))
		if !slices.Contains(fetch.TrialStates(), name) {
			return "", nil, usagef(cmd, "--status is %q; want one or more of %s", name, strings.Join(fetch.TrialStates(), ", "))
		}
		states = append(states, fetch.TrialState(name))
	}
	return parent, states, nil
}
