package dashboard

import (
	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

// filtered is the filter, with how many trials it shows.
func (b *bodyData) filtered() g.Node {
	f := b.Filter
	title, shown := "Filter", g.Text(count(b.Of, "trial", "trials"))
	if f.Narrows {
		title += ": " + f.Summary
		shown = g.Group{g.Textf("Showing %s of %d. ", count(b.Shown, "trial", "trials"), b.Of), h.A(href(f.Clear), g.Text("Show all"))}
	}
	return g.Group{
		h.Details(h.Class("filter"), g.If(f.Narrows, g.Attr("open")), h.Summary(g.Text(title)), f.html()),
		h.P(h.Class("soft"), h.ID("shown"), live, shown),
	}
}

// html is the form of the filter.
func (f *filterForm) html() g.Node {
	return h.Form(h.Method("get"), g.Attr("data-auto"),
		h.Div(h.Class("row"),
			h.Label(g.Text("Best only "), h.Input(h.Name("top"), g.Attr("inputmode", "numeric"), size("6"), h.Placeholder("all"), h.Value(f.Top))),
			space,
			h.Label(g.Text("Value "), h.Input(h.Name("value"), size("14"), h.Placeholder("low..high"), h.Value(f.Value))), space,
			h.Label(g.Text("Worker "), h.Input(h.Name("worker"), size("12"), h.Value(f.Worker))), space,
			g.If(len(f.Objectives) > 0, g.Group{h.Label(g.Text("Objective in pictures "),
				h.Select(h.Name("objective"), g.Map(f.Objectives, func(o option) g.Node {
					return h.Option(g.If(o.Set, h.Selected()), g.Text(o.Value))
				}))), space}),
			h.Label(g.Text("Horizontal axis "), h.Select(h.Name("x"),
				h.Option(h.Value(""), g.Text("evaluations")), h.Option(h.Value("time"), g.If(f.ByTime, h.Selected()), g.Text("time")),
			)),
		),
		h.FieldSet(h.Legend(g.Text("State")), boxes("state", f.States)),
		h.FieldSet(h.Legend(g.Text("Source")), boxes("source", f.Sources)),
		g.If(len(f.Params) > 0, h.FieldSet(h.Class("params"), h.Legend(g.Text("Parameters")), g.Map(f.Params, formParam.html))),
		h.Input(h.Type("hidden"), h.Name("sort"), h.Value(f.Sort)), space,
		h.Button(g.Text("Show")), g.If(f.Narrows, g.Group{space, h.A(href(f.Clear), g.Text("Show all"))}),
	)
}

// html is the range or the choices of a parameter; nothing if it has too many choices.
func (p formParam) html() g.Node {
	switch {
	case len(p.Choices) > 0:
		return h.FieldSet(h.Legend(g.Text(p.Name)), boxes("p."+p.Name, p.Choices))
	case p.Hint != "":
		return g.Group{h.Label(g.Text(p.Name+" "), h.Input(h.Name("p."+p.Name), size("18"), h.Placeholder(p.Hint), h.Value(p.Range))), space}
	}
	return nil
}

// boxes are choices of which several can be set.
func boxes(name string, options []option) g.Node {
	return g.Map(options, func(o option) g.Node {
		return g.Group{h.Label(h.Input(h.Type("checkbox"), h.Name(name), h.Value(o.Value), g.If(o.Set, h.Checked())), g.Text(" "+o.Text)), space}
	})
}

func size(characters string) g.Node { return g.Attr("size", characters) }
