package display

import (
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/internal/base/each"
	"github.com/fantasia-hpo/fantasia/internal/show/layout"
)

// over is the message that the display ends, second that a second has passed.
type (
	over   struct{}
	second struct{}
)

// liveView redraws progress in place.
type liveView struct {
	now           Now
	width, height int
	heard, over   bool
}

// Init starts the clock, which advances even if nothing else happens.
func (v *liveView) Init() tea.Cmd { return tick() }

func tick() tea.Cmd {
	return tea.Tick(time.Second, func(time.Time) tea.Msg { return second{} })
}

// Update applies a newer progress or another size.
func (v *liveView) Update(m tea.Msg) (tea.Model, tea.Cmd) {
	switch m := m.(type) {
	case Now:
		v.now, v.heard = m, true
	case tea.WindowSizeMsg:
		v.width, v.height = m.Width, m.Height
	case second:
		return v, tick()
	case over:
		v.over = true
	}
	return v, nil
}

// View draws the current study; after the end, only the bar remains.
func (v *liveView) View() tea.View {
	if !v.heard {
		return tea.NewView("starting…\n")
	}
	return tea.NewView(strings.Join(v.now.screen(v.width, v.height, v.over, time.Now()), "\n") + "\n")
}

var (
	strong = lipgloss.NewStyle().Bold(true)
	fresh  = lipgloss.NewStyle().Foreground(lipgloss.Color("4"))
	faint  = lipgloss.NewStyle().Faint(true)
	bad    = lipgloss.NewStyle().Foreground(lipgloss.Color("1"))
)

const (
	// labelColumns is the width of the labels at the left, with the space after them.
	labelColumns = 13
	// widestScreen limits the width: longer lines are hard to read.
	widestScreen = 100
	// failureLines is the maximum number of lines for the last failure's reason.
	failureLines = 2
)

// screen lays progress out for a terminal: no line is wider than width, and there are
// at most height lines if the height is known. brief shows only the bar.
func (n *Now) screen(width, height int, brief bool, now time.Time) []string {
	if width <= 0 {
		width = 80
	}
	width = min(width-1, widestScreen) // some terminals wrap in the last column
	lines := []string{n.headline(width, now), bar(n.Counts.Ended(), n.Counts.Running, n.MaxTrials, width)}
	if brief {
		return fit(lines, width)
	}
	value := max(1, width-labelColumns)
	lines = append(lines, labelled("running", n.running(value, now))...)
	if n.Counts.Failed > 0 {
		text := fmt.Sprint(n.Counts.Failed)
		if n.FailedTrial > 0 {
			text += fmt.Sprintf(", last trial %d: %s", n.FailedTrial, layout.VisibleText(n.Failure))
		}
		lines = append(lines, labelled("failed", wrap(text, value, failureLines, bad))...)
	}
	if n.Counts.Infeasible > 0 {
		lines = append(lines, labelled("infeasible", []string{fmt.Sprint(n.Counts.Infeasible)})...)
	}
	if n.Counts.Pruned > 0 {
		lines = append(lines, labelled("pruned", []string{fmt.Sprint(n.Counts.Pruned)})...)
	}
	if n.Cost != nil {
		lines = append(lines, labelled("cost", []string{ansi.Truncate(layout.VisibleText(n.Cost.String()), value, "…")})...)
	}
	if n.Best == nil {
		return fit(lines, width)
	}
	lines = append(lines, labelled("best", []string{fmt.Sprintf("%s = %s in trial %d",
		ansi.Truncate(layout.VisibleText(n.Metric), max(4, value-26), "…"), fresh.Render(view.Number(n.Best.Value)), n.Best.Trial)})...)
	var after []string
	if r := n.Recommended; r.Trial > 0 {
		after = labelled("recommended", []string{view.Recommended(r.Trial, r.Mean, r.SD, r.Front)})
	}
	rows := -1
	if height > 0 {
		rows = max(1, height-len(lines)-len(after)-1)
	}
	lines = append(lines, n.point(value, rows)...)
	return fit(append(lines, after...), width)
}

