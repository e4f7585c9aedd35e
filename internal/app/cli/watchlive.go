package cli

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/internal/app/display"
	"github.com/fantasia-hpo/fantasia/internal/exchange/fetch"
)

// detailEvery is how often a live watch asks which trials run and which failed.
const detailEvery = time.Second

// liveWatch shows a server's study as a live display does a local one.
type liveWatch struct {
	remote   *remote
	cmd      *cobra.Command
	progress *display.Progress
	now      display.Now
	asked    time.Time
}

// show takes the newest state of the study. What runs and what failed is asked for,
// once a second at most; where the server does not answer, it stays as it was.
func (l *liveWatch) show(s *fantasiav1.Study) {
	v := view.FromStudy(s)
	failed := l.now.Counts.Failed
	l.now.Study, l.now.Metric, l.now.State = v.Study, s.GetObjective().GetMetric(), v.State
	l.now.MaxTrials, l.now.Counts = int(s.GetMaxTrials()), v.Trials
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
			l.now.Running = append(l.now.Running, display.Running{Trial: int(t.GetNumber()), Since: at(t.GetTimes().GetClaimed())})
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
		for _, t := range fetch.Viewed(trials, view.FromTrial) {
			if t.Failure != nil && !t.Times.Folded.Before(ended) {
				ended, l.now.FailedTrial, l.now.Failure = t.Times.Folded, t.Trial, view.FailureLine(t.Failure)
			}
		}
		return err
	})
}
