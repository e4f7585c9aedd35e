package dashboard

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"

	"connectrpc.com/connect"
	g "maragu.dev/gomponents"

	"github.com/fantasia-hpo/fantasia/internal/show/figure"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/telemetry"
)

// page is what every page has.
type page struct {
	Title string
	// Here is the entry of the navigation that the page belongs to.
	Here string
	// User is the name of the token of who has logged in; empty if no login is needed.
	User string
	// Script, Style and Icon are the addresses of the static files.
	Script, Style, Icon string
	// Events is the address of the stream that tells of changes; empty if nothing on the
	// page changes. Poll is after how many seconds the page is asked for again without.
	Events string
	Poll   int
	// Width is for which width pictures are drawn, in pixels.
	Width int
}

// common returns the page itself, so that every page's data can be completed.
func (p *page) common() *page { return p }

// content is what a page shows.
type content interface {
	common() *page
	// main returns the main part of the page.
	main() g.Node
}

// show answers with a page. A page is rendered completely before anything is sent.
func (d *Dashboard) show(w http.ResponseWriter, r *http.Request, status int, c content) {
	p := c.common()
	p.Script, p.Style, p.Icon, p.Width = scriptPath, stylePath, iconPath, widthOf(r)
	if s, ok := d.find(r); ok {
		p.User = s.grant.Name
	}
	var b bytes.Buffer
	_ = p.document(c.main()).Render(&b) // only writing can fail, and a buffer does not
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Vary", "Cookie")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // the reader may be gone
}

// statusError is an error that the page says, with its status.
type statusError struct {
	status int
	text   string
}

// Error implements error.
func (e *statusError) Error() string { return e.text }

func badRequest(format string, args ...any) error {
	return &statusError{http.StatusBadRequest, fmt.Sprintf(format, args...)}
}

func notFound(format string, args ...any) error {
	return &statusError{http.StatusNotFound, fmt.Sprintf(format, args...)}
}

// failData is what the page of an error shows.
type failData struct {
	page
	Problem string
	Again   bool // trying again may help
}

// fail answers with an error's page. It hides the text of unexpected errors.
func (d *Dashboard) fail(w http.ResponseWriter, r *http.Request, err error) {
	status, text := d.explain(r.Context(), err)
	if status == 0 { // the reader is gone
		return
	}
	d.show(w, r, status, &failData{page: page{Title: http.StatusText(status)}, Problem: text, Again: status >= http.StatusInternalServerError})
}

// explain returns the status and the text of an error; 0 if nobody wants to know.
func (d *Dashboard) explain(ctx context.Context, err error) (status int, text string) {
	if known, ok := errors.AsType[*statusError](err); ok {
		return known.status, known.text
	}
	if none, ok := errors.AsType[*figure.NoPicture](err); ok {
		if none.Wrong {
			return http.StatusBadRequest, none.Why
		}
		return http.StatusNotFound, none.Why
	}
	switch {
	case errors.Is(err, study.ErrNotFound), connect.CodeOf(err) == connect.CodeNotFound:
		return http.StatusNotFound, err.Error()
	case errors.Is(err, study.ErrUnavailable), errors.Is(err, study.ErrAway), connect.CodeOf(err) == connect.CodeUnavailable:
		return http.StatusServiceUnavailable, err.Error()
	case ctx.Err() != nil:
		return 0, ""
	}
	d.o.Logger.WarnContext(ctx, "the dashboard failed to answer", telemetry.LogError, err)
	return http.StatusInternalServerError, "internal error: see the coordinator's log"
}
