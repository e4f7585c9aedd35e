package picture

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Attempt is a time in which a worker was busy with a trial, in seconds from the study's
// start. End is NaN while it runs.
type Attempt struct {
	Trial, Number int
	Worker        string
	Start, End    float64
	State         State
	Reason        string
}

// Gantt shows what each worker did when: a row for each evaluation that a worker had at
// once, a bar for each attempt. If there are too many attempts for bars of their own,
// neighbours become one bar: its height is the share of the time in which there was one.
type Gantt struct {
	Attempts []Attempt
	// End is the end of the time axis; attempts that still run reach it.
	End float64
}

var _ Picture = (*Gantt)(nil)

const (
	mostRows  = 64
	rowHeight = 16
	// leastBar is the width below which neighbouring bars of a row become one. It grows
	// until there are at most mostTimes bars.
	leastBar  = 1.5
	mostTimes = 1200
)

// states are the states in the order of the legend, with their colours.
var states = []struct {
	state State
	color int
}{{Completed, 0}, {Failed, 1}, {Infeasible, 4}, {Pruned, 3}, {Lost, 5}, {Cancelled, 5}, {Running, 2}}

// row is a row of the chart: attempts that do not overlap.
type row struct {
	worker   string
	attempts []Attempt
}

// SVG implements Picture.
func (g *Gantt) SVG(f Frame) []byte {
	c := newCanvas(f)
	rows, end, counts := g.rows()
	if len(rows) == 0 {
		return c.empty("workers", "Nothing has been evaluated.")
	}
	name, length := unit(end)
	caption := "workers"
	if len(rows) > mostRows {
		caption = fmt.Sprintf("workers (the first %d of %d rows)", mostRows, len(rows))
		rows = rows[:mostRows]
	}
	top := c.head(caption)
	var items []*item
	for _, s := range states {
		if n := counts[s.state]; n > 0 {
			items = append(items, swatch(fmt.Sprintf("%s (%d)", s.state, n), "bar "+colour(s.color)))
		}
	}
	lines := c.list(items, top)
	widest := 0.0
	columns := max(6, int(c.width/5/charWidth))
	for _, r := range rows {
		widest = max(widest, textWidth(r.worker, columns))
	}
	left, right := side+widest+8, c.width-side
	y := top + float64(lines*legendHeight) + 8
	bottom := y + float64(len(rows)*rowHeight) + 4
	x := newSpan(0, end/length, false)
	x.low = 0
	px := func(seconds float64) float64 { return left + x.at(seconds/length)*(right-left) }
	drawn := make([][]bar, len(rows))
	for least := leastBar; ; least *= 1.5 {
		n := 0
		for i := range rows {
			drawn[i] = bars(rows[i].attempts, px, end, least)
			n += len(drawn[i])
		}
		if n <= max(mostTimes, len(rows)) {
			break
		}
	}
	c.numbers("number x", bottom+18, 0, c.width-2, x.inside(max(3, int((right-left)/80)), false), 100,
		func(v float64) float64 { return px(v * length) }, func(at float64, _ bool) {
			c.f(`<path class="grid" d="M%.1f %.1fV%.1f"/>`+"\n", at, y, bottom)
		})
	for i, r := range rows {
		if i == 0 || rows[i-1].worker != r.worker {
			c.label("soft", left-8, y+12, "end", r.worker, columns)
		}
		for _, b := range drawn[i] {
			b.draw(c, y+2)
		}
		y += rowHeight
	}
	c.f(`<path class="axis" d="M%.1f %.1fH%.1f"/>`+"\n", left, bottom, right)
	c.label("soft", (left+right)/2, bottom+38, "middle", name+" since the start", 60)
	total := 0
	for _, n := range counts {
		total += n
	}
	return c.finish(fmt.Sprintf("%d attempts of workers over time.", total), bottom+50)
}

