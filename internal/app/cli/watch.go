package cli

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/internal/base/backoff"
	"github.com/fantasia-hpo/fantasia/internal/base/each"
	"github.com/fantasia-hpo/fantasia/internal/exchange/fetch"
	"github.com/fantasia-hpo/fantasia/internal/show/display"
	"github.com/fantasia-hpo/fantasia/study"
)

// A broken watch is resumed, as a coordinator may restart.
const (
	watchRetry    = time.Second
	watchPatience = time.Minute
)

func newStudyWatchCommand(a *app, r *remote) *cobra.Command {
	var output format
	c := &cobra.Command{
		Use:   "watch STUDY",
		Short: "Follow a study until it ends",
		Long: `Follows a study until it ends: in place on a terminal, otherwise with one line
whenever trials have ended. Exits with 0 if the study completed or was stopped, and
with 3 if it failed or no trial completed, so scripts can wait for a study.`,
		ValidArgsFunction: r.completeStudy,
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := studyName(cmd, args[0])
			if err != nil {
				return err
			}
			var last view.Study
			show := func(s *fantasiav1.Study) error {
				return output.stream(a.Stdout, last, func(w screen) error { return say(w, "%s", studyLine(s)) })
			}
			_, live := terminal(a.Stdout)
			if live = live && output == formatText; live {
				l := &liveWatch{remote: r, cmd: cmd, progress: display.NewProgress(cmd.Context(), direct(a.Stdout), true)}
				defer l.forecast.Wait()
				ctx, cancel := context.WithCancel(cmd.Context())
				defer cancel()
				l.ctx = ctx
				line := show
				show = func(s *fantasiav1.Study) error {
					l.show(s)
					if last.State.Terminal() {
						l.progress.Close()
						return line(s)
					}
					return nil
				}
				defer l.progress.Close()
			}
			err = watch(cmd, r, func(ctx context.Context, c service) (*connect.ServerStreamForClient[fantasiav1.WatchStudyResponse], error) {
				return c.WatchStudy(ctx, connect.NewRequest(&fantasiav1.WatchStudyRequest{Name: name}))
			}, func(m *fantasiav1.WatchStudyResponse) error {
				before := last
				last = view.FromStudy(m.GetStudy())
				if !news(before, last) && !live {
					return nil
				}
				return show(m.GetStudy())
			})
			if err == nil && (last.State == study.Failed || last.State.Terminal() && last.Trials.Completed == 0) {
				return exitWith(ExitFailed, nil)
			}
			return err
		},
	}
	addOutput(c, &output)
	return c
}

// news reports whether a change is worth showing. A trial that waits or is handed out
// is not.
func news(before, now view.Study) bool {
	b, n := before.Trials, now.Trials
	b.Pending, b.Queued, b.Running = n.Pending, n.Queued, n.Running
	return before.State != now.State || b != n
}

// watch opens a stream and passes each of its messages to show until the stream ends.
// If the server goes away, it opens the stream again, for up to a minute without a
// message.
func watch[M any](cmd *cobra.Command, r *remote,
	open func(context.Context, service) (*connect.ServerStreamForClient[M], error), show func(*M) error,
) error {
	client, done, err := r.client(cmd)
	if err != nil {
		return err
	}
	defer done()
	ctx := cmd.Context()
	reached := false
	for heard := time.Now(); ; {
		stream, err := open(ctx, client)
		if err == nil {
			err = follow(stream, func(m *M) error {
				reached, heard = true, time.Now()
				return show(m)
			})
		}
		err = uncancelled(ctx, err)
		if err == nil || connect.CodeOf(err) != connect.CodeUnavailable || !reached || time.Since(heard) > watchPatience {
			return r.explain(err)
		}
		if !backoff.Sleep(ctx, watchRetry) {
			return ctx.Err()
		}
	}
}

