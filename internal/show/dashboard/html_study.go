package dashboard

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/internal/show/figure"
)

// main is the main part of the page of a study.
func (d *studyData) main() g.Node { return raw(d.Body) }

// html is the body of a study's page.
func (b *bodyData) html() g.Node {
	cards := "cards"
	if b.Aims != "" {
		cards += " broad" // a table needs the whole width
	}
	return g.Group{
		b.heading(),
		h.Div(h.Class(cards), h.ID("summary"), live, b.found(), b.progress()),
		h.Nav(h.Class("tabs"), h.Aria("label", "Study"), g.Map(b.Tabs, func(t tab) g.Node {
			return h.A(href(t.Address), g.If(t.Current, h.Aria("current", "page")), g.Text(t.Title))
		})),
		b.filtered(),
		b.insight(),
		g.If(b.Intro != "", h.P(h.ID("busy"), live, g.Text(b.Intro))),
		g.If(len(b.Facts) > 0, h.Div(h.ID("facts"), live, factList(b.Facts))),
		panelGrid(b.Panels),
		b.times(), b.asynchrony(), b.trials(),
	}
}

func (b *bodyData) heading() g.Node {
	s := &b.Study
	var labels g.Group
	for _, key := range slices.Sorted(maps.Keys(s.Labels)) {
		labels = append(labels, h.Span(h.Class("badge"), g.Text(key+"="+s.Labels[key])), space)
	}
	return g.Group{
		h.Div(h.Class("head"),
			h.P(h.Class("soft crumbs"), h.A(href(Path), g.Text("Studies")), g.Text(" /")),
			h.H1(g.Text(s.Study)),
			h.Div(h.ID("state"), live, stateBadge(s.State), g.If(b.Reason != "", g.Group{space, soft(b.Reason)})),
		),
		g.If(len(labels) > 0 || s.Note != "", h.P(h.Class("soft"), h.ID("remarks"), live, labels, g.Text(s.Note))),
		h.Div(h.ID("reading"), live, g.If(b.Reading != "", h.P(h.Class("note"), h.Role("status"), g.Text(b.Reading)))),
	}
}

// found is the front of several objectives, or the best and the recommended trial of one.
func (b *bodyData) found() g.Node {
	if b.Aims != "" {
		return b.front()
	}
	s := &b.Study
	best := g.Group{big("–"), softLine("No trial has completed.")}
	switch {
	case s.Best != nil:
		o := b.Spec.FirstObjective()
		best = g.Group{big(number(s.Best.Value)), b.trialLine(fmt.Sprintf("%s, %s, in ", o.Metric, lower(o.Direction)), s.Best.Trial),
			fieldList(b.Best)}
	case s.UnmetLimits != "":
		best = g.Group{big("–"), softLine("Nothing counts: " + s.UnmetLimits + ".")}
	}
	recommended := g.Group{big("–"), softLine(b.Spec.Algorithm.Name + " has recommended nothing yet.")}
	if r := s.Recommended; r != nil {
		recommended = g.Group{big(view.Expected(r.Mean, r.SD)), b.trialLine("expected by the model, which allows for noise, in ", r.Trial)}
		if s.Best != nil && r.Trial == s.Best.Trial {
			recommended = append(recommended, softLine("The best trial is also the recommended one."))
		} else {
			recommended = append(recommended, fieldList(b.Recommended))
		}
	}
	return g.Group{card("best-title", "Best so far", best, limitsLine(s)), card("recommended-title", "Recommended", recommended)}
}

// trialLine is a line that ends with a link to a trial.
func (b *bodyData) trialLine(text string, trial int) g.Node {
	return h.P(h.Class("soft"), g.Text(text), b.trialLink(trial))
}

func (b *bodyData) trialLink(trial int) g.Node {
	return h.A(href(trialAddress(b.Study.Study, trial)), g.Text("trial "+strconv.Itoa(trial)))
}

