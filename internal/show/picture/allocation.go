package picture

import (
	"fmt"
	"math"
	"slices"
)

// Continued is the state of an evaluation that was stopped early, and that a later one goes on with.
const Continued State = "continued"

// Allotted is an evaluation that ran the steps after From up to To.
type Allotted struct {
	Trial    int
	State    State
	From, To float64
}

// Allocation shows how many steps each evaluation ran: a column for each, in their order, coloured by how it ended. If there are too
// many, neighbours share a column: it is as high as the mean of their steps, so that areas still stand for steps, and each colour has
// its share of it.
type Allocation struct {
	// Trials MUST be in the order of their numbers.
	Trials []Allotted
	// Length is how many steps an evaluation has that runs to its end; 0 if that is not known.
	Length float64
	// Missing is how many evaluations are left out because their steps are not known.
	Missing int
}

var _ Picture = (*Allocation)(nil)

const (
	// mostColumns bounds the columns, and leastColumn is the width of the narrowest.
	mostColumns = 300
	leastColumn = 2
	// allotmentHeight is the height of the plot.
	allotmentHeight = 220
)

// allotted are the states in the order of the legend and, from the bottom, of a shared column.
var allotted = []struct {
	state State
	name  string
	color int
}{
	{Completed, "completed", 0}, {Pruned, "stopped early", 3}, {Continued, "stopped early, then continued", 4}, {Failed, "failed", 1},
	{Infeasible, "infeasible", 5}, {Cancelled, "cancelled", 5}, {Running, "running", 2},
}

// SVG implements Picture.
func (a *Allocation) SVG(f Frame) []byte {
	c := newCanvas(f)
	caption := "steps"
	if a.Missing > 0 {
		caption = fmt.Sprintf("steps (%d trials of unknown steps are left out)", a.Missing)
	}
	trials := slices.DeleteFunc(slices.Clone(a.Trials), func(t Allotted) bool { return !(t.From >= 0 && t.To > t.From && t.To <= largest) })
	if len(trials) == 0 {
		return c.empty(caption, "No trial has reported steps.")
	}
	counts, highest, last := map[State]int{}, a.Length, 0
	for _, t := range trials {
		counts[t.State]++
		highest, last = max(highest, t.To), max(last, t.Trial)
	}
	top := c.head(caption)
	var items []*item
	for _, s := range allotted {
		if n := counts[s.state]; n > 0 {
			items = append(items, swatch(fmt.Sprintf("%s (%d)", s.name, n), "bar "+colour(s.color)))
		}
	}
	if a.Length > 0 {
		items = append(items, &item{text: fmt.Sprintf("a whole trial (%s steps)", short(a.Length)), sign: func(c *canvas, x, y float64) {
			c.f(`<path class="line thin c5 key"%s d="M%.1f %.1fh22"/>`+"\n", dash(1), x, y)
		}})
	}
	top += float64(c.list(items, top)*legendHeight) + 10
	bottom := top + allotmentHeight
	y := newSpan(0, highest*1.02, false)
	y.low = 0
	ticks := y.inside(5, true)
	widest := 0.0
	for _, t := range ticks {
		widest = max(widest, textWidth(t.label, 100))
	}
	left, right := side+widest+8, c.width-side
	py := func(v float64) float64 { return bottom - y.at(v)*(bottom-top) }
	for _, t := range ticks {
		c.f(`<path class="grid" d="M%.1f %.1fH%.1f"/>`+"\n", left, py(t.value), right)
		c.label("number y", left-8, py(t.value)+4, "end", t.label, 100)
	}
	// Trial n lies between n-1 and n, so that the axis has room for the last one.
	each := (last + mostColumns - 1) / mostColumns
	each = max(each, int(math.Ceil(float64(last)*leastColumn/(right-left))))
	x := newSpan(0, float64((last+each-1)/each*each), false)
	x.low = 0
	px := func(v float64) float64 { return left + x.at(v)*(right-left) }
	for from := 0; from < len(trials); {
		group, to := (trials[from].Trial-1)/each, from
		for to < len(trials) && (trials[to].Trial-1)/each == group {
			to++
		}
		start, width := px(float64(group*each)), px(float64(each))-px(0)
		if gap := min(1, width/5); each == 1 {
			trials[from].draw(c, start+gap/2, width-gap, py)
		} else {
			drawShared(c, trials[from:to], start, width, py)
		}
		from = to
	}
	if a.Length > 0 {
		c.f(`<path class="line thin c5"%s d="M%.1f %.1fH%.1f"/>`+"\n", dash(1), left, py(a.Length), right)
	}
	numbers := newSpan(1, float64(max(2, last)), false)
	c.numbers("number x", bottom+18, 0, c.width-2, numbers.inside(max(3, int((right-left)/80)), true), 100,
		func(v float64) float64 { return px(v - 0.5) }, nil)
	c.f(`<path class="axis" d="M%.1f %.1fH%.1f"/>`+"\n", left, bottom, right)
	c.label("soft", (left+right)/2, bottom+38, "middle", "trial", 60)
	return c.finish(fmt.Sprintf("How many steps each of %d trials ran, and how they ended.", len(trials)), bottom+50)
}

// look returns the name and the colour of a state.
func look(s State) (name string, color int) {
	for _, a := range allotted {
		if a.state == s {
			return a.name, a.color
		}
	}
	return string(s), 5
}

// draw draws the column of one evaluation.
func (t *Allotted) draw(c *canvas, x, width float64, py func(float64) float64) {
	name, color := look(t.State)
	note := fmt.Sprintf("trial %d: %s steps, %s", t.Trial, short(t.To), name)
	if t.From > 0 {
		note = fmt.Sprintf("trial %d: from step %s to %s, %s", t.Trial, short(t.From), short(t.To), name)
	}
	c.f(`<rect class="bar %s" x="%.2f" y="%.2f" width="%.2f" height="%.2f"%s data-from="%s" data-state="%s">%s</rect>`+"\n", colour(color),
		x, py(t.To), width, max(1, py(t.From)-py(t.To)), data(t.Trial, float64(t.Trial), t.To), exact(t.From), escape(string(t.State)), tip(note))
}

// drawShared draws the column of several evaluations: the means of their steps by state, one on top of the other.
func drawShared(c *canvas, trials []Allotted, x, width float64, py func(float64) float64) {
	first, last, at := trials[0].Trial, trials[len(trials)-1].Trial, 0.0
	for _, s := range allotted {
		n, steps := 0, 0.0
		for _, t := range trials {
			if t.State == s.state {
				n, steps = n+1, steps+(t.To-t.From)/float64(len(trials))
			}
		}
		if n == 0 {
			continue
		}
		note := fmt.Sprintf("trials %d to %d: %d %s, %s steps a trial of all", first, last, n, s.name, short(steps))
		c.f(`<rect class="bar %s" x="%.2f" y="%.2f" width="%.2f" height="%.2f"%s data-count="%d" data-state="%s">%s</rect>`+"\n",
			colour(s.color), x, py(at+steps), width, py(at)-py(at+steps), data(first, float64(first), steps), n, escape(string(s.state)),
			tip(note))
		at += steps
	}
}
