package cli

import (
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/fantasia-hpo/fantasia/internal/show/diagnosis"
	"github.com/fantasia-hpo/fantasia/internal/show/layout"
)

// diagnosisText prints a diagnosis: the findings first, then the figures. width is the
// terminal's, or 0 for a file, in which each figure stays on one line.
func diagnosisText(w io.Writer, found *diagnosis.Diagnosis, metric string, width int) error {
	d := &paragraphs{width: width}
	counts := fmt.Sprintf("%d completed", found.Completed)
	if found.LeftOut > 0 {
		counts += fmt.Sprintf(", %d without a value left out", found.LeftOut)
	}
	if 0 < found.Used && found.Used < found.Completed {
		counts += fmt.Sprintf("; the model is fitted to %d of them", found.Used)
	}
	d.begin("Study %s", found.Study)
	d.row("trials", counts)
	if d.begin("Findings"); len(found.Findings) == 0 {
		d.line("none: fewer than %d trials have completed, or they are too much alike", diagnosis.MinCompleted)
	}
	for _, f := range found.Findings {
		d.wrapped(string(f.Topic), f.Statement)
		d.wrapped("", f.Evidence)
	}
	d.noise(found.Noise, metric, found.Algorithm)
	d.spread(found.Heteroscedasticity)
	d.gains(found)
	d.conflict(found.Conflict)
	d.importance(found.Importance)
	d.objectives(found.Objectives)
	d.limits(found.Limits)
	d.earlyStopping(found.EarlyStopping)
	d.judged(found.Judged, found.Study)
	_, err := io.WriteString(w, d.text.String())
	if err != nil {
		return fmt.Errorf("write a diagnosis: %w", err)
	}
	return nil
}

// paragraphs builds a text of headings with indented lines below them.
type paragraphs struct {
	text  strings.Builder
	width int
}

func (d *paragraphs) begin(format string, args ...any) {
	if d.text.Len() > 0 {
		d.text.WriteString("\n")
	}
	fmt.Fprintf(&d.text, format+"\n", args...)
}

func (d *paragraphs) line(format string, args ...any) {
	fmt.Fprintf(&d.text, "  "+format+"\n", args...)
}

// labelWidth is the width of a row's name.
const labelWidth = 20

func (d *paragraphs) row(name, value string) {
	columns := math.MaxInt
	if d.width > 0 {
		columns = d.width
	}
	d.beside(name, labelWidth, value, columns)
}

// The width of a finding's topic, and the most columns that a finding fills.
const (
	topicWidth   = 11
	findingWidth = 80
)

// wrapped prints a finding beside its topic.
func (d *paragraphs) wrapped(topic, text string) {
	columns := findingWidth
	if d.width > 0 {
		columns = min(columns, d.width)
	}
	d.beside(topic, topicWidth, text, columns)
}

// beside prints a text beside its name, broken between words at the columns.
func (d *paragraphs) beside(name string, nameWidth int, text string, columns int) {
	for _, line := range layout.Wrap(text, columns-nameWidth-4) {
		d.line("%s%s  %s", name, strings.Repeat(" ", max(0, nameWidth-utf8.RuneCountInString(name))), line)
		name = ""
	}
}

func (d *paragraphs) noise(n *diagnosis.Noise, metric, algorithm string) {
	if n == nil {
		return
	}
	d.begin("Noise against signal, in %s", metric)
	d.row("noise", fmt.Sprintf("sd %s by the model", number(round(n.SD))))
	if p := n.Replicates; p != nil {
		d.row("repeats", fmt.Sprintf("sd %s in %d evaluations of %s", number(round(p.SD)), p.Evaluations, count(p.Points, "point")))
	}
	d.row("signal", fmt.Sprintf("sd %s over the space", number(round(n.Signal))))
	part := fmt.Sprintf("%.1f%% of the variance", 100*n.Share)
	if n.AtMost > n.Share {
		part = fmt.Sprintf("%.1f%% to %.1f%% of the variance; repeated evaluations would narrow this down", 100*n.Share, 100*n.AtMost)
	}
	d.row("noise's share", part)
	away := fmt.Sprintf("trial %d, %s away from the model's mean there; ", n.Best, number(round(n.Luck)))
	switch {
	case n.Front:
		d.row("best", away+"recommended is a front")
	case n.Recommended == nil:
		d.row("best", away+algorithm+" recommends no trial")
	case *n.Recommended == n.Best:
		d.row("best", fmt.Sprintf("trial %d, which is also recommended", n.Best))
	default:
		d.row("best", away+fmt.Sprintf("recommended is trial %d", *n.Recommended))
	}
}

func (d *paragraphs) spread(h *diagnosis.Heteroscedasticity) {
	if h == nil {
		return
	}
	d.begin("Evenness of the spread")
	what := fmt.Sprintf("%d points with %d evaluations", h.Raw.Groups, h.Raw.Values)
	if h.Groups == diagnosis.ByResiduals {
		what = fmt.Sprintf("the model's errors at %d points left out in turn, in %d groups by the predicted value", h.Raw.Values, h.Raw.Groups)
	}
	d.row("compared", what)
	d.tests("raw values", h.Raw)
	ratios := ratio(h.Raw)
	if h.Transformed != nil {
		d.tests("transformed", h.Transformed)
		ratios += ", transformed " + ratio(h.Transformed)
	}
	d.row("widest to narrowest", ratios)
}

