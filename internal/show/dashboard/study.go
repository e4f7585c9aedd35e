package dashboard

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/fantasia-hpo/fantasia/api/server"
	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/internal/show/figure"
	"github.com/fantasia-hpo/fantasia/internal/show/picture"
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
	Body []byte
}

// bodyData is the body of a study's page.
type bodyData struct {
	studyItem
	Spec        *study.Spec
	RecentRate  string
	Left        string // how long the study still takes; "" if that is not known
	Best        []field
	Recommended []field
	// Front are the trials on the front of several objectives, and Advised those on the front that the
	// models expect. Aims says what is optimised; "" for one objective.
	Front, Advised frontTable
	Aims           string
	Tabs           []tab
	Filter         *filterForm
	// Reading is not empty while the trials are read for the first time.
	Reading string
	// Shown and Of are how many trials the filter shows, and of how many.
	Shown, Of int
	Panels    []panel
	Table     *table
	// Findings is what diagnose says, with Note about how current it is.
	Insight *insightNote
	judged  []figure.Figure
	Facts   []fact
	Cost    []costRow
	// Intro says how busy the workers were, and Stages how long the stages of trials took.
	Intro, StagesHelp string
	Stages            []figure.Stage
}

// frontTable has the first trials on a front, with a value for each metric; Of is how many there are.
type frontTable struct {
	Metrics []string
	Rows    []frontRow
	Of      int
}

// frontRow is a trial on a front. Knee marks the front's knee.
type frontRow struct {
	Trial  int
	Knee   bool
	Values []string
}

// mostOptimal is how many trials of a front are listed.
const mostOptimal = 12

// addFront adds the front of a study with several objectives.
func (b *bodyData) addFront(q *request) {
	if len(q.Spec.Several) == 0 {
		return
	}
	front, _ := q.Front()
	b.Aims, b.Front = view.Aims(q.Spec.Several), frontTable{Metrics: study.MetricNames(q.Spec.Several), Of: len(front)}
	for _, t := range front[:min(len(front), mostOptimal)] {
		row := frontRow{Trial: t.Number}
		for _, v := range t.Values {
			row.Values = append(row.Values, number(v))
		}
		b.Front.Rows = append(b.Front.Rows, row)
	}
	r := q.study.Recommended
	if r == nil {
		return
	}
	b.Advised = frontTable{Metrics: study.MetricNames(q.study.Spec.Definition.Spec.Several), Of: len(r.Front)}
	for _, e := range r.Front[:min(len(r.Front), mostOptimal)] {
		row := frontRow{Trial: e.Trial, Knee: e.Knee}
		for k := range e.Means {
			row.Values = append(row.Values, view.Expected(e.Means[k], e.SDs[k]))
		}
		b.Advised.Rows = append(b.Advised.Rows, row)
	}
}

// field is a parameter with its value as text.
type field struct{ Name, Value string }

// tab is a group of pages.
type tab struct {
	Title, Address string
	Current        bool
}

// panel is a figure as the page shows it. Half means that two fit beside each other.
type panel struct {
	ID, Title, Help string
	Picture         []byte
	Lines           []string
	Half            bool
}

// leastForTwo is the width of a page on which two panels fit beside each other, and
// between what their borders and margins take of each.
const (
	leastForTwo = 860
	between     = 24
)

// panels lays figures out.
func (q *request) panels(figures ...figure.Figure) (list []panel) {
	for _, f := range figures {
		p := panel{ID: f.ID, Title: f.Title, Help: f.Help, Lines: f.Lines, Half: !f.Broad && q.width >= leastForTwo}
		frame := picture.Frame{Title: f.Title, Width: q.width, Inline: true}
		if p.Half {
			frame.Width = q.width/2 - between
		}
		for _, drawn := range f.Pictures {
			p.Picture = append(p.Picture, drawn.SVG(frame)...)
		}
		list = append(list, p)
	}
	return list
}

// fact is a figure with its meaning.
type fact struct{ Name, Value, Help string }

// request is what a page of a study is made from.
type request struct {
	*figure.Study
	study *server.Study
	// definition is the study's, with the objective first that pictures show.
	definition *study.Study
	follow     *follower
	rows       *snapshot
	filter     *filter
	view       string
	width      int
	now        time.Time
}

