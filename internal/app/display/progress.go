package display

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
)

// plainEvery is how often progress is told where no terminal shows it live.
const plainEvery = 10 * time.Second

// Progress tells how a study goes: live on a terminal, else in a line now and
// then. Not safe for concurrent use.
type Progress struct {
	w       io.Writer
	program *tea.Program
	done    sync.WaitGroup
	told    time.Time
	ended   int
	last    coordinator.Progress
}

// NewProgress starts to tell on w, which live says to be a terminal.
func NewProgress(ctx context.Context, w io.Writer, live bool) *Progress {
	p := &Progress{w: w}
	if !live {
		return p
	}
	// Signals and keys stay the command's: it ends the run, not the view.
	p.program = tea.NewProgram(&liveView{}, tea.WithContext(ctx), tea.WithOutput(w), tea.WithInput(nil), tea.WithoutSignalHandler(), tea.WithFPS(10))
	p.done.Go(func() { _, _ = p.program.Run() }) // a view that fails hides nothing but itself
	return p
}

// Show takes the newest progress.
func (p *Progress) Show(now coordinator.Progress) {
	p.last = now
	if p.program != nil {
		p.program.Send(now)
		return
	}
	ended := now.Status.Counts.Ended()
	if time.Since(p.told) < plainEvery && !(ended > 0 && p.ended == 0) {
		return
	}
	p.told, p.ended = time.Now(), ended
	_, _ = fmt.Fprintln(p.w, line(&now, time.Now()))
}

// Close ends the telling and leaves the bar on the terminal: the summary says
// the rest.
func (p *Progress) Close() {
	if p.program != nil {
		p.program.Send(over{})
		p.program.Quit()
		p.done.Wait()
	}
}

// line is progress in one line.
func line(p *coordinator.Progress, now time.Time) string {
	c := p.Status.Counts
	budget := p.Study.Definition.Spec.Budget.MaxTrials
	s := fmt.Sprintf("%d/%d done, %d running", c.Ended(), budget, c.Running)
	if c.Failed > 0 {
		s += fmt.Sprintf(", %d failed", c.Failed)
	}
	if p.Best != nil && len(p.Best.Values) > 0 {
		s += fmt.Sprintf(", best %s %s (trial %d)", p.Study.Definition.Spec.Objective.Metric, short(p.Best.Values.First()), p.Best.Number)
	}
	if r := p.Status.Recommended; r.Trial > 0 {
		s += ", recommended " + recommended(r)
	}
	if left, ok := remaining(p, now); ok {
		s += fmt.Sprintf(", about %v left", left.Round(time.Second))
	}
	return s
}

// recommended says which trial is recommended and what is expected of it.
func recommended(r record.Recommendation) string {
	return fmt.Sprintf("trial %d (%s ± %s)", r.Trial, short(r.Mean), short(r.SD))
}

// remaining estimates the time left from the pace so far.
func remaining(p *coordinator.Progress, now time.Time) (left time.Duration, ok bool) {
	ended := p.Status.Counts.Ended()
	if ended < 3 || p.Status.Started.IsZero() || p.Status.State.Terminal() {
		return 0, false
	}
	spec := p.Study.Definition.Spec
	elapsed := now.Sub(p.Status.Started)
	left = elapsed * time.Duration(spec.Budget.MaxTrials-ended) / time.Duration(ended)
	if bound := time.Duration(spec.Budget.MaxDuration); bound > 0 {
		left = min(left, bound-elapsed)
	}
	return max(left, 0), true
}

// over is the message that the telling ends.
type over struct{}

// liveView redraws progress in place.
type liveView struct {
	p     coordinator.Progress
	width int
	heard bool
	over  bool
}

// Init starts nothing: everything is sent.
func (v *liveView) Init() tea.Cmd { return nil }

// Update takes a newer progress or another width.
func (v *liveView) Update(m tea.Msg) (tea.Model, tea.Cmd) {
	switch m := m.(type) {
	case coordinator.Progress:
		v.p, v.heard = m, true
	case tea.WindowSizeMsg:
		v.width = m.Width
	case over:
		v.over = true
	}
	return v, nil
}

var (
	strong = lipgloss.NewStyle().Bold(true)
	fresh  = lipgloss.NewStyle().Foreground(lipgloss.Color("4"))
	faint  = lipgloss.NewStyle().Faint(true)
	bad    = lipgloss.NewStyle().Foreground(lipgloss.Color("1"))
)

// View draws the progress bar, the counts, and the best point.
func (v *liveView) View() tea.View {
	if !v.heard {
		return tea.NewView("starting…\n")
	}
	c, spec := v.p.Status.Counts, &v.p.Study.Definition.Spec
	width := max(20, min(v.width, 100)-30)
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s %d/%d", strong.Render(v.p.Study.Definition.Metadata.Name), bar(c.Ended(), c.Running, spec.Budget.MaxTrials, width), c.Ended(), spec.Budget.MaxTrials)
	if left, ok := remaining(&v.p, time.Now()); ok {
		b.WriteString(faint.Render(fmt.Sprintf("  %v left", left.Round(time.Second))))
	}
	b.WriteString("\n")
	if v.over {
		return tea.NewView(b.String())
	}
	fmt.Fprintf(&b, "%d running, %d queued, %d completed", c.Running, c.Queued+c.Pending, c.Completed)
	if c.Infeasible > 0 {
		fmt.Fprintf(&b, ", %d infeasible", c.Infeasible)
	}
	if c.Failed > 0 {
		b.WriteString(", " + bad.Render(fmt.Sprintf("%d failed", c.Failed)))
	}
	if best := v.p.Best; best != nil && len(best.Values) > 0 {
		fmt.Fprintf(&b, "\nbest %s = %s in trial %d\n", spec.Objective.Metric, fresh.Render(short(best.Values.First())), best.Number)
		s := &summary{w: &b}
		s.point(spec, best.Point)
		if r := v.p.Status.Recommended; r.Trial > 0 {
			s.line("recommended %s", recommended(r))
		}
	} else {
		b.WriteString("\n")
	}
	return tea.NewView(b.String())
}

// bar draws done, running and open trials as a bar of a width.
func bar(done, running, all, width int) string {
	if all <= 0 {
		return ""
	}
	d := min(width, done*width/all)
	r := min(width-d, (running*width+all-1)/all)
	return fresh.Render(strings.Repeat("█", d)) + faint.Render(strings.Repeat("▒", r)+strings.Repeat("░", width-d-r))
}