// front shows what several objectives have come to.
func (b *bodyData) front() g.Node {
	s := &b.Study
	list := g.Group{
		big(count(b.Front.Of, "trial", "trials")),
		softLine(fmt.Sprintf("that no other one dominates (%s). Pictures of one objective show %s; the filter below chooses another.", b.Aims,
			b.Spec.FirstObjective().Metric)),
	}
	if b.Front.Of > 0 {
		list = append(list, b.frontRows("The front", &b.Front))
	}
	if b.Advised.Of > 0 {
		list = append(list, h.P(g.Text("Recommended by the models, which allow for noise:")), b.frontRows("Recommended", &b.Advised))
	}
	if s.Hypervolume != nil {
		text := "Hypervolume " + number(*s.Hypervolume)
		if b.Spec.Goal != nil {
			text += ", goal " + number(b.Spec.Goal.Hypervolume)
		}
		list = append(list, softLine(text))
	}
	if s.UnmetLimits != "" {
		list = append(list, softLine("Nothing counts: "+s.UnmetLimits+"."))
	}
	return card("front-title", "Front", list, limitsLine(s))
}

// frontRows is the table of a front, with its name for those who cannot see it.
func (b *bodyData) frontRows(name string, t *frontTable) g.Node {
	titles := []string{"Trial"}
	for _, metric := range t.Metrics {
		titles = append(titles, "#"+metric)
	}
	return g.Group{
		h.Div(h.Class("front"), grid(h.Aria("label", name), head(titles...), h.TBody(g.Map(t.Rows, func(r frontRow) g.Node {
			return h.Tr(rowHead(b.trialLink(r.Trial), g.If(r.Knee, g.Group{space, h.Span(h.Class("badge mark"), g.Text("knee"))})),
				g.Map(r.Values, func(value string) g.Node { return numberCell(g.Text(value)) }))
		})))),
		g.If(t.Of > len(t.Rows), softLine(fmt.Sprintf("and %d more", t.Of-len(t.Rows)))),
	}
}

func (b *bodyData) progress() g.Node {
	var states g.Group
	for _, c := range []struct {
		name string
		n    int
	}{
		{"running", b.Trials.Running}, {"queued", b.Trials.Queued}, {"pending", b.Trials.Pending}, {"completed", b.Trials.Completed},
		{"pruned", b.Trials.Pruned}, {"failed", b.Trials.Failed}, {"infeasible", b.Trials.Infeasible}, {"cancelled", b.Trials.Cancelled},
	} {
		if c.n > 0 || c.name == "completed" {
			states = append(states, entry(c.name, g.Text(thousands(c.n))))
		}
	}
	pace := b.Rate + " on average"
	if b.RecentRate != "" {
		pace = b.RecentRate + " now, " + pace
	}
	ended, budget := strconv.Itoa(b.Ended), strconv.Itoa(b.Spec.Budget.MaxTrials)
	bounded := b.Spec.Budget.MaxTrials > 0
	return card("progress-title", "Progress",
		h.P(h.Class("big"), g.Text(thousands(b.Ended)),
			g.If(bounded, g.Group{space, soft("of " + thousands(b.Spec.Budget.MaxTrials) + " trials")})),
		g.If(bounded, h.Progress(h.Value(ended), h.Max(budget), h.Aria("label", "Trials that have ended"),
			g.Text(share(b.Ended, b.Spec.Budget.MaxTrials)+"%"))),
		h.Dl(h.Class("fields"), states,
			entry("trials a minute", g.Text(pace)),
			spent(b.Study.Cost),
			entry("time", g.Text(figure.Duration(b.Elapsed)+b.Left)),
			entry("optimiser", g.Textf("%s, %d at once", b.Spec.Algorithm.Name, b.Spec.Parallelism)),
		),
	)
}

// spent is what the trials have cost; nil if the study has no cost but time.
func spent(c *view.Cost) g.Node {
	if c == nil {
		return nil
	}
	return entry("cost", g.Text(c.String()))
}

// insight is what the model found.
func (b *bodyData) insight() g.Node {
	i := b.Insight
	if i == nil {
		return nil
	}
	list := g.Group{h.P(g.If(i.Coming, h.Class("coming")), g.Text(i.Text))}
	if len(i.Findings) > 0 {
		var findings g.Group
		for _, f := range i.Findings {
			statement := codes(f.Statement)
			if !f.Judged {
				statement = h.Span(h.Class("soft"), statement)
			}
			findings = append(findings, entry(string(f.Topic), statement, space, soft("("+f.Evidence+")")))
		}
		list = append(list, h.H2(g.Text("Findings")), h.Dl(h.Class("findings"), findings))
	}
	return h.Div(h.Class("note"), h.ID("insight"), live, list)
}

