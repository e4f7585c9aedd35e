package dashboard

import (
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/fantasia-hpo/fantasia/api/view"
)

// What the pages are made of. Every text and every value of an attribute is escaped, except
// by raw.

// space is between two words or links of a line.
var space = g.Text(" ")

// live marks an element that the script replaces by that of the current page.
var live = g.Attr("data-live")

// document returns a whole page with its main part.
func (p *page) document(main g.Node) g.Node {
	return h.Doctype(h.HTML(h.Lang("en"),
		h.Head(
			h.Meta(h.Charset("utf-8")),
			h.Meta(h.Name("viewport"), h.Content("width=device-width, initial-scale=1")),
			h.Meta(h.Name("color-scheme"), h.Content("light dark")),
			h.TitleEl(g.Text(p.Title+" – Fantasia")),
			h.Link(h.Rel("icon"), href(p.Icon)),
			h.Link(h.Rel("stylesheet"), href(p.Style)),
			h.Script(h.Src(p.Script), h.Defer()),
		),
		h.Body(h.Data("events", p.Events), h.Data("poll", strconv.Itoa(p.Poll)), h.Data("width", strconv.Itoa(p.Width)),
			h.A(h.Class("skip"), href("#main"), g.Text("Skip to the content")),
			h.Header(h.Class("top"),
				h.Nav(h.Aria("label", "Main"),
					h.A(h.Class("brand"), href(Path), g.Text("Fantasia")), space,
					h.A(href(Path), g.If(p.Here == "studies", h.Aria("current", "true")), g.Text("Studies")), space,
					h.A(href(Path+"workers"), g.If(p.Here == "workers", h.Aria("current", "true")), g.Text("Workers")),
				),
				h.P(h.Class("live"), h.ID("live"), g.Attr("hidden"), h.Role("status")),
				g.If(p.User != "", h.Form(h.Method("post"), h.Action(Path+"logout"), soft(p.User), space,
					h.Button(h.Class("plain"), g.Text("Log out")))),
			),
			h.Main(h.ID("main"), h.TabIndex("-1"), main),
		),
	))
}

// href is the address of a link to a page or a file of the dashboard, or to a place on the
// same page. No link leads elsewhere, whatever the address is.
func href(address string) g.Node {
	if address != "" && !strings.HasPrefix(address, Path) && address[0] != '?' && address[0] != '#' {
		address = Path
	}
	return h.Href(address)
}

// studyAddress returns the address of a study's first page.
func studyAddress(study string) string { return Path + "studies/" + url.PathEscape(study) }

// raw writes what this package or package picture made, and escaped.
func raw(made []byte) g.Node {
	return g.NodeFunc(func(w io.Writer) error {
		_, err := w.Write(made)
		return err
	})
}

func soft(text string) g.Node     { return h.Span(h.Class("soft"), g.Text(text)) }
func softLine(text string) g.Node { return h.P(h.Class("soft"), g.Text(text)) }
func big(text string) g.Node      { return h.P(h.Class("big"), g.Text(text)) }

// stateBadge shows a state of a study or a trial.
func stateBadge[S ~string](state S) g.Node {
	return h.Span(h.Class("badge "+badge(state)), g.Text(lower(state)))
}

// marks says whether a trial is the best one or the recommended one.
func marks(best, recommended bool) g.Node {
	mark := func(text string) g.Node { return g.Group{space, h.Span(h.Class("badge mark"), g.Text(text))} }
	return g.Group{g.If(best, mark("best")), g.If(recommended, mark("recommended"))}
}

// codes makes what is between backquotes code.
func codes(text string) g.Node {
	var parts g.Group
	for i, part := range strings.Split(text, "`") {
		if i%2 == 1 {
			parts = append(parts, h.Code(g.Text(part)))
		} else {
			parts = append(parts, g.Text(part))
		}
	}
	return parts
}

// listed puts commas between nodes.
func listed[T any](items []T, node func(T) g.Node) g.Node {
	var list g.Group
	for i, item := range items {
		list = append(list, g.If(i > 0, g.Text(", ")), node(item))
	}
	return list
}

// entry is a name with what belongs to it.
func entry(name string, value ...g.Node) g.Node {
	return h.Div(h.Dt(g.Text(name)), h.Dd(value...))
}

func fieldList(list []field) g.Node {
	return h.Dl(h.Class("fields"), g.Map(list, func(f field) g.Node { return entry(f.Name, g.Text(f.Value)) }))
}

func factList(list []fact) g.Node {
	return h.Dl(h.Class("facts"), g.Map(list, func(f fact) g.Node {
		return entry(f.Name, g.Text(f.Value), g.If(f.Help != "", g.Group{space, soft(f.Help)}))
	}))
}

// panelGrid lays panels out; it is nothing without them.
func panelGrid(list []panel) g.Node {
	return g.If(len(list) > 0, h.Div(h.Class("panels"), g.Map(list, panel.html)))
}

func (p panel) html() g.Node {
	class := "panel"
	if p.Half {
		class += " half"
	}
	return h.Section(h.Class(class), h.ID("panel-"+p.ID), live, h.Aria("labelledby", "title-"+p.ID),
		h.H3(h.ID("title-"+p.ID), g.Text(p.Title)), softLine(p.Help), raw(p.Picture), g.Map(p.Lines, softLine),
	)
}

// limitsLine says how many trials are within the limits of a study, if it has any.
func limitsLine(s *view.Study) g.Node {
	if len(s.Limits) == 0 {
		return nil
	}
	return h.P(h.Class("soft"), g.Text("Within limits: "),
		listed(s.Limits, func(l view.Limit) g.Node { return g.Textf("%s (%d)", l.Limit, l.Met) }),
		g.Text(fmt.Sprintf("; all of them %d", *s.WithinLimits)),
	)
}

// grid is a table that scrolls sideways if it is wide. The attribute names it.
func grid(name g.Node, content ...g.Node) g.Node {
	return h.Div(h.Class("scroll"), h.Role("region"), name, h.TabIndex("0"), h.Table(content...))
}

// list is a grid whose cells break their lines, so that it needs no scrollbar on a laptop's screen.
func list(name g.Node, content ...g.Node) g.Node {
	return h.Div(h.Class("fit"), grid(name, content...))
}

// head returns the head of a table. A title that begins with # is that of numbers.
func head(titles ...string) g.Node {
	return h.THead(h.Tr(g.Map(titles, func(title string) g.Node {
		title, numbers := strings.CutPrefix(title, "#")
		return h.Th(h.Scope("col"), g.If(numbers, h.Class("n")), g.Text(title))
	})))
}

func rowHead(content ...g.Node) g.Node { return h.Th(h.Scope("row"), g.Group(content)) }

func numberCell(content ...g.Node) g.Node { return h.Td(h.Class("n"), g.Group(content)) }

func textCell(text string) g.Node { return h.Td(g.Text(text)) }

// noRows is the row of an empty table.
func noRows(columns int, content ...g.Node) g.Node {
	return h.Tr(h.Td(h.ColSpan(strconv.Itoa(columns)), g.Group(content)))
}
