package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/internal/app/figure"
	"github.com/fantasia-hpo/fantasia/internal/base/picture"
	"github.com/fantasia-hpo/fantasia/study"
)

// Compared is how a study did, beside others.
type Compared struct {
	// Name tells it from the others: its name, or its directory.
	Name      string      `json:"name"`
	Study     string      `json:"study"`
	State     study.State `json:"state"`
	Algorithm string      `json:"algorithm"`
	// Evaluations is how many have ended, and Seconds the time until the last of them
	// counted.
	Evaluations int                  `json:"evaluations"`
	Seconds     float64              `json:"seconds"`
	Best        *view.Best           `json:"best"`
	Recommended *view.Recommendation `json:"recommended"`
	// Reached is when it was first as good as Comparison.Level; nil if it never was.
	Reached *Improvement `json:"reached"`
	// Improvements are the evaluations with a better value than all before.
	Improvements []Improvement `json:"improvements"`
}

// Improvement is an evaluation with a better value than all before.
type Improvement struct {
	Evaluation int     `json:"evaluation"`
	Seconds    float64 `json:"seconds"`
	Value      float64 `json:"value"`
	Trial      int     `json:"trial"`
}

// Comparison compares studies of one objective.
type Comparison struct {
	Metric    string          `json:"metric"`
	Direction study.Direction `json:"direction"`
	// Level is the best value that every study has reached; nil if one has no value.
	Level   *float64   `json:"level"`
	Studies []Compared `json:"studies"`
}

// Compare compares studies, each with a name of its own. It fails if their objectives
// differ.
func Compare(names []string, sources []*Source) (*Comparison, error) {
	first := sources[0].Study.Spec.Objective
	c := &Comparison{Metric: first.Metric, Direction: first.Direction}
	reached := true
	for i, src := range sources {
		o := src.Study.Spec.Objective
		if o.Metric != first.Metric || o.Direction != first.Direction {
			return nil, fmt.Errorf("study %s has the objective %s %s, study %s has %s %s: only studies with the same objective can be compared",
				names[0], strings.ToLower(string(first.Direction)), first.Metric, names[i], strings.ToLower(string(o.Direction)), o.Metric)
		}
		s := compared(names[i], src)
		c.Studies = append(c.Studies, s)
		if n := len(s.Improvements); n == 0 {
			reached = false
		} else if last := s.Improvements[n-1].Value; c.Level == nil || c.Direction.Better(*c.Level, last) {
			c.Level = &last
		}
	}
	if !reached {
		c.Level = nil
	}
	for i := range c.Studies {
		s := &c.Studies[i]
		for k := range s.Improvements {
			if c.Level != nil && !c.Direction.Better(*c.Level, s.Improvements[k].Value) {
				s.Reached = &s.Improvements[k]
				break
			}
		}
	}
	return c, nil
}

func compared(name string, src *Source) Compared {
	s := Compared{
		Name: name, Study: src.Study.Metadata.Name, State: src.View.State, Algorithm: src.Study.Spec.Algorithm.Name,
		Best: src.View.Best, Recommended: src.View.Recommended, Improvements: []Improvement{},
	}
	f := src.figures()
	for i, t := range f.Ended() {
		at := f.Seconds(cmp.Or(t.Folded, t.Ended))
		if !math.IsNaN(at) {
			s.Seconds = max(s.Seconds, view.Seconds(time.Duration(at*float64(time.Second))))
		}
		if !t.Completed() || math.IsNaN(at) {
			continue
		}
		if n := len(s.Improvements); n == 0 || f.Direction().Better(t.Value, s.Improvements[n-1].Value) {
			s.Improvements = append(s.Improvements, Improvement{i + 1, view.Seconds(time.Duration(at * float64(time.Second))), t.Value, t.Number})
		}
	}
	s.Evaluations = len(f.Ended())
	return s
}

// Picture shows the best value so far of each study, by evaluations or by the clock.
func (c *Comparison) Picture(clock bool) *picture.Compare {
	p := &picture.Compare{Clock: clock, Objective: picture.Objective{Name: c.Metric, Maximize: c.Direction == study.Maximize}}
	for _, s := range c.Studies {
		line := picture.Progress{Name: s.Name}
		add := func(i Improvement) {
			point := picture.Point{X: float64(i.Evaluation), Y: i.Value, Trial: i.Trial}
			if clock {
				point.X = i.Seconds
			}
			line.Points = append(line.Points, point)
		}
		for _, i := range s.Improvements {
			add(i)
		}
		if n := len(s.Improvements); n > 0 && s.Improvements[n-1].Evaluation < s.Evaluations {
			last := s.Improvements[n-1]
			add(Improvement{s.Evaluations, max(s.Seconds, last.Seconds), last.Value, last.Trial})
		}
		p.Studies = append(p.Studies, line)
	}
	return p
}

// WriteHTML writes the comparison as one HTML file.
func (c *Comparison) WriteHTML(w io.Writer, now time.Time, version string) error {
	names := make([]string, len(c.Studies))
	for i, s := range c.Studies {
		names[i] = s.Name
	}
	p := newPage("Studies compared")
	p.Subtitle = strings.Join(names, ", ")
	p.Footer = footer(version, now)
	p.Lead = "Each study was run once. A small difference can be luck: fantasia bench repeats runs with several seeds."
	lower := map[study.Direction]string{study.Minimize: "lower", study.Maximize: "higher"}[c.Direction]
	figures := []figure.Figure{
		{ID: "studies", Title: "Studies", Help: c.level()},
		{ID: "evaluations", Title: "Best value by evaluations", Help: "A " + lower + " line needs fewer evaluations. This is what matters if evaluations are what costs.", Pictures: []picture.Picture{c.Picture(false)}},
		{ID: "clock", Title: "Best value by time", Help: "The same by the clock, which shows what more parallel evaluations and early stopping bring.", Pictures: []picture.Picture{c.Picture(true)}},
	}
	for _, f := range figures {
		f.Broad = true
		p.Figures = append(p.Figures, item{Figure: f})
	}
	p.Figures[0].Table = c.table()
	return p.write(w)
}

// level says what the columns about the common level mean.
func (c *Comparison) level() string {
	if c.Level == nil {
		return "Not every study has a completed trial yet."
	}
	return fmt.Sprintf("The last columns say when each study was first as good as %s = %s, which all of them reached.", c.Metric, view.Number(*c.Level))
}

func (c *Comparison) table() *table {
	t := &table{Header: []string{"study", "state", "optimiser", "evaluations", "seconds", "best " + c.Metric, "in trial", "recommended", "evaluations until as good", "seconds until as good"}}
	for _, s := range c.Studies {
		row := []cell{text(s.Name), text(string(s.State)), text(s.Algorithm), whole(s.Evaluations), number(s.Seconds), {}, {}, {}, {}, {}}
		if s.Best != nil {
			row[5], row[6] = number(s.Best.Value), whole(s.Best.Trial)
		}
		if s.Recommended != nil {
			row[7] = whole(s.Recommended.Trial)
		}
		if s.Reached != nil {
			row[8], row[9] = whole(s.Reached.Evaluation), number(s.Reached.Seconds)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}
