package report

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed" // the page's template and style
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"time"

	"github.com/fantasia-hpo/fantasia/internal/base/picture"
)

//go:embed page.html
var pageText string

//go:embed page.css
var pageStyle string

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{"draw": draw}).Parse(pageText))

// draw draws a picture for a width in pixels. Text keeps its size, so the template names one
// that is close to that at which the page shows it. Pictures escape all that comes from
// users, so their SVG is safe in a page.
func draw(p picture.Picture, title string, width int) template.HTML {
	return template.HTML(p.SVG(picture.Frame{Title: title, Width: width, Inline: true})) //nolint:gosec // see above
}

// page is what the template of a report sees.
type page struct {
	Title, Subtitle string
	Groups          []group
	Style           template.CSS
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
		Title:  title,
		Style:  template.CSS(style), //nolint:gosec // it comes from this program
		Policy: "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; img-src data:; base-uri 'none'; form-action 'none'",
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
	var b bytes.Buffer
	if err := pageTemplate.Execute(&b, p); err != nil {
		return fmt.Errorf("make the page: %w", err)
	}
	if _, err := b.WriteTo(w); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}
