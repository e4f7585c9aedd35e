package cli

import (
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/fantasia-hpo/fantasia/internal/app/diagnosis"
)

// diagnosisText is a diagnosis as text: a paragraph a question.
func diagnosisText(w io.Writer, r *diagnosis.Report, metric string) error {
	d := &paragraphs{}
	counts := fmt.Sprintf("%d completed", r.Completed)
	if r.LeftOut > 0 {
		counts += fmt.Sprintf(", %d without a value are left out", r.LeftOut)
	}
	if r.Used < r.Completed {
		counts += fmt.Sprintf("; the model is fitted to %d of them", r.Used)
	}
	d.begin("Study %s", r.Study)
	d.row("trials", counts)
	d.row("model", fmt.Sprintf("predicts %s of the variance of what it was not shown", share(r.Explained)))
	d.noise(r.Noise, metric)
	d.spread(r.Heteroscedasticity)
	d.gains(r)
	d.conflict(r.Conflict)
	d.importance(r.Importance)
	for _, note := range r.Notes {
		d.begin("%s", note)
	}
	d.begin("What follows")
	for _, sentence := range r.Advice {
		d.line("- %s", sentence)
	}
	_, err := io.WriteString(w, d.text.String())
	if err != nil {
		return fmt.Errorf("write a diagnosis: %w", err)
	}
	return nil
}

// paragraphs are what a text is made of: heads, and lines below them.
type paragraphs struct{ text strings.Builder }

func (d *paragraphs) begin(format string, args ...any) {
	if d.text.Len() > 0 {
		d.text.WriteString("\n")
	}
	fmt.Fprintf(&d.text, format+"\n", args...)
}

func (d *paragraphs) line(format string, args ...any) {
	fmt.Fprintf(&d.text, "  "+format+"\n", args...)
}

// labelWidth is that of a row's name.
const labelWidth = 20

func (d *paragraphs) row(name, value string) {
	d.line("%s%s  %s", name, strings.Repeat(" ", max(0, labelWidth-utf8.RuneCountInString(name))), value)
}

func (d *paragraphs) noise(n *diagnosis.Noise, metric string) {
	if n == nil {
		return
	}
	d.begin("Noise against signal, in %s", metric)
	d.row("noise", fmt.Sprintf("sd %s by the model", number(round(n.SD))))
	if p := n.Replicates; p != nil {
		d.row("repeats", fmt.Sprintf("sd %s in %d evaluations of %d points", number(round(p.SD)), p.Evaluations, p.Points))
	}
	d.row("signal", fmt.Sprintf("sd %s over the space", number(round(n.Signal))))
	part := fmt.Sprintf("%.1f%% of the variance", 100*n.Share)
	if n.AtMost > n.Share {
		part = fmt.Sprintf("%.1f%% to %.1f%% of the variance; repeated points would tell noise from detail", 100*n.Share, 100*n.AtMost)
	}
	d.row("noise's share", part)
	if n.Best != n.Recommended {
		d.row("best", fmt.Sprintf("trial %d, %s away from its mean by the model; recommended is trial %d", n.Best, number(round(n.Luck)), n.Recommended))
	} else {
		d.row("best", fmt.Sprintf("trial %d, which is also recommended", n.Best))
	}
}

func (d *paragraphs) spread(h *diagnosis.Heteroscedasticity) {
	if h == nil {
		return
	}
	d.begin("Is the noise the same everywhere?")
	what := fmt.Sprintf("%d points with %d evaluations", h.Raw.Groups, h.Raw.Values)
	if h.Groups == diagnosis.ByResiduals {
		what = fmt.Sprintf("the model's errors at %d points left out in turn, in %d groups by the predicted value", h.Raw.Values, h.Raw.Groups)
	}
	d.row("compared", what)
	d.tests("as it is", h.Raw)
	ratios := ratio(h.Raw)
	if h.Transformed != nil {
		d.tests("transformed", h.Transformed)
		ratios += ", transformed " + ratio(h.Transformed)
	}
	d.row("widest to narrowest", ratios)
}

func (d *paragraphs) tests(name string, s *diagnosis.Spread) {
	verdict := "no difference"
	if s.Differs() {
		verdict = "it differs"
	}
	d.row(name, fmt.Sprintf("Levene %s, p = %s; Fligner–Killeen %s, p = %s: %s",
		number(round(s.Levene.Statistic)), number(round(s.Levene.P)),
		number(round(s.FlignerKilleen.Statistic)), number(round(s.FlignerKilleen.P)), verdict))
}

// ratio is that of the standard deviations of the widest and the narrowest group.
func ratio(s *diagnosis.Spread) string {
	if s.Ratio == nil {
		return "any to 0"
	}
	return number(round(*s.Ratio)) + " to 1"
}

func (d *paragraphs) gains(r *diagnosis.Report) {
	if r.Transform == nil && r.Warp == nil {
		return
	}
	d.begin("Gain in log marginal likelihood, in nats")
	for _, part := range []struct {
		name string
		gain *diagnosis.Gain
	}{{"output transform", r.Transform}, {"input warping", r.Warp}} {
		if g := part.gain; g != nil {
			d.row(part.name, fmt.Sprintf("%+.1f, %+.3f an observation; for one left out %+.3f ± %.3f: %s",
				g.Evidence, g.PerObservation, g.Predictive, g.SE, effect(g.Effect)))
		}
	}
}

// effect says what a part of the model does for its fit.
func effect(e diagnosis.Effect) string {
	switch e {
	case diagnosis.Helps:
		return "it helps"
	case diagnosis.Hurts:
		return "it hurts"
	default:
		return "no difference"
	}
}

func (d *paragraphs) conflict(c *diagnosis.Conflict) {
	if c == nil {
		return
	}
	d.begin("Do acquisition functions conflict? Their ranks at %d points of the space", c.Points)
	for _, p := range c.Pairs {
		d.row(p.A+" and "+p.B, fmt.Sprintf("ρ = %.2f, τ = %.2f; %s of the best 5%% shared", p.Spearman, p.Kendall, share(p.Top)))
	}
	d.row("no trade-off", fmt.Sprintf("%s of the best 5%% by EI, %s by PI, %s by UCB: another point is better by all",
		share(c.Dominated["EI"]), share(c.Dominated["PI"]), share(c.Dominated["UCB"])))
}

// barWidth is that of an importance of 1.
const barWidth = 30

func (d *paragraphs) importance(list []diagnosis.Importance) {
	if len(list) == 0 {
		return
	}
	d.begin("Share of the parameters in what the model predicts: in all, and by themselves")
	width := 0
	for _, i := range list {
		width = max(width, utf8.RuneCountInString(i.Parameter))
	}
	for _, i := range list {
		d.line("%s%s  %s  %4s  %4s", i.Parameter, strings.Repeat(" ", width-utf8.RuneCountInString(i.Parameter)),
			bar(i.Total, barWidth), share(i.Total), share(i.First))
	}
}

// bar is a share as a bar of eighths of characters, filled up with spaces.
func bar(share float64, width int) string {
	eighths := int(math.Round(min(max(share, 0), 1) * float64(8*width)))
	text := strings.Repeat("█", eighths/8)
	if part := eighths % 8; part > 0 {
		text += string([]rune(" ▏▎▍▌▋▊▉")[part])
	}
	return text + strings.Repeat(" ", width-utf8.RuneCountInString(text))
}

// share is a share in whole percent.
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
