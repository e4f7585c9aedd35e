package display

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/internal/show/figure"
	"github.com/fantasia-hpo/fantasia/internal/show/layout"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// Place describes where a summary is shown and what it is about.
type Place struct {
	// File and State are the study file and the state directory as given on the command
	// line.
	File, State string
	// Again are the words of the command that continues the study; nil means fantasia run.
	Again []string
	// Width is the terminal's. Wrap breaks longer lines between words.
	Width int
	Wrap  bool
}

// Summarize tells a person how a study went, where its results are, and what to run
// next.
func Summarize(w io.Writer, r *Result, at Place) error {
	s := &summary{w: w}
	if at.Wrap {
		s.wrap = at.Width
	}
	name, spec := r.Study.Definition.Metadata.Name, &r.Study.Definition.Spec
	s.heading(r, name)
	if r.Best != nil {
		s.line("best         %s = %s in trial %d", spec.FirstObjective().Metric, view.Number(r.Best.Values.First()), r.Best.Number)
		s.point(spec, r.Best.Point)
	}
	if unmet := r.Status.Unmet(spec); unmet != "" && !strings.Contains(r.Status.Reason, unmet) {
		s.line("limits       %s", unmet)
	}
	s.front(spec, r.Front)
	if f := r.Status.Front; f != nil && f.Hypervolume != nil {
		s.line("hypervolume  %s", view.Number(*f.Hypervolume))
	}
	if rec := r.Recommended; rec != nil && rec.Front != nil {
		s.expected(spec, r.Front, rec.Front)
	} else if rec != nil && (r.Best == nil || rec.Trial != r.Best.Number) {
		s.line("recommended  trial %d: %s = %s by the model, which allows for noise", rec.Trial, spec.FirstObjective().Metric,
			view.Expected(rec.Mean, rec.SD))
		s.point(spec, rec.Point)
	}
	if sketch := sketch(&r.Study.Definition, r.Trials, at.Width); sketch != "" {
		s.line("\n%s\n", sketch)
	}
	if c := view.OfCost(spec, &r.Status); c != nil {
		s.line("cost         %s", c)
	}
	if f := lastFailure(r.Trials); f != nil {
		s.failure(f, r.Status.Reason)
	}
	s.line("results      %s (also %s, %s)", filepath.Join(at.State, ReportFile), ResultFile, TrialsFile)
	s.next(r, at)
	return s.err
}

// sketch draws how the best value came about or, of several objectives, the front.
func sketch(s *study.Study, trials []record.Trial, width int) string {
	if f := figure.Compromises(s, trials); f != nil {
		return f.Text(width)
	}
	return figure.Progress(&s.Spec, trials).Text(width)
}

// mostOptimal is how many trials of a front are listed.
const mostOptimal = 10

// front lists the trials that no other one dominates, the best in the first objective first.
func (s *summary) front(spec *study.Spec, trials []record.Trial) {
	front := view.FrontOf(spec, trials)
	for i, t := range front[:min(len(front), mostOptimal)] {
		label := "front"
		if i > 0 {
			label = ""
		}
		knee := ""
		if t.Knee {
			knee = " (knee)"
		}
		s.line("%-12s %s in trial %d%s", label, view.Named(study.MetricNames(spec.Several), t.Values), t.Trial, knee)
	}
	if more := len(front) - mostOptimal; more > 0 {
		s.line("             and %d more", more)
	}
}

// expected lists the recommended front, unless it has the same trials as the front of the values.
func (s *summary) expected(spec *study.Spec, seen []record.Trial, front []optimizer.Expected) {
	if len(front) == len(seen) && !slices.ContainsFunc(front, func(e optimizer.Expected) bool {
		return !slices.ContainsFunc(seen, func(t record.Trial) bool { return t.Number == e.Trial })
	}) {
		return
	}
	for i, line := range view.ExpectedFront(study.MetricNames(spec.Several), front, mostOptimal) {
		s.line("%-12s %s", []string{"recommended", ""}[min(i, 1)], line)
	}
}

// summary writes lines and remembers the first error.
type summary struct {
	w io.Writer
	// wrap is the maximum width of lines; 0 means any width.
	wrap int
	err  error
}

func (s *summary) line(format string, args ...any) {
	var b strings.Builder
	for line := range strings.SplitSeq(fmt.Sprintf(format, args...), "\n") {
		if s.wrap > 0 && ansi.StringWidth(line) > s.wrap {
			text := strings.TrimLeft(line[min(len(line), labelColumns):], " ")
			label := strings.TrimSuffix(line, text)
			line = label + strings.Join(layout.Wrap(text, s.wrap-len(label)), "\n"+strings.Repeat(" ", labelColumns))
		}
		b.WriteString(line + "\n")
	}
	_, err := io.WriteString(s.w, b.String())
	s.err = errors.Join(s.err, err)
}