// headline returns the study's name, the counter, and the times. If the columns are too few,
// it shortens the name first, then the times.
func (n *Now) headline(width int, now time.Time) string {
	counter := view.Share(n.Counts.Ended(), n.MaxTrials)
	elapsed := clock(n.elapsed(now))
	long, brief := counter+"  "+elapsed+" elapsed", counter+" "+elapsed
	if left, ok := n.left(now); ok {
		long += ", about " + clock(left) + " left"
		brief += ", " + clock(left) + " left"
	}
	if n.State.Terminal() {
		long += ", " + strings.ToLower(string(n.State))
	}
	name := n.Study
	for _, times := range []string{long, brief, counter} {
		if columns := width - len(times) - 2; columns >= min(ansi.StringWidth(name), 12) {
			return strong.Render(ansi.Truncate(name, columns, "…")) + "  " + counter + faint.Render(strings.TrimPrefix(times, counter))
		}
	}
	return counter
}

// clock formats a duration in seconds: 5s, 1m02s, 3h20m.
func clock(d time.Duration) string {
	d = d.Round(time.Second)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	default:
		return fmt.Sprintf("%dd%02dh", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
	}
}

// running lists the trials being evaluated, the longest first, as far as they fit in
// one line, and the number of waiting ones.
func (n *Now) running(width int, now time.Time) []string {
	tail := ""
	if waiting := n.Counts.Queued + n.Counts.Pending; waiting > 0 {
		tail = fmt.Sprintf("; %d waiting", waiting)
	}
	if len(n.Running) == 0 {
		return []string{fmt.Sprint(n.Counts.Running) + tail}
	}
	running := slices.SortedStableFunc(slices.Values(n.Running), func(a, b Running) int { return a.Since.Compare(b.Since) })
	for shown := len(running); shown > 0; shown-- {
		line := "trial " + each.Join(running[:shown], ", ", func(r Running) string {
			return fmt.Sprintf("%d (%s)", r.Trial, clock(max(0, now.Sub(r.Since))))
		})
		if more := len(running) - shown; more > 0 {
			line += fmt.Sprintf(", %d more", more)
		}
		if ansi.StringWidth(line+tail) <= width {
			return []string{line + tail}
		}
		if shown == 1 && ansi.StringWidth(line) <= width {
			return []string{line}
		}
	}
	return []string{fmt.Sprint(len(running)) + tail}
}

// point lists the best point, a parameter a line, in at most most lines; it shortens
// long names and values. A negative most means no limit.
func (n *Now) point(width, most int) []string {
	var names []string
	longest := 0
	for _, name := range n.Parameters {
		if _, ok := n.Best.Parameters[name]; ok {
			names = append(names, name)
			longest = max(longest, ansi.StringWidth(name))
		}
	}
	longest = min(longest, max(1, width/2))
	var lines []string
	for i, name := range names {
		if most >= 0 && i == most-1 && len(names) > most {
			lines = append(lines, fmt.Sprintf("and %d more", len(names)-i))
			break
		}
		value := layout.VisibleText(view.Value(n.Best.Parameters[name]))
		name = ansi.Truncate(name, longest, "…")
		name += strings.Repeat(" ", longest-ansi.StringWidth(name)+2)
		lines = append(lines, name+ansi.Truncate(value, max(1, width-longest-2), "…"))
	}
	return labelled("", lines)
}

// labelled puts a label before the first line and space before the others.
func labelled(label string, lines []string) []string {
	for i := range lines {
		lines[i] = fmt.Sprintf("%-*s", labelColumns, label) + lines[i]
		label = ""
	}
	return lines
}

// wrap breaks text between words into at most most lines of a width. The last line ends
// in an ellipsis if something is left out.
func wrap(text string, width, most int, style lipgloss.Style) []string {
	lines := strings.Split(ansi.Wrap(strings.Join(strings.Fields(ansi.Strip(text)), " "), width, ""), "\n")
	if len(lines) > most {
		lines = lines[:most]
		last := lines[most-1]
		if i := strings.LastIndex(last, " "); i > 0 && ansi.StringWidth(last) > width-2 {
			last = last[:i]
		}
		lines[most-1] = ansi.Truncate(last, width-2, "") + " …"
	}
	for i := range lines {
		lines[i] = style.Render(lines[i])
	}
	return lines
}

// fit cuts lines that are still too wide, so that nothing wraps.
func fit(lines []string, width int) []string {
	for i := range lines {
		lines[i] = ansi.Truncate(lines[i], width, "…")
	}
	return lines
}

// bar draws the done, running and open trials as a bar of the given width.
func bar(done, running, all, width int) string {
	if all <= 0 {
		return ""
	}
	d := min(width, done*width/all)
	r := min(width-d, (running*width+all-1)/all)
	return fresh.Render(strings.Repeat("█", d)) + faint.Render(strings.Repeat("▒", r)+strings.Repeat("░", width-d-r))
}
