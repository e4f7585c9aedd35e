package report

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/internal/app/diagnosis"
	"github.com/fantasia-hpo/fantasia/internal/base/picture"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// diagnostics say whether the search itself works.
func (s *sheet) diagnostics() group {
	g := group{ID: "diagnostics", Name: "Diagnostics"}
	if s.diagnosis == nil {
		g.Intro = s.why
	} else {
		g.Figures = append(g.Figures, s.findings())
		g.Figures = append(g.Figures, small("fit", "Predictions against outcomes",
			"Each dot is an evaluation that the model predicted without having seen it. Dots near the dashed line mean a good model. About 19 of 20 bars should cross the line: if many miss it, the model is too sure of itself.", s.fit()))
	}
	g.Figures = append(g.Figures, small("staleness", "Staleness of suggestions",
		"How many results arrived while a trial was being suggested, so that its suggestion could not use them. Values of 0 or 1 are fine; values near the number of workers say that suggestions take long compared with evaluations.", s.staleness()))
	cost := small("pending", "Evaluations under way",
		"How many trials had been handed out and had no result. The dashed line is the study's parallelism. Gaps below it are workers that were missing or waited.", s.pending())
	cost.Lines = s.asynchrony()
	g.Figures = append(g.Figures, cost)
	return g
}

// findings are those of fantasia study diagnose.
func (s *sheet) findings() figure {
	t := &table{Header: []string{"topic", "finding", "evidence"}}
	for _, f := range s.diagnosis.Findings {
		t.Rows = append(t.Rows, []cell{text(string(f.Topic)), text(f.Statement), text(f.Evidence)})
	}
	f := figure{
		ID: "findings", Title: "Findings", Broad: true, Table: t,
		Read: "What fantasia study diagnose finds: whether the model predicts well, how noisy evaluations are, and which settings of the optimiser fit.",
	}
	for _, r := range s.diagnosis.EarlyStopping {
		f.Lines = append(f.Lines, stopping(r))
	}
	return f
}

// stopping says in a sentence what a rule for early stopping would have saved.
func stopping(r diagnosis.Replay) string {
	line := fmt.Sprintf("The rule %s would have stopped %d of %d trials early and saved %.0f%% of the steps", r.Rule, r.Stopped, r.Trials, 100*float64(r.Saved)/float64(max(r.Steps, 1)))
	if r.BestStoppedAt != nil {
		return fmt.Sprintf("%s, but it would have stopped the best trial at step %d.", line, *r.BestStoppedAt)
	}
	return line + ", and kept the best trial."
}

func (s *sheet) fit() *picture.Fit {
	p := &picture.Fit{Title: "Predictions against outcomes", Objective: s.objective, Interval: "95% interval"}
	for _, l := range s.model.LeftOut() {
		p.Predictions = append(p.Predictions, picture.Prediction{Trial: l.Trial, Observed: l.Observed, Mean: l.Median, Low: l.Low, High: l.High})
	}
	return p
}

func (s *sheet) staleness() *picture.Staleness {
	p := &picture.Staleness{Title: "Staleness of suggestions"}
	for i := range s.Trials {
		t := &s.Trials[i]
		p.Points = append(p.Points, picture.Point{X: float64(t.Trial), Y: float64(t.Staleness), Trial: t.Trial})
	}
	return p
}

// span is when a trial was under way.
type span struct{ from, to time.Time }

// spans returns when each trial was under way; an open one until now.
func (s *sheet) spans() (list []span) {
	for i := range s.Trials {
		t := &s.Trials[i]
		from := t.Times.Suggested
		if from.IsZero() && len(t.Runs) > 0 {
			from = t.Runs[0].Opened
		}
		to := t.Times.Folded
		if to.IsZero() {
			to = t.Times.Ended
		}
		if to.IsZero() && !t.State.Terminal() {
			to = s.end()
		}
		if !from.IsZero() && to.After(from) {
			list = append(list, span{from, to})
		}
	}
	return list
}

// end returns the end of the time axis: that of the last trial, or now while any is open.
func (s *sheet) end() (end time.Time) {
	for i := range s.Trials {
		t := &s.Trials[i]
		if !t.State.Terminal() && !s.View.State.Terminal() && s.View.State == study.Running {
			return s.Now
		}
		for _, at := range []time.Time{t.Times.Suggested, t.Times.Ended, t.Times.Folded} {
			if at.After(end) {
				end = at
			}
		}
	}
	return end
}