func (s *summary) heading(r *Result, name string) {
	c := r.Status.Counts
	state := strings.ToLower(string(r.Status.State))
	switch {
	case r.Interrupted:
		state = "interrupted"
	case r.AlreadyEnded:
		state = "had already " + state
	}
	s.line("study %s %s after %v: %s", name, state, view.Elapsed(r.Status, time.Now()).Round(100*time.Millisecond), countsText(c))
	if r.Status.Reason != "" {
		s.line("             %s", strings.ReplaceAll(r.Status.Reason, "\n", "\n             "))
	}
}

func countsText(c record.Counts) string {
	parts := []string{fmt.Sprintf("%d completed", c.Completed)}
	for _, p := range []struct {
		n    int
		what string
	}{{c.Failed, "failed"}, {c.Infeasible, "infeasible"}, {c.Pruned, "pruned"}, {c.Cancelled, "cancelled"}, {c.Open(), "open"}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}
	return strings.Join(parts, ", ")
}

// widestName is the maximum width of the column of parameters' names; values of longer
// names follow directly.
const widestName = 32

func (s *summary) point(spec *study.Spec, p study.Point) {
	widest := 0
	for i := range spec.Parameters {
		widest = max(widest, ansi.StringWidth(spec.Parameters[i].Name))
	}
	for i := range spec.Parameters {
		name := spec.Parameters[i].Name
		if v, ok := p[name]; ok {
			space := strings.Repeat(" ", max(0, min(widest, widestName)-ansi.StringWidth(name)))
			s.line("             %s%s  %s", name, space, study.Format(v))
		}
	}
}

// failure shows a failed trial. It omits the message if told, which was already shown,
// contains its first line.
func (s *summary) failure(t *record.Trial, told string) {
	message := strings.TrimSpace(t.Last().Failure.Message)
	first, _, _ := strings.Cut(message, "\n")
	if strings.Contains(told, first) {
		s.line("last failure trial %d", t.Number)
	} else {
		s.line("last failure trial %d: %s", t.Number, strings.ReplaceAll(message, "\n", "\n             "))
	}
	if logs := t.Last().Logs; logs != "" {
		s.line("             log: %s", logs)
	}
}

// lastFailure returns the failed trial that ended last, or nil if there is none.
func lastFailure(trials []record.Trial) *record.Trial {
	var last *record.Trial
	for i := range trials {
		t := &trials[i]
		if t.State != study.TrialFailed || t.Last() == nil || t.Last().Failure == nil {
			continue
		}
		if last == nil || t.Ended > last.Ended {
			last = t
		}
	}
	return last
}

func (s *summary) next(r *Result, at Place) {
	file, words := at.File, at.Again
	if words == nil {
		words = []string{"fantasia", "run", file}
		if at.State != DefaultState(r.Study.Definition.Metadata.Name) {
			words = append(words, "--state", at.State)
		}
	}
	again := strings.Join(Quoted(words), " ")
	switch {
	case r.Interrupted:
		s.line("continue     %s", again)
	case r.Status.State == study.Completed:
		s.line("next         %s, or start over:\n             %s --new", onward(r, file), again)
	default:
		s.line("next         fix the program or the study file, then go on:\n             fantasia study resume --state %s && %s\n"+
			"             or start over: %[2]s --new", Quoted([]string{at.State})[0], again)
	}
}

// onward says how to continue a completed study, depending on what ended it.
func onward(r *Result, file string) string {
	spec, status := &r.Study.Definition.Spec, &r.Status
	goal, lasted := spec.FirstObjective().Goal, time.Duration(spec.Budget.MaxDuration)
	_, worth := status.Gain.Worth(spec.Budget.StopWhen)
	var change string
	switch {
	case goal != nil && r.Best != nil && !spec.FirstObjective().Direction.Better(*goal, r.Best.Values.First()):
		change = "set a stricter objective.goal, or none,"
	case spec.Goal != nil && status.Front != nil && status.Front.Hypervolume != nil && *status.Front.Hypervolume >= spec.Goal.Hypervolume:
		change = "set a larger goal.hypervolume, or none,"
	case !spec.Budget.OfTime() && (spec.Budget.MaxTrials > 0 || spec.Budget.MaxCost == 0) && status.Counts.Ended() >= spec.Budget.MaxTrials:
		change = "raise budget.maxTrials"
	case !worth:
		change = "lower budget.stopWhen.gain, or leave stopWhen out,"
	case spec.Budget.MaxCost > 0 && status.Spent >= spec.Budget.MaxCost:
		change = "raise budget.maxCost"
	case lasted > 0 && (status.Ran >= lasted || strings.Contains(status.Reason, "(maxDuration)")): // no other trial would end in time
		change = "raise budget.maxDuration"
	default:
		return "nothing is left to evaluate: widen the parameters under another metadata.name"
	}
	return change + " in " + file + " and run it again to continue"
}

// DefaultState returns the default state directory of a study.
func DefaultState(name string) string { return filepath.Join(".fantasia", name) }
