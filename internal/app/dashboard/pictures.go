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
	"github.com/fantasia-hpo/fantasia/internal/base/picture"
)

// picturePatience is how long the answer with a picture waits for the trials to be read,
// and for the model if the picture shows one. It is below the write timeout.
const picturePatience = 20 * time.Second

// The widths of pictures that can be asked for, in pixels.
const (
	leastPicture, mostPicture = 280, 2000
	usualPicture              = 720
)

// pictureNames are the pictures of a study that can be had one by one.
var pictureNames = []string{
	"history", "curves", "parallel", "slice", "importances", "dependence", "contour", "fit", "staleness", "workers", "pending",
}

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
	if !slices.Contains(pictureNames, name) {
		return nil, badRequest("picture is %q; want one of %s", name, strings.Join(pictureNames, ", "))
	}
	width := usualPicture
	if text := query.Get("width"); text != "" {
		var err error
		if width, err = strconv.Atoi(text); err != nil || width < leastPicture || width > mostPicture {
			return nil, badRequest("width is %q; want a whole number of pixels from %d to %d", text, leastPicture, mostPicture)
		}
	}
	s, err := d.backend.Study(ctx, r.PathValue("study"))
	if err != nil {
		return nil, err
	}
	f, err := readFilter(axesOf(&s.Spec.Definition), url.Values{"x": query["x"]})
	if err != nil {
		return nil, err
	}
	follow, err := d.follow.of(&s) //nolint:contextcheck // it outlives the request
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, picturePatience)
	defer cancel()
	q := &request{study: &s, follow: follow, rows: follow.settled(ctx, picturePatience), filter: f, width: width, now: d.o.Now()}
	if !q.rows.complete {
		return nil, &statusError{http.StatusServiceUnavailable, "the study is still being read"}
	}
	q.shown = q.rows.rows
	p, err := d.pick(ctx, q, name, query["parameter"])
	if err != nil {
		return nil, err
	}
	return p.SVG(picture.Frame{Width: width}), nil
}

// pick returns a picture of a study by its name.
func (d *Dashboard) pick(ctx context.Context, q *request, name string, parameters []string) (picture.Picture, error) {
	wanted := map[string]int{"slice": 1, "dependence": 1, "contour": 2}[name]
	if len(parameters) != wanted {
		return nil, badRequest("the picture %s takes %s, got %d", name, count(wanted, "parameter", "parameters"), len(parameters))
	}
	var at []int
	for _, p := range parameters {
		i := q.filter.axis(p)
		if i < 0 {
			var known []string
			for _, a := range q.filter.axes {
				known = append(known, a.Name)
			}
			return nil, badRequest("parameter is %q; want one of %s", p, strings.Join(known, ", "))
		}
		at = append(at, i)
	}
	switch name {
	case "history":
		h := q.history()
		h.Title = q.name()
		return h, nil
	case "curves":
		c, err := q.curves(ctx)
		if c == nil && err == nil {
			c = &picture.Curves{Objective: q.objective()}
		}
		if c != nil {
			c.Title = "Curves of " + q.name()
		}
		return c, err
	case "parallel":
		p := q.parallel()
		p.Title = q.name()
		return p, nil
	case "slice":
		return q.slice(at[0], 1), nil
	case "staleness":
		s := q.staleness()
		s.Title = "Staleness"
		return s, nil
	case "workers":
		g := q.gantt()
		g.Title = "Workers"
		return g, nil
	case "pending":
		p := q.pending()
		p.Title = "Trials under way"
		return p, nil
	}
	last, err := d.analyst.await(ctx, q)
	if err != nil {
		return nil, err
	}
	if last.problem != "" {
		return nil, notFound("there is no model: %s", last.problem)
	}
	switch name {
	case "importances":
		bars := importances(last)
		bars.Title = "Importances"
		return bars, nil
	case "fit":
		f := q.fit(last)
		f.Title = "Predictions against outcomes"
		return f, nil
	case "dependence":
		if p := q.dependence(at[0], last); p != nil {
			return p, nil
		}
	case "contour":
		for _, p := range last.planes { // the pictures have the more important parameter first
			for _, xy := range [][]int{at, {at[1], at[0]}} {
				if p.X == q.filter.axes[xy[0]].Name && p.Y == q.filter.axes[xy[1]].Name {
					return q.contour(xy[0], xy[1], p), nil
				}
			}
		}
		return nil, notFound("there is no contour of %s and %s: it is made for the %d most important pairs", parameters[0], parameters[1], maxPlanes)
	}
	return nil, notFound("there is no picture %s of %s: it is made for the %d most important parameters", name, parameters[0], maxSlices)
}

// await returns a study's last insight, or waits for the first.
func (a *analyst) await(ctx context.Context, q *request) (*insight, error) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if last, _ := a.of(q); last != nil {
			return last, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return nil, &statusError{http.StatusServiceUnavailable, fmt.Sprintf("the model was not ready after %v; ask again", picturePatience)}
			}
			return nil, ctx.Err()
		}
	}
}