// change is a change of a number at a time.
type change struct {
	at time.Time
	by int
}

// changes returns the starts and the ends of spans in order of time; at the same time,
// ends come first.
func changes(spans []span) []change {
	var list []change
	for _, p := range spans {
		list = append(list, change{p.from, 1}, change{p.to, -1})
	}
	slices.SortFunc(list, func(a, b change) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.by, b.by)) })
	return list
}

func (s *sheet) pending() *picture.Pending {
	p := &picture.Pending{Title: "Evaluations under way", Limit: s.Study.Spec.Parallelism}
	n := 0
	for _, c := range changes(s.spans()) {
		n += c.by
		p.Steps = append(p.Steps, picture.Step{At: c.at.Sub(s.start).Seconds(), N: n})
	}
	return p
}

// asynchrony says what it cost not to wait for results, and what it saved.
func (s *sheet) asynchrony() (lines []string) {
	if len(s.Trials) == 0 {
		return nil
	}
	sum, most, fallback := 0, 0, 0
	for i := range s.Trials {
		sum += s.Trials[i].Staleness
		most = max(most, s.Trials[i].Staleness)
		if s.Trials[i].Source == optimizer.SourceFallback {
			fallback++
		}
	}
	lines = append(lines, fmt.Sprintf("The cost: on average a suggestion did not know %.2g results that had arrived meanwhile, and at most %d.", float64(sum)/float64(len(s.Trials)), most))
	if fallback > 0 {
		lines = append(lines, fmt.Sprintf("%d trials were fallbacks, because the optimiser took longer than spec.algorithm.fallbackAfter.", fallback))
	}
	if took, batches, at := s.batches(); took > 0 && batches > 0 {
		lines = append(lines, fmt.Sprintf("The gain: in batches of %d that wait for their slowest evaluation, the same evaluations would have taken at least %v. They took %v.", at, round(batches), round(took)))
	}
	return lines
}

// batches returns how long the evaluations took, and how long they would have taken in
// batches of as many as there were at once, each as long as its slowest evaluation.
func (s *sheet) batches() (took, batches time.Duration, at int) {
	runs := s.busy()
	at = peak(runs)
	if len(runs) == 0 || at < 2 {
		return 0, 0, at
	}
	first, last := runs[0].from, runs[0].to
	for i := 0; i < len(runs); i += at {
		var slowest time.Duration
		for _, r := range runs[i:min(i+at, len(runs))] {
			slowest = max(slowest, r.to.Sub(r.from))
			if r.from.Before(first) {
				first = r.from
			}
			if r.to.After(last) {
				last = r.to
			}
		}
		batches += slowest
	}
	return last.Sub(first), batches, at
}

// busy returns when workers were busy with attempts, in the order of their starts.
func (s *sheet) busy() (list []span) {
	for i := range s.Trials {
		for _, r := range s.Trials[i].Runs {
			if from, to, ok := s.times(r); ok {
				list = append(list, span{from, to})
			}
		}
	}
	slices.SortFunc(list, func(a, b span) int { return a.from.Compare(b.from) })
	return list
}

// times returns when a worker had an attempt; ok is false if none claimed it.
func (s *sheet) times(r view.Run) (from, to time.Time, ok bool) {
	from, to = r.Claimed, r.Ended
	if from.IsZero() {
		from = r.Started
	}
	if to.IsZero() {
		to = s.end()
	}
	return from, to, !from.IsZero() && !to.Before(from)
}

// peak returns how many spans overlapped at most.
func peak(spans []span) (most int) {
	n := 0
	for _, c := range changes(spans) {
		n += c.by
		most = max(most, n)
	}
	return most
}

// round rounds a duration to three digits or so.
func round(d time.Duration) time.Duration {
	switch {
	case d > time.Hour:
		return d.Round(time.Minute)
	case d > time.Minute:
		return d.Round(time.Second)
	case d > time.Second:
		return d.Round(10 * time.Millisecond)
	}
	return d.Round(time.Millisecond)
}
