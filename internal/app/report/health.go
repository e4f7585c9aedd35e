package report

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/internal/base/picture"
	"github.com/fantasia-hpo/fantasia/study"
)

// health says whether the programs and the workers do well.
func (s *sheet) health() group {
	g := group{ID: "health", Name: "Health", Intro: s.idle()}
	g.Figures = append(g.Figures, small("failures", "Failures by reason",
		"How often an attempt failed, by reason. Reasons that come back are bugs of the program or limits of the machine; fantasia trial logs shows what it wrote.", s.failures()))
	g.Figures = append(g.Figures, figure{
		ID: "times", Title: "Times", Table: s.durations(),
		Read: "How long the parts of a trial took. Long waits for a worker say that there are too few of them; a long start says that the program takes long to begin.",
	})
	g.Figures = append(g.Figures, broad("workers", "Workers",
		"A row for each evaluation that a worker had at once, a bar for each attempt. White space is time in which nothing ran. Many short bars of failures in a row point to a broken machine.", s.gantt()))
	return g
}

// idle says how busy the workers were.
func (s *sheet) idle() string {
	runs := s.busy()
	at := peak(runs)
	if at == 0 {
		return "No worker has had an evaluation."
	}
	var total time.Duration
	first, last := runs[0].from, runs[0].to
	for _, r := range runs {
		total += r.to.Sub(r.from)
		if r.to.After(last) {
			last = r.to
		}
	}
	whole := last.Sub(first) * time.Duration(at)
	if whole <= 0 {
		return ""
	}
	idle := max(0, 1-total.Seconds()/whole.Seconds())
	return fmt.Sprintf("Up to %d evaluations ran at once. Between the first start and the last end, %.0f%% of that capacity was idle.", at, 100*idle)
}

func (s *sheet) failures() *picture.Bars {
	b := &picture.Bars{Title: "Failures by reason", Caption: "failed attempts", Color: 1, None: "No attempt failed."}
	counts := map[string]int{}
	for i := range s.Trials {
		for _, r := range s.Trials[i].Runs {
			switch {
			case r.Reason != "":
				counts[r.Reason]++
			case r.State == study.AttemptFailed || r.State == study.AttemptLost:
				counts[string(r.State)]++
			}
		}
	}
	for _, reason := range slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), strings.Compare(a, b))
	}) {
		b.Bars = append(b.Bars, picture.Bar{Name: reason, Value: float64(counts[reason])})
	}
	return b
}

// durations tells how long the stages of trials took.
func (s *sheet) durations() *table {
	t := &table{Header: []string{"", "half of them at most", "nine of ten at most", "longest"}}
	for _, stage := range []struct {
		name     string
		from, to func(*view.Times) time.Time
	}{
		{"waiting for a worker", func(t *view.Times) time.Time { return t.Suggested }, func(t *view.Times) time.Time { return t.Claimed }},
		{"starting", func(t *view.Times) time.Time { return t.Claimed }, func(t *view.Times) time.Time { return t.Started }},
		{"evaluation", func(t *view.Times) time.Time { return t.Started }, func(t *view.Times) time.Time { return t.Ended }},
		{"until the result counted", func(t *view.Times) time.Time { return t.Ended }, func(t *view.Times) time.Time { return t.Folded }},
	} {
		var all []float64
		for i := range s.Trials {
			from, to := stage.from(&s.Trials[i].Times), stage.to(&s.Trials[i].Times)
			if !from.IsZero() && !to.IsZero() {
				all = append(all, max(0, to.Sub(from).Seconds()))
			}
		}
		if len(all) == 0 {
			continue
		}
		slices.Sort(all)
		row := []cell{text(stage.name)}
		for _, share := range []float64{0.5, 0.9, 1} {
			v := all[max(0, int(math.Ceil(share*float64(len(all))))-1)]
			row = append(row, cell{round(time.Duration(v * float64(time.Second))).String(), exact(v), "number"})
		}
		t.Rows = append(t.Rows, row)
	}
	if len(t.Rows) == 0 {
		t.Note = "Nothing has been evaluated."
	}
	return t
}

func (s *sheet) gantt() *picture.Gantt {
	g := &picture.Gantt{Title: "Workers", End: max(0, s.end().Sub(s.start).Seconds())}
	for i := range s.Trials {
		t := &s.Trials[i]
		for _, r := range t.Runs {
			from, to, ok := s.times(r)
			if !ok {
				continue
			}
			a := picture.Attempt{
				Trial: t.Trial, Number: r.Number, Worker: cmp.Or(r.Worker, "unknown"), State: attemptState(r, t),
				Start: from.Sub(s.start).Seconds(), End: to.Sub(s.start).Seconds(), Reason: r.Reason,
			}
			if a.State == picture.Running {
				a.End = math.NaN()
			}
			g.Attempts = append(g.Attempts, a)
		}
	}
	return g
}

// attemptState returns how an attempt of a trial ended, for pictures.
func attemptState(r view.Run, t *view.Trial) picture.State {
	switch r.State {
	case study.AttemptSucceeded:
		if t.State == study.TrialInfeasible {
			return picture.Infeasible
		}
		return picture.Completed
	case study.AttemptFailed:
		if t.State == study.TrialInfeasible {
			return picture.Infeasible
		}
		return picture.Failed
	case study.AttemptPruned:
		return picture.Pruned
	case study.AttemptLost:
		return picture.Lost
	case study.AttemptHandedBack, study.AttemptCancelled:
		return picture.Cancelled
	}
	return picture.Running
}
