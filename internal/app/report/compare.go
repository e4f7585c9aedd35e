package report

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/internal/app/figure"
)

// Compare compares studies, each with a name of its own. It fails if their objectives
// differ.
func Compare(names []string, sources []*Source) (*figure.Comparison, error) {
	first := *sources[0].Study.Spec.FirstObjective()
	c := &figure.Comparison{Metric: first.Metric, Direction: first.Direction}
	reached := true
	for i, src := range sources {
		o := src.Study.Spec.FirstObjective()
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

func compared(name string, src *Source) figure.Compared {
	f := src.figures()
	s := figure.Compared{
		Name: name, Study: src.Study.Metadata.Name, State: src.View.State, Algorithm: src.Study.Spec.Algorithm.Name,
		Evaluations: len(f.Ended()), Best: src.View.Best, Recommended: src.View.Recommended,
	}
	s.Improvements, s.Seconds = f.Improvements()
	return s
}

// WriteComparison writes a comparison as one HTML file.
func WriteComparison(w io.Writer, c *figure.Comparison, now time.Time, version string) error {
	names := make([]string, len(c.Studies))
	for i, s := range c.Studies {
		names[i] = s.Name
	}
	p := newPage("Studies compared")
	p.Subtitle = strings.Join(names, ", ")
	p.Footer = footer(version, now)
	p.Lead = "Each study was run once. A small difference can be luck: fantasia bench repeats runs with several seeds."
	first := item{Table: comparisonTable(c)}
	first.ID, first.Title, first.Broad, first.Help = "studies", "Studies", true, "Not every study has a completed trial yet."
	if c.Level != nil {
		first.Help = fmt.Sprintf("The last columns say when each study was first as good as %s = %s, which all of them reached.", c.Metric, view.Number(*c.Level))
	}
	p.Figures = []item{first, {Figure: c.Figure(false)}, {Figure: c.Figure(true)}}
	return p.write(w)
}

func comparisonTable(c *figure.Comparison) *table {
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
