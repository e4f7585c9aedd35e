package dashboard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fantasia-hpo/fantasia/api/server"
	"github.com/fantasia-hpo/fantasia/internal/base/backoff"
	"github.com/fantasia-hpo/fantasia/internal/show/figure"
	"github.com/fantasia-hpo/fantasia/internal/show/picture"
	"github.com/fantasia-hpo/fantasia/study"
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
	if scheme, token, found := strings.Cut(r.Header.Get("Authorization"), " "); found && strings.EqualFold(scheme, "Bearer") && d.o.Tokens != nil {
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
	ctx := r.Context()
	if !s.open {
		ctx = server.WithGrant(ctx, s.grant)
	}
	svg, err := d.pictureOf(ctx, r)
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
	k := slices.IndexFunc(figure.Single, func(n figure.Named) bool { return n.Name == name })
	if k < 0 {
		return nil, badRequest("picture is %q; want one of %s", name, joined(figure.Single, ", ", func(n figure.Named) string { return n.Name }))
	}
	width := usualPicture
	if text := query.Get("width"); text != "" {
		var err error
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
	f, err := d.pick(ctx, q, &figure.Single[k], query["parameter"])
	if err != nil {
		return nil, err
	}
	frame := picture.Frame{Width: width}
	if f.Title != "" {
		frame.Title = f.Title + " of " + q.name()
	}
	return f.Pictures[0].SVG(frame), nil
}

// pick makes a figure of a study, of the axes of parameters.
func (d *Dashboard) pick(ctx context.Context, q *request, wanted *figure.Named, parameters []string) (f figure.Figure, err error) {
	if len(parameters) != wanted.Parameters {
		return f, badRequest("the picture %s takes %s, got %d", wanted.Name, count(wanted.Parameters, "parameter", "parameters"), len(parameters))
	}
	var at []int
	for _, p := range parameters {
		i := q.Axes.Index(p)
		if i < 0 {
			return f, badRequest("parameter is %q; want one of %s", p, strings.Join(study.Names(q.Axes), ", "))
		}
		at = append(at, i)
	}
	switch wanted.Name {
	case "history":
		return q.History(q.filter.byTime), nil
	case "curves":
		f, _, err = q.curves(ctx)
		return f, err
	}
	if wanted.Model {
		last, err := d.analyst.await(ctx, q)
		if err != nil {
			return f, err
		}
		if q.Model = last.model; last.problem != "" {
			return f, notFound("there is no model: %s", last.problem)
		}
	}
	f = wanted.Of(q.Study, at)
	switch {
	case len(f.Pictures) > 0:
		return f, nil
	case wanted.For != "":
		return f, notFound("there is no picture %s: it is made for %s", wanted.Name, wanted.For)
	case wanted.Parameters == 2:
		return f, notFound("there is no contour of %s and %s: it is made for the %d most important pairs", parameters[0], parameters[1], figure.MaxPlanes)
	}
	return f, notFound("there is no picture %s of %s: it is made for the %d most important parameters", wanted.Name, parameters[0], figure.MaxSlices)
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
