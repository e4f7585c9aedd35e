package figure

import (
	"fmt"
	"slices"

	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/coordinator/pruner"
	"github.com/fantasia-hpo/fantasia/internal/show/diagnosis"
	"github.com/fantasia-hpo/fantasia/internal/show/picture"
	"github.com/fantasia-hpo/fantasia/study"
)

// steps are the first and the last step that a trial reported.
type steps struct{ first, last int64 }

// Read notes which steps a trial reported. A study whose trials' reports were read can say how long its trials are.
func (s *Study) Read(t *Trial, reported []view.Curve) {
	metric := diagnosis.StoppingMetric(s.Spec)
	i := slices.IndexFunc(reported, func(c view.Curve) bool { return c.Metric == metric && len(c.Steps) > 0 })
	if i < 0 {
		return
	}
	if s.reported == nil {
		s.reported = map[int]steps{}
	}
	list := reported[i].Steps
	s.reported[t.Number] = steps{list[0], list[len(list)-1]}
}

// wholeTrial returns the last step of a trial that runs to its end, how many steps it has, and how that is known. The step is 0 if it
// is not known.
func (s *Study) wholeTrial() (last, n int64, known string) {
	if e := s.Spec.EarlyStopping; e != nil {
		if p, err := pruner.NewFor(*e, s.Direction()); err == nil { // another version's rule says nothing
			last, known = p.Length(), "as maxSteps says"
		}
	}
	first := int64(1)
	longest := int64(0)
	for _, t := range s.All {
		r, read := s.reported[t.Number]
		if !read {
			continue
		}
		first = min(first, max(r.first, 0))
		if t.Completed() {
			longest = max(longest, r.last)
		}
	}
	if last == 0 {
		last, known = longest, "as many as the longest completed trial reported"
	}
	return last, last - first + 1, known
}

// Stops reports whether trials of the study are stopped early.
func (s *Study) Stops() bool {
	return s.Spec.EarlyStopping != nil || slices.ContainsFunc(s.All, func(t *Trial) bool { return t.Stopped > 0 })
}

// continued returns the trials that were stopped early and that another one goes on with.
func (s *Study) continued() map[int]bool {
	list := map[int]bool{}
	for _, t := range s.All {
		if t.Predecessor > 0 && t.State != study.TrialCancelled && t.State != study.TrialFailed {
			list[t.Predecessor] = true
		}
	}
	return list
}

// Saved says how many steps the trials that were stopped early did not run; "" if there are none, or if it is not known how many
// steps they would have had.
func (s *Study) Saved() string {
	last, each, known := s.wholeTrial()
	if last == 0 {
		return ""
	}
	n, again, saved := 0, 0, int64(0)
	continued := s.continued()
	for _, t := range s.All {
		switch {
		case t.State != study.TrialPruned || t.Stopped == 0:
		case continued[t.Number]:
			again++
		default:
			n++
			saved += max(0, last-max(t.Stopped, s.reported[t.Number].last))
		}
	}
	if n == 0 {
		return ""
	}
	they := "trials were stopped early and"
	if n == 1 {
		they = "trial was stopped early and"
	}
	text := fmt.Sprintf("%d %s did not run %d of %d steps (%.0f%%): a whole trial has %d, %s.", n, they, saved, int64(n)*each,
		100*float64(saved)/float64(int64(n)*each), each, known)
	if again > 0 {
		text += fmt.Sprintf(" Stopped trials that were continued later do not count (%d).", again)
	}
	return text
}

// Allocation shows which trial ran how many steps; nil for a study that stops no trial early, or of whose steps nothing is known.
func (s *Study) Allocation() []Figure {
	if f := s.allocation(); len(f.Pictures) > 0 {
		return []Figure{f}
	}
	return nil
}

// allocation is Allocation as one figure, without pictures where there is none.
func (s *Study) allocation() (f Figure) {
	if !s.Stops() {
		return f
	}
	last, _, _ := s.wholeTrial()
	p := &picture.Allocation{Length: float64(last)}
	continued := s.continued()
	stopped := map[int]int64{}
	for _, t := range s.All {
		stopped[t.Number] = t.Stopped
	}
	guessed := 0
	for _, t := range s.Trials {
		a := picture.Allotted{Trial: t.Number, State: t.state()}
		r, read := s.reported[t.Number]
		switch {
		case read || t.Stopped > 0:
			a.To = float64(max(r.last, t.Stopped))
		case t.Completed() && last > 0:
			a.To = float64(last)
			guessed++
		default:
			p.Missing++
			continue
		}
		if a.State == picture.Pruned && continued[t.Number] {
			a.State = picture.Continued
		}
		if before := stopped[t.Predecessor]; read && before > 0 && r.first > before { // from where that one stopped
			a.From = float64(before)
		}
		p.Trials = append(p.Trials, a)
	}
	if len(p.Trials) == 0 {
		return f
	}
	slices.SortFunc(p.Trials, func(a, b picture.Allotted) int { return a.Trial - b.Trial })
	f = broad("allocation", "Steps of the trials", "A column for each trial, as high as the last step that it ran. Its colour says how "+
		"the trial ended, and the dashed line is the last step of a whole trial. If the columns of trials stopped early are nearly as high "+
		"as whole ones, the rule decides late and saves little.", p)
	if line := s.Saved(); line != "" {
		f.Lines = append(f.Lines, line)
	}
	if guessed > 0 {
		f.Lines = append(f.Lines, fmt.Sprintf("The reports of %d completed trials were not read: they are taken to have run to the last step.",
			guessed))
	}
	return f
}
