package dashboard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/fantasia-hpo/fantasia/internal/base/backoff"
	"github.com/fantasia-hpo/fantasia/internal/show/figure"
	"github.com/fantasia-hpo/fantasia/internal/show/picture"
)

// picturePatience is how long the answer with a picture waits for the trials to be read,
// and for the model if the picture shows one. It is below the write timeout.
const picturePatience = 20 * time.Second

// The widths of pictures that can be asked for, in pixels.
const (
	leastPicture, mostPicture = 280, 2000
	usualPicture              = 720
)

// authorizedPicture passes on requests that have a token as for the API, or the cookie of
// the pages.
func (d *Dashboard) authorizedPicture(w http.ResponseWriter, r *http.Request) {
	s, ok := d.find(r)
	if scheme, token, found := strings.Cut(r.Header.Get("Authorization"), " "); found && strings.EqualFold(scheme, "Bearer") &&
		d.o.Tokens != nil {
		s.token = strings.TrimSpace(token)
		var err error
		s.grant, err = d.o.Tokens.Grant(r.Context(), s.token)
		ok = err == nil
	}
	if !ok {
		w.Header().Set("WWW-Authenticate", "Bearer")
		tell(w, http.StatusUnauthorized, "a known token is required (Authorization: Bearer …)")
		return
	}
	ctx := s.context(r.Context())
	var svg []byte
	err := d.allowed(r.WithContext(ctx), s)
	if err == nil {
		svg, err = d.pictureOf(ctx, r)
	}
	if err != nil {
		if status, text := d.explain(ctx, err); status != 0 {
			tell(w, status, text)
		}
		return
	}
	w.Header().Set("Content-Type", "image/svg+xml; charset=utf-8")
	// The picture has its own style, and nothing else of it is active.
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; sandbox")
	_, _ = w.Write(svg) // the reader may be gone
}

// statusCodes are the API's names of the statuses.
var statusCodes = map[int]string{
	http.StatusBadRequest: "invalid_argument", http.StatusUnauthorized: "unauthenticated", http.StatusNotFound: "not_found",
	http.StatusServiceUnavailable: "unavailable", http.StatusInternalServerError: "internal",
}

// tell answers with an error in the form of the API's.
func tell(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"code": statusCodes[status], "message": text}) // the reader may be gone
}

// pictureOf draws the picture that a request asks for.
func (d *Dashboard) pictureOf(ctx context.Context, r *http.Request) ([]byte, error) {
	name, query := r.PathValue("picture"), r.URL.Query()
	wanted, err := figure.Find(name)
	if err != nil {
		return nil, err
	}
	width := usualPicture
	if text := query.Get("width"); text != "" {
		if width, err = strconv.Atoi(text); err != nil || width < leastPicture || width > mostPicture {
			return nil, badRequest("width is %q; want a whole number of pixels from %d to %d", text, leastPicture, mostPicture)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, picturePatience)
	defer cancel()
	q, err := d.request(ctx, r, url.Values{"x": query["x"], "objective": query["objective"]}, picturePatience)
	if err != nil {
		return nil, err
	}
	if !q.rows.complete {
		return nil, &statusError{http.StatusServiceUnavailable, "the study is still being read"}
	}
	f, err := wanted.Draw(q.Study, query["parameter"], func() (figure.Figure, error) {
		f, _, err := q.curves(ctx)
		return f, err
	}, func() error {
		last, err := d.analyst.await(ctx, q)
		if err != nil {
			return err
		}
		if q.Model = last.model; last.problem != "" {
			return &figure.NoPicture{Why: "there is no model: " + last.problem}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	frame := picture.Frame{Width: width}
	if f.Title != "" {
		frame.Title = f.Title + " of " + q.name()
	}
	return f.Pictures[0].SVG(frame), nil
}

// await returns a study's last insight, or waits for the first.
func (a *analyst) await(ctx context.Context, q *request) (*insight, error) {
	for range backoff.Every(ctx, 50*time.Millisecond) {
		if last, _ := a.of(q); last != nil {
			return last, nil
		}
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return nil, &statusError{http.StatusServiceUnavailable, fmt.Sprintf("the model was not ready after %v; ask again", picturePatience)}
	}
	return nil, ctx.Err()
}

// maxCached bounds the parts of pages that are kept of a study.
const maxCached = 32

// cache keeps rendered parts of the pages of a study, so that any number of open pages
// costs one rendering. It is safe for concurrent use.
type cache struct {
	mu    sync.Mutex
	parts map[string]*part
}

// part is a part of a page at a state of its study.
type part struct {
	mu    sync.Mutex // held while it is made
	state string
	html  []byte
}

// get returns the part with a key at a state. It calls render if it has another state.
func (c *cache) get(key, state string, render func() ([]byte, error)) ([]byte, error) {
	c.mu.Lock()
	p := c.parts[key]
	if p == nil {
		if len(c.parts) >= maxCached {
			for other := range c.parts { // any
				delete(c.parts, other)
				break
			}
		}
		p = &part{}
		c.parts[key] = p
	}
	c.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.html != nil && p.state == state {
		return p.html, nil
	}
	html, err := render()
	if err != nil {
		return nil, err
	}
	p.state, p.html = state, html
	return html, nil
}
