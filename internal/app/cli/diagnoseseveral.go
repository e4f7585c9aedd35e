package cli

import (
	"fmt"
	"strings"

	"github.com/fantasia-hpo/fantasia/internal/show/diagnosis"
)

// objectives prints how each pair of several objectives is related.
func (d *paragraphs) objectives(pairs []diagnosis.Tradeoff) {
	if len(pairs) == 0 {
		return
	}
	d.begin("Objectives, by the models (correlations: +1 better together, -1 one for the other)")
	for i := range pairs {
		t := &pairs[i]
		end := func(metric string, e diagnosis.End) string {
			return fmt.Sprintf("best %s is trial %d (%s, %s)", metric, e.Trial, number(round(e.A)), number(round(e.B)))
		}
		d.row(t.A+" and "+t.B, fmt.Sprintf("%s along the front, %s over the space; %s, %s",
			correlation(t.Front), correlation(t.Space), end(t.A, t.BestA), end(t.B, t.BestB)))
	}
}

// correlation formats a correlation, which may not be known.
func correlation(c *float64) string {
	if c == nil {
		return "not known"
	}
	return fmt.Sprintf("%+.2f", *c)
}

// limits prints what each limit rules out and costs.
func (d *paragraphs) limits(limits []diagnosis.LimitEffect) {
	if len(limits) == 0 {
		return
	}
	d.begin("Limits, by the models")
	for i := range limits {
		l := &limits[i]
		parts := []string{fmt.Sprintf("rules out %s of the space, %s alone", share(l.Outside), share(l.Alone))}
		if len(l.Best) > 1 {
			parts = append(parts, fmt.Sprintf("active at %d of the front's %s", l.Bound, count(l.Front, "point")))
		}
		if l.Hypervolume != nil {
			parts = append(parts, fmt.Sprintf("hypervolume %s, without it %s", number(round(*l.Hypervolume)), number(round(*l.WithoutHypervolume))))
		}
		for _, b := range l.Best {
			parts = append(parts, fmt.Sprintf("best %s %s, without it %s", b.Metric, orNone(b.Within), orNone(b.Without)))
		}
		d.row(l.Limit, strings.Join(parts, "; "))
	}
}

// orNone formats a value, which may be missing.
func orNone(v *float64) string {
	if v == nil {
		return "none"
	}
	return number(round(*v))
}
