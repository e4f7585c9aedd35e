package htmlreport

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed" // the page's style
	"encoding/base64"
	"fmt"
	"io"
	"slices"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/fantasia-hpo/fantasia/internal/show/picture"
)

// The widths for which pictures are drawn, in pixels. Text keeps its size, so they are close to
// the widths at which the page shows them.
const (
	broadWidth = 940
	smallWidth = 356
)

// line begins a new line of the file.
var line = g.Raw("\n")

// html returns the whole page. All text and all attributes are escaped, but for the style and
// the pictures.
func (p *page) html() g.Node {
	return h.Doctype(h.HTML(h.Lang("en"), line,
		h.Head(
			line, h.Meta(h.Charset("utf-8")),
			line, h.Meta(g.Attr("http-equiv", "Content-Security-Policy"), h.Content(p.Policy)),
			line, h.Meta(h.Name("viewport"), h.Content("width=device-width, initial-scale=1")),
			line, h.Meta(h.Name("color-scheme"), h.Content("light dark")),
			line, h.Link(h.Rel("icon"), h.Href("data:,")),
			line, h.TitleEl(g.Text(p.Title)),
			line, h.StyleEl(g.Raw(p.Style)), // it comes from this program
		),
		line, h.Body(
			line, h.Header(
				line, h.H1(g.Text(p.Title)),
				line, h.P(h.Class("sub"), g.Text(p.Subtitle)),
				g.If(len(p.Groups) > 0, h.Nav(h.Aria("label", "Parts of the report"), g.Map(p.Groups, func(q group) g.Node {
					return h.A(h.Href("#"+q.ID), g.Text(q.Name))
				}))),
			),
			line, h.Main(
				g.Map(p.Groups, func(q group) g.Node { return section(q.ID, q.Name, q.Intro, q.Figures) }),
				g.If(len(p.Figures) > 0, section("", "", p.Lead, p.Figures)),
			),
			line, h.Footer(g.Text(p.Footer)),
		),
	))
}

// section returns a part of the page; id, name and intro may be empty.
func section(id, name, intro string, figures []item) g.Node {
	return g.Group{line, h.Section(
		g.If(id != "", h.ID(id)),
		g.If(name != "", h.H2(g.Text(name))),
		g.If(intro != "", h.P(h.Class("intro"), g.Text(intro))),
		line, h.Div(h.Class("figures"), g.Map(figures, item.html)),
	)}
}

// html returns a figure with its pictures, table and lines.
func (f item) html() g.Node {
	parts := g.Group{line, h.FigCaption(h.H3(g.Text(f.Title)), h.P(g.Text(f.Help)))}
	for _, p := range f.Pictures {
		if f.Broad {
			parts = append(parts, line, h.Div(h.Class("large"), draw(p, f.Title, broadWidth)), h.Div(h.Class("small"), draw(p, f.Title, smallWidth)))
		} else {
			parts = append(parts, line, h.Div(draw(p, f.Title, smallWidth)))
		}
	}
	if f.Table != nil {
		parts = append(parts, line, f.Table.html())
	}
	for _, text := range f.Lines {
		parts = append(parts, line, h.P(h.Class("line"), g.Text(text)))
	}
	return g.Group{line, h.Figure(h.ID(f.ID), g.If(f.Broad, h.Class("broad")), parts)}
}

// draw draws a picture for a width in pixels when it is written. Pictures escape all that
// comes from users, so their SVG is safe in a page.
func draw(p picture.Picture, title string, width int) g.Node {
	return g.NodeFunc(func(w io.Writer) error {
		_, err := w.Write(p.SVG(picture.Frame{Title: title, Width: width, Inline: true}))
		return err
	})
}

func (t *table) html() g.Node {
	parts := g.Group{h.Class("table"), h.TabIndex("0"), h.Role("region"), h.Aria("label", "table")}
	if len(t.Rows) > 0 {
		parts = append(parts, line, h.Table(
			line, h.THead(h.Tr(t.head())),
			line, h.TBody(g.NodeFunc(t.rows)),
		))
	}
	if t.Note != "" {
		parts = append(parts, line, h.P(h.Class("note"), g.Text(t.Note)))
	}
	return h.Div(parts)
}

// head returns the cells of the table's head, and aligns each column as its numbers are: the rows follow.
func (t *table) head() (cells g.Group) {
	for i, text := range t.Header {
		number := slices.ContainsFunc(t.Rows, func(row []cell) bool { return i < len(row) && row[i].Class == "number" })
		for _, row := range t.Rows {
			if number && i < len(row) {
				row[i].Class = "number"
			}
		}
		cells = append(cells, h.Th(h.Scope("col"), g.If(number, h.Class("number")), g.Text(text)))
	}
	return cells
}

// rows writes the rows one by one: a table can have one for each of many thousand trials.
func (t *table) rows(w io.Writer) error {
	for _, row := range t.Rows {
		if err := (g.Group{line, h.Tr(g.Map(row, cell.html))}).Render(w); err != nil {
			return err
		}
	}
	return nil
}

func (c cell) html() g.Node {
	return h.Td(g.If(c.Class != "", h.Class(c.Class)), g.If(c.Value != "", h.Data("value", c.Value)), g.Text(c.Text))
}

//go:embed page.css
var pageStyle string

// page is what a report shows.
type page struct {
	Title, Subtitle string
	Groups          []group
	Style           string
	// Policy is the content security policy: nothing is loaded, nothing is run, and the
	// only style is the page's own.
	Policy  string
	Footer  string
	Lead    string
	Figures []item
}

// newPage returns a page with its style and its policy.
func newPage(title string) page {
	style := pageStyle + picture.Style()
	sum := sha256.Sum256([]byte(style))
	return page{
		Title: title,
		Style: style,
		Policy: "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
			"'; img-src data:; base-uri 'none'; form-action 'none'",
	}
}

// WriteHTML writes the report as one HTML file.
func (r *Report) WriteHTML(w io.Writer) error {
	p := newPage(r.src.Study.Metadata.Name)
	p.Subtitle = fmt.Sprintf("study by %s, %s", r.src.Study.Spec.Algorithm.Name, r.src.View.State)
	if r.src.Reason != "" {
		p.Subtitle += ": " + r.src.Reason
	}
	p.Groups = r.groups
	p.Footer = footer(r.src.Version, r.src.Now)
	return p.write(w)
}

func footer(version string, now time.Time) string {
	return fmt.Sprintf("Made by fantasia %s on %s. Point at a mark to see its numbers.", version, now.UTC().Format("2006-01-02 15:04:05 UTC"))
}

// HTML makes a report and returns its file.
func HTML(ctx context.Context, src *Source) ([]byte, error) {
	made, err := Of(ctx, src)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = made.WriteHTML(&b)
	return b.Bytes(), err
}

func (p *page) write(w io.Writer) error {
	b := bufio.NewWriter(w)
	_ = p.html().Render(b) // Flush returns its error
	if err := b.Flush(); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}