func (d *paragraphs) earlyStopping(replays []diagnosis.Replay) {
	if replays == nil {
		return
	}
	d.begin("Early stopping, replayed on the recorded curves")
	for _, r := range replays {
		best := fmt.Sprintf("the best trial %d goes on", r.Best)
		if r.BestStoppedAt != nil {
			best = fmt.Sprintf("the best trial %d (%s) stops at step %d", r.Best, number(r.BestValue), *r.BestStoppedAt)
			if r.Kept != 0 {
				best += fmt.Sprintf(", and trial %d (%s) is the best left", r.Kept, number(*r.KeptValue))
			}
		}
		d.row(r.Rule, fmt.Sprintf("saves %.0f%% of %d steps; stops %d of %d trials; %s", 100*float64(r.Saved)/float64(r.Steps), r.Steps,
			r.Stopped, r.Trials, best))
	}
}

// judged says how good the model of curves is, how near it came to stopping the best trial, and which trials it would
// finish.
func (d *paragraphs) judged(j *diagnosis.Judged, name string) {
	if j == nil {
		return
	}
	d.begin("The model of curves, which the rule model asks")
	for _, s := range j.Statements(name) {
		d.row(s.Name, s.Text)
	}
}

func (d *paragraphs) tests(name string, s *diagnosis.Spread) {
	d.row(name, fmt.Sprintf("Levene %s, p = %s; Fligner–Killeen %s, p = %s",
		number(round(s.Levene.Statistic)), number(round(s.Levene.P)),
		number(round(s.FlignerKilleen.Statistic)), number(round(s.FlignerKilleen.P))))
}

// ratio compares the standard deviations of the widest and the narrowest group.
func ratio(s *diagnosis.Spread) string {
	if s.Ratio == nil {
		return "the narrowest is 0"
	}
	return number(round(*s.Ratio)) + " to 1"
}

func (d *paragraphs) gains(found *diagnosis.Diagnosis) {
	if found.Transform == nil && found.Warp == nil {
		return
	}
	d.begin("Gain in log marginal likelihood, in nats")
	for _, part := range []struct {
		name string
		gain *diagnosis.Gain
	}{{"output transform", found.Transform}, {"input warping", found.Warp}} {
		if g := part.gain; g != nil {
			d.row(part.name, fmt.Sprintf("%+.1f, %+.3f a trial; %+.3f ± %.3f for a left-out trial",
				g.Evidence, g.PerObservation, g.Predictive, g.SE))
		}
	}
}

func (d *paragraphs) conflict(c *diagnosis.Conflict) {
	if c == nil {
		return
	}
	d.begin("Acquisition functions, ranking %d points of the space", c.Points)
	for _, p := range c.Pairs {
		d.row(p.A+" and "+p.B, fmt.Sprintf("ρ = %.2f, τ = %.2f; %s of the best 5%% shared", p.Spearman, p.Kendall, share(p.Top)))
	}
	d.row("dominated", fmt.Sprintf("%s of the best 5%% by EI, %s by PI, %s by UCB",
		share(c.Dominated["EI"]), share(c.Dominated["PI"]), share(c.Dominated["UCB"])))
}

// barWidth is the width of the bar of an importance of 1.
const barWidth = 30

func (d *paragraphs) importance(list []diagnosis.Importance) {
	if len(list) == 0 {
		return
	}
	d.begin("Parameters' shares of predicted variance: total, and alone")
	width := 0
	for _, i := range list {
		width = max(width, utf8.RuneCountInString(i.Parameter))
	}
	for _, i := range list {
		d.line("%s%s  %s  %4s  %4s", i.Parameter, strings.Repeat(" ", width-utf8.RuneCountInString(i.Parameter)),
			bar(i.Total, barWidth), share(i.Total), share(i.First))
	}
}

// bar draws a share as a bar, to an eighth of a character, padded with spaces.
func bar(share float64, width int) string {
	eighths := int(math.Round(min(max(share, 0), 1) * float64(8*width)))
	text := strings.Repeat("█", eighths/8)
	if part := eighths % 8; part > 0 {
		text += string([]rune(" ▏▎▍▌▋▊▉")[part])
	}
	return text + strings.Repeat(" ", width-utf8.RuneCountInString(text))
}

// share formats a share in whole percent.
func share(v float64) string { return fmt.Sprintf("%.0f%%", 100*v) }

// round rounds to three significant digits.
func round(v float64) float64 {
	if v == 0 || math.IsInf(v, 0) || math.IsNaN(v) {
		return v
	}
	unit := math.Pow(10, math.Floor(math.Log10(math.Abs(v)))-2)
	if unit == 0 || math.IsInf(1/unit, 0) {
		return v
	}
	return math.Round(v/unit) * unit
}

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
