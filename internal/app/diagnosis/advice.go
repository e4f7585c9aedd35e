package diagnosis

import (
	"fmt"
	"math"
	"strings"
)

// The bounds of what is said.
const (
	poorModel = 0.3  // of Explained
	bareNoise = 0.01 // of Noise.AtMost
	muchNoise = 0.3  // of Noise.Share
	idle      = 0.02 // of Importance.Total
	strong    = 0.3
	agreement = 0.7 // of rank correlations
)

// advice says in words what follows from a report.
func advice(r *Report) []string {
	var said []string
	say := func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }
	if r.Explained < poorModel {
		say("The model predicts little of what it was not shown (%s of the variance): take all of this with care. More trials would help, or fewer parameters.",
			percent(math.Max(0, r.Explained)))
	}
	adviseNoise(r, say)
	adviseSpread(r, say)
	adviseSetting(r.Transform, "transform", "output transform", say)
	adviseSetting(r.Warp, "warp", "input warping", say)
	adviseConflict(r.Conflict, say)
	adviseParameters(r.Importance, say)
	return said
}

type sayer func(format string, args ...any)

func adviseNoise(r *Report, say sayer) {
	n := r.Noise
	if n == nil {
		return
	}
	which := "here they are the same trial"
	if n.Best != n.Recommended {
		which = fmt.Sprintf("here trial %d, not %d", n.Recommended, n.Best)
	}
	switch {
	case n.Replicates.enough() && n.Replicates.SD == 0:
		say("Repeated evaluations gave the same value again: the objective has no noise, and `best` is what it says.")
	case n.AtMost < bareNoise:
		say("Noise is %s of the spread: `best` can be taken at its word.", percent(n.Share))
	case n.AtMost > 2*n.Share:
		say("Noise is between %s and %s of the spread; a few points evaluated again would tell. Until then read `recommended`, not `best` (%s).",
			percent(n.Share), percent(n.AtMost), which)
	default:
		say("Noise is %s of the spread: read `recommended`, not `best` (%s).", percent(n.Share), which)
	}
	if n.Share > muchNoise {
		say("So much noise hides the parameters: the mean of several evaluations in each trial is easier to optimise.")
	}
}

func adviseSpread(r *Report, say sayer) {
	h := r.Heteroscedasticity
	if h == nil {
		return
	}
	what := "The noise differs from point to point"
	if h.Groups == ByResiduals {
		what = "The model errs more among some values than among others"
	}
	switch {
	case !h.Raw.Differs():
		return
	case h.Transformed != nil && !h.Transformed.Differs():
		say("%s, and the output transform evens it out: keep `transform: true`.", what)
	default:
		say("%s, also after the output transform. The log of the metric, or another one, may be easier to optimise.", what)
	}
}

// adviseSetting says what follows for a setting that switches a part of the model.
func adviseSetting(g *Gain, setting, part string, say sayer) {
	if g == nil {
		return
	}
	switch g.Effect {
	case Helps:
		say("The %s matters: keep `%s: true`.", part, setting)
	case Hurts:
		say("The %s makes the model worse here: try `%s: false`.", part, setting)
	default:
		say("These trials do not tell whether the %s helps: `%s: false` is as good here.", part, setting)
	}
}

func adviseConflict(c *Conflict, say sayer) {
	if c == nil {
		return
	}
	least := c.Pairs[0]
	for _, p := range c.Pairs {
		if p.Spearman < least.Spearman {
			least = p
		}
	}
	if least.Spearman > agreement {
		say("The acquisition functions agree: a single one, `acquisition: logei`, is as good here as all of them.")
		return
	}
	say("The acquisition functions conflict, most of all %s and %s: `acquisition: mace` trades them off.", least.A, least.B)
}

func adviseParameters(list []Importance, say sayer) {
	var high, low []string
	for _, i := range list {
		switch {
		case i.Total >= strong:
			high = append(high, i.Parameter)
		case i.Total < idle:
			low = append(low, i.Parameter)
		}
	}
	if len(high) > 0 && len(list) > 1 {
		say("What matters most: %s.", strings.Join(high, ", "))
	}
	if len(low) > 0 && len(low) < len(list) {
		say("Hardly any effect within its range: %s. It could be fixed, or its range widened.", strings.Join(low, ", "))
	}
}

// percent is a share in percent, with two digits.
func percent(share float64) string {
	switch p := 100 * share; {
	case p > 0 && p < 0.1:
		return "less than 0.1%"
	case p < 10:
		return fmt.Sprintf("%.1f%%", p)
	default:
		return fmt.Sprintf("%.0f%%", p)
	}
}
