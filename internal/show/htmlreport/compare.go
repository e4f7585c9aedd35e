package htmlreport

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/internal/base/each"
	"github.com/fantasia-hpo/fantasia/internal/show/figure"
	"github.com/fantasia-hpo/fantasia/optimizer/front"
	"github.com/fantasia-hpo/fantasia/study"
)

// Compare compares studies, each with a name of its own: by their best values or, of several
// objectives, by the hypervolumes of their fronts. It fails if their objectives differ.
func Compare(names []string, sources []*Source) (*figure.Comparison, error) {
	first := sources[0].Study.Spec.Objectives()
	for i, src := range sources {
		if o := src.Study.Spec.Objectives(); view.Aims(o) != view.Aims(first) {
			return nil, fmt.Errorf("study %s has the objective %s, study %s has %s: only studies with the same objective can be compared",
				names[0], view.Aims(first), names[i], view.Aims(o))
		}
	}
	c := &figure.Comparison{Metric: first[0].Metric, Direction: first[0].Direction}
	studies := each.Of(sources, (*Source).figures)
	if n := len(first); n > study.MaxVolume {
		return nil, fmt.Errorf("study %s has %d objectives: only studies of at most %d can be compared, by their hypervolumes", names[0], n,
			study.MaxVolume)
	} else if n > 1 {
		measure(c, studies)
	}
	for i, src := range sources {
		c.Studies = append(c.Studies, compared(c, names[i], src, studies[i]))
	}
	level(c)
	return c, nil
}

// measure makes a comparison one of hypervolumes. They reach up to the reference of each
// objective if all studies have the same, otherwise up to a tenth beyond the worst value on the
// front of all studies.
func measure(c *figure.Comparison, studies []*figure.Study) {
	objectives := slices.Clone(studies[0].Spec.Several)
	var all []study.Values
	for _, s := range studies {
		all = append(all, s.Found()...)
		for k := range objectives {
			if a, b := objectives[k].Reference, s.Spec.Several[k].Reference; a != nil && (b == nil || *a != *b) {
				objectives[k].Reference = nil
			}
		}
	}
	for k, reference := range front.Beyond(objectives, all) {
		objectives[k].Reference = &reference
	}
	c.Metric, c.Direction, c.Objectives = "hypervolume", study.Maximize, objectives
}

func compared(c *figure.Comparison, name string, src *Source, f *figure.Study) figure.Compared {
	s := figure.Compared{
		Name: name, Study: src.Study.Metadata.Name, State: src.View.State, Algorithm: src.Study.Spec.Algorithm.Name,
		Evaluations: len(f.Ended()), Best: src.View.Best, Recommended: src.View.Recommended, FrontSize: src.View.FrontSize,
	}
	if c.Objectives == nil {
		s.Improvements, s.Seconds = f.Improvements()
	} else {
		s.Improvements, s.Seconds = f.Growth(front.References(c.Objectives))
	}
	if n := len(s.Improvements); n > 0 && c.Objectives != nil {
		s.Hypervolume = &s.Improvements[n-1].Value
	}
	return s
}

// level finds the best value that every study reached, and when each was first as good.
func level(c *figure.Comparison) {
	for _, s := range c.Studies {
		n := len(s.Improvements)
		if n == 0 {
			c.Level = nil
			return
		}
		if last := s.Improvements[n-1].Value; c.Level == nil || c.Direction.Better(*c.Level, last) {
			c.Level = &last
		}
	}
	for i := range c.Studies {
		s := &c.Studies[i]
		for k := range s.Improvements {
			if !c.Direction.Better(*c.Level, s.Improvements[k].Value) {
				s.Reached = &s.Improvements[k]
				break
			}
		}
	}
}

// WriteComparison writes a comparison as one HTML file.
func WriteComparison(w io.Writer, c *figure.Comparison, now time.Time, version string) error {
	p := newPage("Studies compared")
	p.Subtitle = each.Join(c.Studies, ", ", func(s figure.Compared) string { return s.Name })
	p.Footer = footer(version, now)
	p.Lead = "Each study was run once. A small difference can be luck: fantasia bench repeats runs with several seeds."
	first := tableItem("studies", "Studies", "Not every study has a completed trial yet.", comparisonTable(c))
	if c.Level != nil {
		first.Help = fmt.Sprintf("The last columns say when each study was first as good as %s = %s, which all of them reached.", c.Metric,
			view.Number(*c.Level))
	}
	if references := front.References(c.Objectives); references != nil {
		first.Help += fmt.Sprintf(" The hypervolume reaches up to %s.", view.Named(study.MetricNames(c.Objectives), references))
	}
	p.Figures = []item{first, {Figure: c.Figure(false)}, {Figure: c.Figure(true)}}
	return p.write(w)
}

func comparisonTable(c *figure.Comparison) *table {
	found := []string{"best " + c.Metric, "in trial", "recommended"}
	if c.Objectives != nil {
		found = []string{c.Metric, "trials on the front", "recommended"}
	}
	t := &table{Header: slices.Concat([]string{"study", "state", "optimiser", "evaluations", "seconds"}, found,
		[]string{"evaluations until as good", "seconds until as good"})}
	for _, s := range c.Studies {
		row := []cell{text(s.Name), text(string(s.State)), text(s.Algorithm), whole(s.Evaluations), number(s.Seconds), {}, {}, {}, {}, {}}
		if s.Best != nil {
			row[5], row[6] = number(s.Best.Value), whole(s.Best.Trial)
		}
		if s.Hypervolume != nil {
			row[5] = number(*s.Hypervolume)
		}
		if s.FrontSize != nil {
			row[6] = whole(*s.FrontSize)
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
