// Package display shows people how a study is going and how it went: live progress,
// a summary, plots of the best value against evaluations, and files of results.
package display

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/internal/show/diagnosis"
	"github.com/fantasia-hpo/fantasia/study"
)

// plainEvery is the interval of progress lines without a live terminal.
const plainEvery = 10 * time.Second

// Now is the progress of a study at a moment.
type Now struct {
	// Study is its name, Metric its objective.
	Study, Metric string
	State         study.State
	MaxTrials     int           // 0 if only time or cost bounds the study
	MaxDuration   time.Duration // 0 for none
	Counts        record.Counts
	// Cost is what the trials have cost; nil if the study has no cost but time.
	Cost *view.Cost
	// At is the moment, Elapsed how long the study had run by then.
	At      time.Time
	Elapsed time.Duration
	// Best is nil if nothing has completed. Parameters is the order for its point;
	// parameters missing in the point are left out.
	Best       *view.Best
	Parameters []string
	// Recommended has trial 0 if there is none.
	Recommended record.Recommendation
	// Running are the trials that workers evaluate.
	Running []Running
	// FailedTrial is the number of the last failed trial, 0 for none, and Failure the
	// reason in one line.
	FailedTrial int
	Failure     string
	// Ends is when the study ends, by a model of its trials' times; zero if there is none.
	Ends time.Time
}

// Running is a trial that a worker is evaluating, with its start time.
type Running struct {
	Trial int
	Since time.Time
}

// NewNow extracts the displayed facts from a coordinator's progress.
func NewNow(p *coordinator.Progress, at time.Time) Now {
	spec := &p.Study.Definition.Spec
	n := Now{
		Study: p.Study.Definition.Metadata.Name, Metric: spec.FirstObjective().Metric, State: p.Status.State,
		MaxTrials: spec.Budget.MaxTrials, MaxDuration: time.Duration(spec.Budget.MaxDuration), Counts: p.Status.Counts,
		Cost: view.OfCost(spec, &p.Status),
		At:   at, Elapsed: view.Elapsed(p.Status, at), Parameters: study.Names(spec.Parameters), Best: view.OfBest(p.Best),
		Recommended: p.Status.Recommended,
	}
	for _, a := range p.Running {
		n.Running = append(n.Running, Running{Trial: a.Attempt.Trial, Since: a.Claimed})
	}
	if t := p.LastFailed; t != nil && t.Last() != nil && t.Last().Failure != nil {
		n.FailedTrial, n.Failure = t.Number, view.FailureLine(t.Last().Failure)
	}
	return n
}

// Progress shows how a study goes: live on a terminal, otherwise in occasional lines.
// It is not safe for concurrent use.
type Progress struct {
	w       io.Writer
	program *tea.Program
	done    sync.WaitGroup
	told    time.Time
	ended   int
}

// NewProgress starts showing progress on w; live says that w is a terminal.
func NewProgress(ctx context.Context, w io.Writer, live bool) *Progress {
	p := &Progress{w: w}
	if !live {
		return p
	}
	// Signals and keys stay with the command: it ends the run, the view does not.
	p.program = tea.NewProgram(&liveView{}, tea.WithContext(ctx), tea.WithOutput(w), tea.WithInput(nil), tea.WithoutSignalHandler(),
		tea.WithFPS(10))
	p.done.Go(func() { _, _ = p.program.Run() }) // if the view fails, only the view is lost
	return p
}

// Show displays the newest progress.
func (p *Progress) Show(now Now) {
	if p.program != nil {
		p.program.Send(now)
		return
	}
	ended := now.Counts.Ended()
	if time.Since(p.told) < plainEvery && (ended == 0 || p.ended > 0) {
		return
	}
	p.told, p.ended = time.Now(), ended
	_, _ = fmt.Fprintln(p.w, now.line())
}

// Say prints a line, on a terminal above the display.
func (p *Progress) Say(line string) {
	if p.program != nil {
		p.program.Println(line)
		return
	}
	_, _ = fmt.Fprintln(p.w, line)
}

// Close ends the display and leaves the bar on the terminal: the summary shows the
// rest.
func (p *Progress) Close() {
	if p.program != nil {
		p.program.Send(over{})
		p.program.Quit()
		p.done.Wait()
	}
}

// line formats progress in one line, for logs.
func (n *Now) line() string {
	s := fmt.Sprintf("%s done, %d running", view.Share(n.Counts.Ended(), n.MaxTrials), n.Counts.Running)
	if n.Counts.Failed > 0 {
		s += fmt.Sprintf(", %d failed", n.Counts.Failed)
	}
	if n.Counts.Pruned > 0 {
		s += fmt.Sprintf(", %d pruned", n.Counts.Pruned)
	}
	if n.Cost != nil {
		s += ", " + n.Cost.String()
	}
	if n.Best != nil {
		s += fmt.Sprintf(", best %s %s (trial %d)", n.Metric, view.Number(n.Best.Value), n.Best.Trial)
	}
	if r := n.Recommended; r.Trial > 0 {
		s += ", recommended " + view.Recommended(r.Trial, r.Mean, r.SD, r.Front)
	}
	if left, ok := n.left(n.At); ok {
		s += fmt.Sprintf(", about %v left", left.Round(time.Second))
	}
	return s
}

// elapsed returns how long the study has run at a later time.
func (n *Now) elapsed(now time.Time) time.Duration {
	if n.State.Terminal() || n.At.IsZero() {
		return n.Elapsed
	}
	return n.Elapsed + max(0, now.Sub(n.At))
}

// course returns how far the study had come at the moment At.
func (n *Now) course() *diagnosis.Course {
	return &diagnosis.Course{
		Ended: n.Counts.Ended(), MaxTrials: n.MaxTrials, MaxDuration: n.MaxDuration, Elapsed: n.Elapsed, At: n.At, Ends: n.Ends,
		Cost: n.Cost,
	}
}

// left estimates the time left at a later time.
func (n *Now) left(now time.Time) (left time.Duration, ok bool) {
	if n.State.Terminal() {
		return 0, false
	}
	return n.course().Left(now)
}
