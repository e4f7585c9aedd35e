package report

import (
	"html/template"

	"github.com/fantasia-hpo/fantasia/internal/base/picture"
)

// figure is a picture or a table of the report, with a line that says how to read it.
type figure struct {
	// ID names it in links and tests.
	ID, Title, Read string
	// Pictures are drawn one after the other. A broad figure is drawn for the whole
	// width of a page, and once more for a telephone.
	Pictures []drawn
	Broad    bool
	Table    *table
	// Lines are sentences below the picture.
	Lines []string
}

// drawn is a picture as SVG. Small is the form for a telephone; empty if Large fits.
type drawn struct{ Large, Small template.HTML }

// The widths of pictures, in pixels. Text keeps its size, so each is close to the width
// at which the page shows it.
const (
	broadWidth  = 940
	narrowWidth = 356
)

// The pictures escape all that comes from users, so their SVG is safe in a page.
func draw(p picture.Picture, width int) template.HTML {
	return template.HTML(p.SVG(picture.Frame{Width: width, Inline: true})) //nolint:gosec // see above
}

// broad returns a figure of one picture over the whole width.
func broad(id, title, read string, p picture.Picture) figure {
	return figure{ID: id, Title: title, Read: read, Broad: true, Pictures: []drawn{{draw(p, broadWidth), draw(p, narrowWidth)}}}
}

// small returns a figure of one picture in a column.
func small(id, title, read string, p picture.Picture) figure {
	return figure{ID: id, Title: title, Read: read, Pictures: []drawn{{Large: draw(p, narrowWidth)}}}
}

// table is a table of the report.
type table struct {
	Header []string
	Rows   [][]cell
	// Note says which rows are missing; "" if none are.
	Note string
}

// cell is a cell of a table. Value is the exact number, for those who read the page by
// program; "" for text. Class is "number" for what is aligned at its right.
type cell struct{ Text, Value, Class string }

func text(s string) cell { return cell{Text: s} }