// follow passes each message to show until the stream ends.
func follow[M any](stream *connect.ServerStreamForClient[M], show func(*M) error) (err error) {
	defer func() { err = errors.Join(err, stream.Close()) }()
	for stream.Receive() {
		if err := show(stream.Msg()); err != nil {
			return err
		}
	}
	return stream.Err()
}

// detailEvery is how often a live watch asks which trials run and which failed.
const detailEvery = time.Second

// liveWatch shows a server's study as a live display does a local one.
type liveWatch struct {
	remote   *remote
	cmd      *cobra.Command
	progress *display.Progress
	forecast display.Forecast
	ctx      context.Context // of forecasts
	now      display.Now
	asked    time.Time
}

// show takes the newest state of the study. What runs and what failed is asked for,
// once a second at most; where the server does not answer, it stays as it was.
func (l *liveWatch) show(s *fantasiav1.Study) {
	v := view.FromStudy(s)
	failed := l.now.Counts.Failed
	l.now.Study, l.now.Metric, l.now.State = v.Study, s.GetObjective().GetMetric(), v.State
	l.now.MaxTrials, l.now.Counts, l.now.Cost = int(s.GetMaxTrials()), v.Trials, v.Cost
	l.now.MaxDuration = s.GetMaxDuration().AsDuration()
	l.now.At, l.now.Elapsed = time.Now(), s.GetElapsed().AsDuration()
	l.now.Best, l.now.Recommended = v.Best, record.Recommendation{}
	if v.Best != nil {
		l.now.Parameters = slices.Sorted(maps.Keys(v.Best.Parameters))
	}
	if r := v.Recommended; r != nil {
		l.now.Recommended = record.Recommendation{Trial: r.Trial, Mean: r.Mean, SD: r.SD, Front: r.Front}
	}
	if l.now.At.Sub(l.asked) >= detailEvery {
		l.asked = l.now.At
		l.running(s.GetName())
		if v.Trials.Failed != failed || l.now.FailedTrial == 0 && v.Trials.Failed > 0 {
			l.failed(s.GetName())
		}
	}
	l.forecast.Add(l.ctx, &l.now, func(ctx context.Context) (*study.Study, view.Trials, error) {
		found, trials, err := fetch.StudyAndTrials(func(f func(context.Context, service) error) error {
			return l.remote.call(l.cmd, func(_ context.Context, c service) error { return f(ctx, c) }) //nolint:contextcheck // ctx ends sooner
		}, s.GetName())
		return found, view.List(trials), err
	})
	l.progress.Show(l.now)
}

// running asks which trials run: a hundred at most, more than a screen shows.
func (l *liveWatch) running(study string) {
	_ = l.remote.call(l.cmd, func(ctx context.Context, c service) error {
		states := []fantasiav1.TrialState{fantasiav1.TrialState_TRIAL_STATE_CLAIMED, fantasiav1.TrialState_TRIAL_STATE_RUNNING}
		page, err := fetch.Send(ctx, c, service.ListTrials, &fantasiav1.ListTrialsRequest{Parent: study, States: states})
		if err != nil {
			return err
		}
		l.now.Running = nil
		for _, t := range page.GetTrials() {
			l.now.Running = append(l.now.Running, display.Running{Trial: int(t.GetNumber()), Since: view.Time(t.GetTimes().GetClaimed())})
		}
		return nil
	})
}

// failed asks which trial failed last, and why.
func (l *liveWatch) failed(study string) {
	var ended time.Time
	_ = l.remote.call(l.cmd, func(ctx context.Context, c service) error {
		trials, err := fetch.Trials(ctx, c, &fantasiav1.ListTrialsRequest{Parent: study,
			States: []fantasiav1.TrialState{fantasiav1.TrialState_TRIAL_STATE_FAILED}})
		for _, t := range each.Of(trials, view.FromTrial) {
			if t.Failure != nil && !t.Times.Folded.Before(ended) {
				ended, l.now.FailedTrial, l.now.Failure = t.Times.Folded, t.Trial, view.FailureLine(t.Failure)
			}
		}
		return err
	})
}
