package dashboard

import (
	"fmt"
	"strconv"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/internal/show/figure"
	"github.com/fantasia-hpo/fantasia/study"
)

// main is the main part of an error's page.
func (f *failData) main() g.Node {
	return h.Section(h.Class("card narrow"),
		h.H1(g.Text(f.Title)),
		h.P(h.Role("alert"), g.Text(f.Problem)),
		h.P(
			g.If(f.Again, g.Group{h.A(href(""), g.Text("Try again")), g.Text(", or go")}), g.If(!f.Again, g.Text("Go")),
			g.Text(" to the "), h.A(href(Path), g.Text("list of studies")), g.Text("."),
		),
	)
}

// main is the main part of the login page.
func (l *loginData) main() g.Node {
	return h.Section(h.Class("card narrow"),
		h.H1(g.Text("Log in")),
		g.If(l.Elsewhere, h.P(
			g.Text("A link on another site led you here, and your browser did not say who you are. If you have logged in, "),
			h.A(href(l.Next), g.Text("go on")), g.Text("."),
		)),
		g.If(l.Problem != "", h.P(h.Class("problem"), h.Role("alert"), g.Text(l.Problem))),
		h.Form(h.Method("post"), h.Action(Path+"login"),
			h.Input(h.Type("hidden"), h.Name("next"), h.Value(l.Next)),
			h.Label(h.For("token"), g.Text("Token")),
			h.Input(h.ID("token"), h.Name("token"), h.Type("password"), h.AutoComplete("current-password"), h.Required(), h.AutoFocus()),
			h.Button(g.Text("Log in")),
		),
		h.P(h.Class("soft"), g.Text("It is the token that "), h.Code(g.Text("fantasia --token")),
			g.Text(" takes. Your browser keeps it until you close it or log out.")),
	)
}

// main is the main part of the list of studies.
func (s *studiesData) main() g.Node {
	rows := g.Map(s.Studies, studyItem.html)
	if len(s.Studies) == 0 {
		text := g.Group{g.Text("There are no studies yet. Start one with "), h.Code(g.Text("fantasia study create -f STUDY.yaml")), g.Text(".")}
		if s.Narrowed {
			text = g.Group{g.Text("No study fits the filter.")}
		}
		rows = g.Group{noRows(8, text)}
	}
	return g.Group{
		h.H1(g.Text("Studies")),
		h.Form(h.Class("filter row"), h.Method("get"), h.Action(Path), g.Attr("data-auto"),
			h.Label(g.Text("Name contains "), h.Input(h.Name("name"), h.Value(s.Name))), space,
			h.Label(g.Text("State "), h.Select(h.Name("state"), h.Option(h.Value(""), g.Text("any")),
				g.Map(s.States, func(state study.State) g.Node {
					return h.Option(h.Value(string(state)), g.If(string(state) == s.State, h.Selected()), g.Text(lower(state)))
				}))), space,
			h.Button(g.Text("Filter")), g.If(s.Narrowed, g.Group{space, h.A(href(Path), g.Text("Clear"))}),
		),
		list(h.Aria("label", "Studies"),
			head("Study", "State", "#Best", "#Recommended", "#Trials", "#Trials a minute", "#Time", "Optimiser"),
			h.TBody(h.ID("studies"), live, rows),
		),
		g.If(s.First != "" || s.Next != "", pager("Pages", nil, link{"First page", s.First}, link{"Next page", s.Next})),
	}
}

// html is the row of a study.
func (s studyItem) html() g.Node {
	best, of, recommended := "–", s.Objective.Metric, "–"
	if s.Best != nil {
		best = number(s.Best.Value)
	}
	if s.Objectives > 1 {
		of = fmt.Sprintf("of %d objectives", s.Objectives)
		if s.FrontSize != nil && *s.FrontSize > 0 {
			best = "front of " + count(*s.FrontSize, "trial", "trials")
		}
	}
	if r := s.Recommended; r != nil && r.Front != nil {
		recommended = count(len(r.Front), "trial", "trials")
	} else if r != nil {
		recommended = view.Expected(r.Mean, r.SD)
	}
	trials := thousands(s.Ended)
	if s.Budget > 0 { // otherwise only time bounds them
		trials += " of " + thousands(s.Budget)
	}
	if s.Open > 0 {
		trials += fmt.Sprintf(", %s open", thousands(s.Open))
	}
	return h.Tr(
		rowHead(h.A(href(studyAddress(s.Study.Study)), g.Text(s.Study.Study))),
		h.Td(stateBadge(s.State), g.If(s.Reason != "", g.Group{space, h.Span(h.Class("soft reason"), h.Title(s.Reason), g.Text(s.Reason))})),
		numberCell(g.Text(best), space, h.Span(h.Class("soft broken"), g.Text(of))),
		numberCell(g.Text(recommended)), numberCell(g.Text(trials)), numberCell(g.Text(s.Rate)), numberCell(g.Text(figure.Duration(s.Elapsed))),
		textCell(s.Algorithm),
	)
}

// pager leads to other pages, but for those without an address.
func pager(name string, before g.Node, links ...link) g.Node {
	content := g.Group{h.Class("pager"), h.Aria("label", name), before}
	for _, l := range links {
		if l.Address != "" {
			content = append(content, space, h.A(href(l.Address), g.Text(l.Text)))
		}
	}
	return h.Nav(content)
}

// main is the main part of the page of workers.
func (d *workersData) main() g.Node {
	rows := g.Map(d.Workers, func(w workerItem) g.Node { return w.html(d.Now) })
	if len(d.Workers) == 0 {
		rows = g.Group{noRows(7, g.Text("The leader knows no worker. Start one with "), h.Code(g.Text("worker --nats URL")), g.Text("."))}
	}
	return g.Group{
		h.H1(g.Text("Workers")),
		h.P(h.ID("workers-sum"), live, g.Textf("%s; %d of %s free.", count(len(d.Workers), "worker", "workers"), d.Free,
			count(d.Slots, "slot", "slots"))),
		list(h.Aria("label", "Workers"),
			head("Worker", "Pool", "#Free slots", "Runs", "Last heartbeat", "Host", "Software"),
			h.TBody(h.ID("workers"), live, rows),
		),
	}
}

// html is the row of a worker.
func (w workerItem) html(now time.Time) g.Node {
	runs := listed(w.Trials, func(t workerTrial) g.Node {
		return g.Group{
			h.A(href(trialAddress(t.Study, t.Trial)), g.Text(t.Study+" "+strconv.Itoa(t.Trial))),
			g.If(t.Attempt > 1, g.Textf(" (attempt %d)", t.Attempt)),
		}
	})
	return h.Tr(
		rowHead(g.Text(w.Worker.Worker), g.If(w.Leaving, g.Group{space, h.Span(h.Class("badge quiet"), g.Text("leaving"))})),
		textCell(w.Pool), numberCell(g.Textf("%d of %d", w.Free, w.Slots)),
		h.Td(
			runs, g.If(w.Others > 0, g.Group{space, soft(count(w.Others, "trial", "trials") + " of other studies")}),
			g.If(len(w.Trials) == 0 && w.Others == 0, g.Text("–")),
		),
		textCell(ago(w.Seen, now)), textCell(w.Host), textCell(w.Software),
	)
}
