package dashboard

import (
	"bytes"
	"context"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/fantasia-hpo/fantasia/api/server"
	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/study"
)

// patience is how long a page waits for the trials of a study to be read. After that it
// shows what has been read so far, and is refreshed.
const patience = 150 * time.Millisecond

// views are the groups of a study's pages, in order. The first one has no name in the
// address.
var views = []struct{ name, title string }{
	{"", "Results"}, {"insights", "Insights"}, {"diagnostics", "Diagnostics"}, {"health", "Health"},
}

// studyData is what the page of a study shows. Body is rendered once for all open pages.
type studyData struct {
	page
	Body template.HTML
}

// bodyData is the body of a study's page.
type bodyData struct {
	view.Study
	Spec             *study.Spec
	Reason           string
	Elapsed          time.Duration
	Started          time.Time
	Ended, Open      int
	Rate, RecentRate string
	Best             []field
	Recommended      []field
	Tabs             []tab
	View             string
	Filter           *filterForm
	// Reading is not empty while the trials are read for the first time.
	Reading string
	// Shown and Of are how many trials the filter shows, and of how many.
	Shown, Of int
	Panels    []panel
	Table     *table
	// Findings is what diagnose says, with Note about how current it is.
	Insight *insightNote
	Facts   []fact
	Cost    []costRow
}

// field is a parameter with its value as text.
type field struct{ Name, Value string }

// tab is a group of pages.
type tab struct {
	Title, Address string
	Current        bool
}

// panel is one or two pictures with their heading. Help says how to read them. Half means
// that two panels fit beside each other.
type panel struct {
	ID, Title, Help string
	Picture         template.HTML
	Half            bool
}

// fact is a figure with its meaning.
type fact struct{ Name, Value, Help string }

// request is what a page of a study is made from.
type request struct {
	study  *server.Study
	follow *follower
	rows   *snapshot
	filter *filter
	shown  []*row
	done   []*row // see evaluations
	view   string
	width  int
	now    time.Time
}

func (q *request) spec() *study.Spec          { return &q.study.Spec.Definition.Spec }
func (q *request) direction() study.Direction { return q.spec().Objective.Direction }
func (q *request) name() string               { return q.study.Spec.Definition.Metadata.Name }

func (d *Dashboard) studyPage(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("view")
	if !slices.ContainsFunc(views, func(v struct{ name, title string }) bool { return v.name == name }) {
		return notFound("There is no page %q of a study.", name)
	}
	s, err := d.backend.Study(r.Context(), r.PathValue("study"))
	if err != nil {
		return err
	}
	f, err := readFilter(axesOf(&s.Spec.Definition), r.URL.Query())
	if err != nil {
		return err
	}
	follow, err := d.follow.of(&s) //nolint:contextcheck // it outlives the request
	if err != nil {
		return err
	}
	q := &request{
		study: &s, follow: follow, rows: follow.settled(r.Context(), patience),
		filter: f, view: name, width: widthOf(r), now: d.o.Now(),
	}
	base := Path + "studies/" + q.name()
	data := studyData{page: page{Title: q.name(), Here: "studies", Events: base + "/events", Poll: 10}}
	if !q.rows.complete {
		data.Poll = 1
	}
	key := fmt.Sprintf("%s %s %d", name, f.query().Encode(), q.width)
	body, err := follow.cache.get(key, d.stateOf(q), func() ([]byte, error) { return d.body(r.Context(), q, base) }) //nolint:contextcheck // it has the request's
	if err != nil {
		return err
	}
	data.Body = template.HTML(body) //nolint:gosec // rendered by html/template
	d.show(w, r, http.StatusOK, "study", &data)
	return nil
}

// stateOf returns a text that changes whenever a page of the study does. The pages of a
// running study change with the time, too.
func (d *Dashboard) stateOf(q *request) string {
	s := q.study.Status
	clock := int64(0)
	if !s.State.Terminal() {
		clock = q.now.UnixNano() / int64(tickEvery)
	}
	return fmt.Sprint(q.rows.revision, q.rows.complete, s.State, s.Position, s.Reason, s.Recommended, s.Counts, q.spec().Budget, clock, d.analyst.version(q.study.Spec.ID))
}

// body renders the body of a study's page.
func (d *Dashboard) body(ctx context.Context, q *request, base string) ([]byte, error) {
	q.shown = q.filter.apply(q.rows.rows, q.direction())
	s, spec := q.study, q.spec()
	b := &bodyData{
		Study: view.OfStudy(s.Spec, s.Status, s.Best, s.Recommended, q.now), Spec: spec, Reason: s.Status.Reason,
		Elapsed: view.Elapsed(s.Status, q.now), Started: s.Status.Started,
		Ended: s.Status.Counts.Ended(), Open: s.Status.Counts.Open(),
		View: q.view, Shown: len(q.shown), Of: len(q.rows.rows),
	}
	b.Rate, b.RecentRate = rate(b.Ended, b.Elapsed), recentRate(q.rows.rows, s.Status.Started, q.now)
	if s.Status.State.Terminal() {
		b.RecentRate = ""
	}
	if s.Best != nil {
		b.Best = fields(spec, s.Best.Point)
	}
	if s.Recommended != nil {
		b.Recommended = fields(spec, s.Recommended.Point)
	}
	for _, v := range views {
		address := base
		if v.name != "" {
			address += "/" + v.name
		}
		narrow := *q.filter
		narrow.page = 1
		if query := narrow.query().Encode(); query != "" {
			address += "?" + query
		}
		b.Tabs = append(b.Tabs, tab{v.title, address, v.name == q.view})
	}
	if !q.rows.complete {
		b.Reading = fmt.Sprintf("Reading the study: %s of %s trials so far.", thousands(len(q.rows.rows)), thousands(q.rows.want))
	}
	b.Filter = newFilterForm(q)
	switch q.view {
	case "":
		if err := d.results(ctx, q, b); err != nil {
			return nil, err
		}
	case "insights":
		d.insights(q, b)
	case "diagnostics":
		d.diagnostics(q, b)
	case "health":
		d.health(q, b)
	}
	var out bytes.Buffer
	err := d.pages["study"].ExecuteTemplate(&out, "body", b)
	return out.Bytes(), err
}

// fields returns a point as text, in the order of the study's parameters.
func fields(spec *study.Spec, point study.Point) []field {
	var list []field
	for _, p := range spec.Parameters {
		v, ok := point[p.Name]
		if !ok {
			continue
		}
		list = append(list, field{p.Name, valueText(v)})
	}
	return list
}

// valueText is a parameter's value as people see it.
func valueText(v any) string {
	if f, ok := v.(float64); ok {
		return view.Number(f)
	}
	return strings.TrimSpace(fmt.Sprint(v))
}

// recentRate returns how many trials have ended a minute, in the last five minutes.
func recentRate(rows []*row, started, now time.Time) string {
	const window = 5 * time.Minute
	since := now.Add(-window)
	if started.After(since) {
		since = started
	}
	n := 0
	for _, r := range rows {
		if r.ended != 0 && r.ended >= at(since) && r.state.Terminal() && r.state != study.TrialCancelled {
			n++
		}
	}
	return rate(n, now.Sub(since))
}
