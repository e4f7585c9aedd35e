package dashboard

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

// main is the main part of the page of a trial.
func (d *trialData) main() g.Node {
	return g.Group{
		h.Div(h.Class("head"),
			h.P(h.Class("soft crumbs"), h.A(href(Path), g.Text("Studies")), g.Text(" / "), h.A(href(studyAddress(d.Study)), g.Text(d.Study)),
				g.Text(" /")),
			h.H1(g.Text("Trial "+strconv.Itoa(d.Trial.Number))),
			h.Div(h.ID("state"), live, stateBadge(d.Trial.State), marks(d.Best, d.Suggest)),
			h.Nav(h.Class("pager"), h.Aria("label", "Other trials"),
				g.If(d.Earlier != "", h.A(href(d.Earlier), h.Rel("prev"), g.Text("Previous"))), space,
				g.If(d.Later != "", h.A(href(d.Later), h.Rel("next"), g.Text("Next"))),
			),
		),
		h.Div(h.Class("cards"), h.ID("summary"), live,
			card("value-title", d.Metric, d.outcome()),
			card("params-title", "Parameters", fieldList(d.Params)),
			card("why-title", "Why this point", factList(d.Why), d.others()),
		),
		titled("around-title", "Around this point", h.Div(h.ID("around"), live,
			h.P(h.Class("soft"+coming(d.AroundWait)), g.Text(d.AroundNote)), panelGrid(d.Around),
		)),
		panelGrid(d.Panels),
		titled("attempts-title", "Attempts", d.attempts()),
		titled("log-title", "Log",
			h.Div(h.ID("lognote"), live, g.If(d.LogNote != "", softLine(d.LogNote))),
			h.Pre(h.Class("log"), h.ID("log"), h.TabIndex("0"), h.Role("log"), h.Aria("labelledby", "log-title"), h.Aria("live", "off"),
				g.If(d.LogAddress != "", h.Data("log", d.LogAddress)), g.If(d.Log == "", g.Attr("hidden")), g.Text(d.Log)),
		),
		titled("stages-title", "Stages",
			h.Div(h.ID("stages"), live, factList(d.Stages)),
			g.If(d.Trial.Checkpoint != "", h.P(g.Text("Last checkpoint: "), h.Code(g.Text(d.Trial.Checkpoint)))),
			g.If(d.Trial.TraceID != "", h.P(g.Text("Trace id: "), h.Code(g.Text(d.Trial.TraceID)))),
		),
	}
}

// card is a part of the summary with its title.
func card(id, title string, content ...g.Node) g.Node {
	return h.Section(h.Class("card"), h.Aria("labelledby", id), h.H2(h.ID(id), g.Text(title)), g.Group(content))
}

// titled is a part of the page with its title.
func titled(id, title string, content ...g.Node) g.Node {
	return h.Section(h.Aria("labelledby", id), h.H2(h.ID(id), g.Text(title)), g.Group(content))
}

// coming is the class of a text that says what is being computed, so that the script asks
// again soon.
func coming(is bool) string {
	if is {
		return " coming"
	}
	return ""
}

// outcome is what the evaluation measured, and why it ended before its time.
func (d *trialData) outcome() g.Node {
	list := g.Group{big(d.Value)}
	if len(d.Exceeded) > 0 {
		list = append(list, softLine("Outside of "+strings.Join(d.Exceeded, ", ")))
	}
	if d.Cost != "" {
		list = append(list, softLine("Cost: "+d.Cost))
	}
	if s := d.Trial.Stopped; s != nil {
		list = append(list, softLine(fmt.Sprintf("Stopped early at step %d: %s", s.Step, s.Reason)))
	}
	if n := d.Trial.Predecessor; n > 0 && d.Trial.Rung == 0 {
		list = append(list, h.P(h.Class("soft"), g.Text("Continues "),
			h.A(href(trialAddress(d.Study, n)), g.Textf("trial %d", n)), g.Text(", which was stopped early.")))
	}
	if d.Trial.Cancelled != "" {
		list = append(list, softLine("Cancelled: "+d.Trial.Cancelled))
	}
	if len(d.Metrics) > 0 {
		list = append(list, fieldList(d.Metrics))
	}
	return list
}

// others names the trials that were under way when the point was suggested.
func (d *trialData) others() g.Node {
	if len(d.Meanwhile) == 0 {
		return nil
	}
	more := ""
	if d.More > 0 {
		more = " and " + count(d.More, "other trial", "other trials")
	}
	return h.P(h.Class("soft"), g.Text("Under way when it was created: "),
		listed(d.Meanwhile, func(l link) g.Node { return h.A(href(l.Address), g.Text(l.Text)) }), g.Text(more+"."))
}

func (d *trialData) attempts() g.Node {
	rows := g.Map(d.Attempts, attemptItem.html)
	if len(d.Attempts) == 0 {
		rows = g.Group{noRows(6, g.Text("No attempt has been opened."))}
	}
	return grid(h.Aria("labelledby", "attempts-title"), head("Attempt", "State", "Worker", "Started", "#Duration", "What happened"),
		h.TBody(h.ID("attempts"), live, rows))
}

// html is the row of an attempt.
func (a attemptItem) html() g.Node {
	happened := g.Text(cmp.Or(a.Failure, "–"))
	if a.Details != "" {
		happened = h.Details(h.Summary(g.Text(a.Failure)), h.Pre(g.Text(a.Details)))
	}
	return h.Tr(
		rowHead(g.Text(strconv.Itoa(a.Number))), textCell(string(a.State)),
		h.Td(g.Text(cmp.Or(a.Worker, "–")), g.If(a.Where != "", g.Group{h.Br(), soft(a.Where)})),
		textCell(stamp(a.Started)), numberCell(g.Text(cmp.Or(a.Duration, "–"))), h.Td(happened),
	)
}