// times is how long the parts of trials took.
func (b *bodyData) times() g.Node {
	if len(b.Stages) == 0 {
		return nil
	}
	return tablePanel("stages", "Times", b.StagesHelp, head("Part", "#Half of them at most", "#Nine of ten at most", "#Longest"),
		g.Map(b.Stages, func(s figure.Stage) g.Node {
			return h.Tr(rowHead(g.Text(s.Name)), numberCell(g.Text(figure.Duration(s.Half))), numberCell(g.Text(figure.Duration(s.Nine))),
				numberCell(g.Text(figure.Duration(s.Longest))))
		}))
}

// asynchrony is what it cost to suggest points without the latest results.
func (b *bodyData) asynchrony() g.Node {
	if len(b.Cost) == 0 {
		return nil
	}
	const help = "Trials by how many results their suggestion did not know. If those that missed many found better points much less often, " +
		"fewer parallel trials would need fewer evaluations."
	titles := head("Missed results", "#Trials ended", "#Completed", "#Found a new best", "#Median "+b.Spec.FirstObjective().Metric)
	return tablePanel("cost", "What asynchrony cost", help, titles, g.Map(b.Cost, func(r costRow) g.Node {
		return h.Tr(rowHead(g.Text(r.Missed)), numberCell(g.Text(strconv.Itoa(r.Trials))), numberCell(g.Text(strconv.Itoa(r.Completed))),
			numberCell(g.Text(r.Improved)), numberCell(g.Text(r.Median)))
	}))
}

// tablePanel is a panel with a table.
func tablePanel(id, title, help string, titles, rows g.Node) g.Node {
	return h.Section(h.Class("panel"), h.Aria("labelledby", id+"-title"),
		h.H3(h.ID(id+"-title"), g.Text(title)), softLine(help),
		grid(h.Aria("labelledby", id+"-title"), titles, h.TBody(h.ID(id), live, rows)),
	)
}

// trials is the table of trials.
func (b *bodyData) trials() g.Node {
	t := b.Table
	if t == nil {
		return nil
	}
	rows := g.Map(t.Rows, tableRow.html)
	if len(t.Rows) == 0 {
		rows = g.Group{noRows(len(t.Columns), g.Text("No trials to show."))}
	}
	var shown g.Node
	if t.Of > 0 {
		shown = soft(fmt.Sprintf("%d to %d of %d", t.First, t.Last, t.Of))
	}
	const place = "#trials-title"
	pages := []link{{"Previous", t.Earlier}, {"Next", t.Later}}
	for i := range pages {
		if pages[i].Address != "" {
			pages[i].Address += place
		}
	}
	return titled("trials-title", "Trials",
		h.Div(h.Class("scroll"), h.Role("region"), h.Aria("labelledby", "trials-title"), h.TabIndex("0"), h.ID("trials"),
			h.Table(h.Data("trials", studyAddress(b.Study.Study)+"/trials/"),
				h.THead(h.Tr(g.Map(t.Columns, func(c column) g.Node {
					arrow := map[string]string{"ascending": " ↑", "descending": " ↓"}[c.Order]
					return h.Th(h.Scope("col"), g.If(c.Number, h.Class("n")), g.If(c.Order != "", h.Aria("sort", c.Order)),
						h.A(href(c.Address+place), g.Text(c.Title+arrow)))
				}))),
				h.TBody(h.ID("rows"), live, rows),
			),
		),
		g.Group{pager("Pages of trials", g.Group{h.ID("pager"), live, shown}, pages...)},
	)
}

// html is the row of a trial.
func (r tableRow) html() g.Node {
	n := strconv.Itoa(r.Number)
	return h.Tr(h.Data("trial", n),
		rowHead(h.A(href(r.Address), g.Text(n))),
		h.Td(h.Span(h.Class("badge "+r.Class), g.Text(r.State)), marks(r.Best, r.Suggested)),
		g.Map(r.Cells, func(c cell) g.Node { return h.Td(g.If(c.Number, h.Class("n")), g.Text(c.Text)) }),
	)
}