// rows puts attempts into rows, those of a worker below each other: each into the first
// row that is free.
func (g *Gantt) rows() (rows []row, end float64, counts map[State]int) {
	counts = map[State]int{}
	all := slices.DeleteFunc(slices.Clone(g.Attempts), func(a Attempt) bool { return math.IsNaN(a.Start) })
	end = g.End
	if math.IsNaN(end) {
		end = 0
	}
	for i := range all {
		a := &all[i]
		counts[a.State]++
		if !math.IsNaN(a.End) {
			end = max(end, a.End)
		}
		end = max(end, a.Start)
	}
	end = min(end, largest)
	slices.SortStableFunc(all, func(a, b Attempt) int { return cmp.Compare(a.Start, b.Start) })
	byWorker := map[string][]row{}
	var order []string
	for _, a := range all {
		if math.IsNaN(a.End) {
			a.End = end
		}
		mine, known := byWorker[a.Worker]
		if !known {
			order = append(order, a.Worker)
		}
		i := slices.IndexFunc(mine, func(r row) bool { return r.attempts[len(r.attempts)-1].End <= a.Start })
		if i < 0 {
			mine, i = append(mine, row{worker: a.Worker}), len(mine)
		}
		mine[i].attempts = append(mine[i].attempts, a)
		byWorker[a.Worker] = mine
	}
	slices.Sort(order)
	for _, worker := range order {
		rows = append(rows, byWorker[worker]...)
	}
	return rows, end, counts
}

// bar is one bar, of one attempt or of n that are too narrow to be seen one by one.
type bar struct {
	Attempt
	from, to float64
	n        int
	// busy is how many seconds the attempts took, failed how many those took that did not
	// complete.
	busy, failed float64
}

// bars returns the bars of a row. Neighbours that are less than least wide together become
// one.
func bars(attempts []Attempt, px func(float64) float64, end, least float64) []bar {
	var list []bar
	for _, a := range attempts {
		a.End = min(a.End, end)
		b := bar{Attempt: a, from: px(a.Start), to: px(a.End), n: 1, busy: a.End - a.Start}
		if a.State == Failed || a.State == Infeasible || a.State == Lost {
			b.failed = b.busy
		}
		if k := len(list) - 1; k >= 0 && b.to-list[k].from < least {
			last := &list[k]
			if last.failed == 0 && b.failed > 0 { // what a click opens
				last.Trial, last.Number = b.Trial, b.Number
			}
			last.to, last.End, last.n = max(b.to, last.to), b.End, last.n+1
			last.busy, last.failed = last.busy+b.busy, last.failed+b.failed
			continue
		}
		list = append(list, b)
	}
	return list
}

const timeHeight = 12

func (b *bar) draw(c *canvas, y float64) {
	if b.n > 1 {
		b.drawMany(c, y)
		return
	}
	color := 5
	for _, s := range states {
		if s.state == b.State {
			color = s.color
		}
	}
	note := fmt.Sprintf("trial %d, attempt %d on %s: %s after %s s", b.Trial, b.Number, b.Worker, b.State, short(b.End-b.Start))
	if b.State == Running {
		note = fmt.Sprintf("trial %d, attempt %d on %s: runs since %s s", b.Trial, b.Number, b.Worker, short(b.End-b.Start))
	}
	if b.Reason != "" {
		note += " (" + b.Reason + ")"
	}
	attributes := data(b.Trial, b.Start, math.NaN()) + ` data-end="` + exact(b.End) + `" data-state="` + escape(string(b.State)) + `"`
	c.f(`<rect class="bar %s" x="%.2f" y="%.1f" width="%.2f" height="%d"%s>%s</rect>`+"\n", colour(color), b.from, y, max(0.6, b.to-b.from),
		timeHeight, attributes, tip(note))
	if b.State == Failed && b.to-b.from > 12 {
		x := (b.from + b.to) / 2
		c.f(`<path class="sign over" d="M%.1f %.1fl6 6m-6 0l6-6"/>`+"\n", x-3, y+3)
	}
}

// drawMany draws attempts that are too narrow to be seen one by one: as high as the share
// of the time in which there was one, with the share of those that failed at the bottom.
func (b *bar) drawMany(c *canvas, y float64) {
	busy := 1.0
	if whole := b.End - b.Start; whole > 0 {
		busy = min(1, b.busy/whole)
	}
	bad := 0.0
	if b.busy > 0 {
		bad = b.failed / b.busy
	}
	note := fmt.Sprintf("%d attempts on %s: busy %.0f%% of the time, %.0f%% of it without a value", b.n, b.Worker, 100*busy, 100*bad)
	width, height, bottom := max(0.6, b.to-b.from), max(1, timeHeight*busy), y+timeHeight
	c.f(`<rect class="bar c0" x="%.1f" y="%.1f" width="%.1f" height="%.1f"%s data-end="%s" data-count="%d">%s</rect>`+"\n",
		b.from, bottom-height, width, height, data(b.Trial, b.Start, math.NaN()), exact(b.End), b.n, tip(note))
	if bad > 0 {
		c.f(`<rect class="bar c1" x="%.1f" y="%.1f" width="%.1f" height="%.1f"/>`+"\n", b.from, bottom-max(1, height*bad), width,
			max(1, height*bad))
	}
}
