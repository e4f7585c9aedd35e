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
	"time"

	"github.com/fantasia-hpo/fantasia/internal/show/picture"
)

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