// request reads the study that a request is about, and its trials as far as they are known
// after patience. The filter is that of a query.
func (d *Dashboard) request(ctx context.Context, r *http.Request, query url.Values, patience time.Duration) (*request, error) {
	s, err := d.backend.Study(ctx, r.PathValue("study"))
	if err != nil {
		return nil, err
	}
	axes := figure.AxesOf(&s.Spec.Definition)
	f, err := readFilter(axes, query)
	if err != nil {
		return nil, err
	}
	follow, err := d.follow.of(&s) //nolint:contextcheck // it outlives the request
	if err != nil {
		return nil, err
	}
	q := &request{study: &s, follow: follow, rows: follow.settled(ctx, patience), filter: f, width: widthOf(r), now: d.o.Now()}
	q.definition = &s.Spec.Definition
	if f.objective != "" {
		if err := q.show(f.objective); err != nil {
			return nil, err
		}
	}
	q.Study = &figure.Study{
		Spec: &q.definition.Spec, Axes: axes, All: q.rows.rows, Trials: f.apply(q.rows.rows, q.definition.Spec.FirstObjective().Direction),
		Best: s.Status.Best, Started: figure.At(s.Status.Started), Now: figure.At(q.now), ByTime: f.byTime,
	}
	if s.Recommended != nil {
		q.Recommended = s.Recommended.Trial
	}
	return q, nil
}

// show makes an objective the first, so that pictures of one objective show it.
func (q *request) show(metric string) error {
	chosen, place, err := figure.Chosen(q.definition, metric)
	if err != nil {
		return badRequest("objective: %v", err)
	}
	rows := *q.rows
	rows.rows = slices.Clone(rows.rows)
	for i, t := range rows.rows {
		rows.rows[i] = t.First(place)
	}
	q.definition, q.rows = chosen, &rows
	return nil
}

// modelKey names the model of the study and, if a page chooses one, of the objective.
func (q *request) modelKey() string {
	if q.filter.objective == "" {
		return q.study.Spec.ID
	}
	return q.study.Spec.ID + "/" + q.filter.objective
}

func (q *request) name() string { return q.study.Spec.Definition.Metadata.Name }

func (d *Dashboard) studyPage(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("view")
	if !slices.ContainsFunc(views, func(v struct{ name, title string }) bool { return v.name == name }) {
		return notFound("There is no page %q of a study.", name)
	}
	q, err := d.request(r.Context(), r, r.URL.Query(), patience)
	if err != nil {
		return err
	}
	q.view = name
	base := studyAddress(q.name())
	data := studyData{page: page{Title: q.name(), Here: "studies", Events: base + "/events", Poll: 10}}
	if !q.rows.complete {
		data.Poll = 1
	}
	key := fmt.Sprintf("%s %s %d", name, q.filter.query().Encode(), q.width)
	draw := func() ([]byte, error) { return d.body(r.Context(), q, base) } //nolint:contextcheck // it has the request's
	body, err := q.follow.cache.get(key, d.stateOf(q), draw)
	if err != nil {
		return err
	}
	data.Body = body
	d.show(w, r, http.StatusOK, &data)
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
	return fmt.Sprint(q.rows.revision, q.rows.complete, s.State, s.Position, s.Reason, s.Recommended, s.Counts, q.Spec.Budget, clock,
		d.analyst.version(q.modelKey()), d.analyst.version(endKey(q.study.Spec.ID)))
}

// body renders the body of a study's page.
func (d *Dashboard) body(ctx context.Context, q *request, base string) ([]byte, error) {
	s, spec := q.study, q.Spec
	b := &bodyData{
		studyItem: newStudyItem(s, q.now), Spec: spec, Shown: len(q.Trials), Of: len(q.rows.rows),
	}
	if !s.Status.State.Terminal() {
		begun := s.Status.Started
		if s.Status.Since.After(begun) { // before that, nothing ran for some time
			begun = s.Status.Since
		}
		b.RecentRate = recentRate(q.rows.rows, begun, q.now)
		if left, ok := d.analyst.left(q, b.Elapsed); ok && left > 0 {
			b.Left = ", about " + figure.Duration(left) + " left"
		}
	}
	b.addFront(q)
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
	if err := d.fill(ctx, q, b); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	_ = b.html().Render(&out) // only writing can fail, and a buffer does not
	return out.Bytes(), nil
}

// fields returns a point as text, in the order of the study's parameters.
func fields(spec *study.Spec, point study.Point) []field {
	var list []field
	for _, p := range spec.Parameters {
		v, ok := point[p.Name]
		if !ok {
			continue
		}
		list = append(list, field{p.Name, view.Value(v)})
	}
	return list
}

// recentRate returns how many trials have ended a minute, in the last five minutes.
func recentRate(rows []*figure.Trial, started, now time.Time) string {
	const window = 5 * time.Minute
	since := now.Add(-window)
	if started.After(since) {
		since = started
	}
	n := 0
	for _, r := range rows {
		if r.Ended != 0 && r.Ended >= figure.At(since) && r.State.Terminal() && r.State != study.TrialCancelled {
			n++
		}
	}
	return rate(n, now.Sub(since))
}
