package dashboard

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fantasia-hpo/fantasia/api/server"
	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/internal/show/diagnosis"
	"github.com/fantasia-hpo/fantasia/internal/show/figure"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
)

// trialData is what the page of a trial shows.
type trialData struct {
	page
	Study   string
	Trial   *record.Trial
	Value   string
	Metric  string
	Params  []field
	Metrics []field
	Why     []fact
	// Meanwhile are the trials that were under way when the point was suggested, as far as
	// there is room; More is how many others there were.
	Meanwhile []link
	More      int
	// Around are pictures of the model around the point, and AroundNote says what they show
	// or why there are none.
	Around     []panel
	AroundNote string
	AroundWait bool
	Stages     []fact
	Attempts   []attemptItem
	Panels     []panel
	// Exceeded are the limits that the trial completed outside of.
	Exceeded []string
	// Cost says what it has cost, and what was expected.
	Cost    string
	Best    bool
	Suggest bool
	Earlier string
	Later   string
	// LogAddress is where the log is followed; empty if no worker has taken the trial.
	LogAddress string
	Log        string
	LogNote    string
	Running    bool
}

// link leads to another page.
type link struct{ Text, Address string }

// attemptItem is an attempt of a trial.
type attemptItem struct {
	*record.Attempt
	Where, Duration, Failure, Details string
}

// logLines is how many lines of each output the page shows.
const logLines = 100

func (d *Dashboard) trialPage(w http.ResponseWriter, r *http.Request) error {
	number, err := strconv.Atoi(r.PathValue("number"))
	if err != nil || number < 1 {
		return notFound("There is no trial %q: trials have numbers from 1 on.", r.PathValue("number"))
	}
	q, err := d.request(r.Context(), r, nil, patience)
	if err != nil {
		return err
	}
	s := q.study
	name := s.Spec.Definition.Metadata.Name
	t, err := d.backend.Trial(r.Context(), s.Spec.ID, number)
	if err != nil {
		return err
	}
	m, err := d.backend.Measurements(r.Context(), s.Spec.ID, number)
	if err != nil {
		return err
	}
	spec := q.Spec
	data := &trialData{
		page:  page{Title: fmt.Sprintf("Trial %d of %s", number, name), Here: "studies"},
		Study: name, Trial: &t, Metric: spec.FirstObjective().Metric, Value: "–",
		Params: fields(spec, t.Point), Best: q.Best == number, Suggest: q.Recommended == number,
		Why: why(&t), Stages: stages(&t), Running: !t.State.Terminal(),
	}
	shown := view.OfTrial(t)
	shown.Mark(spec)
	data.Exceeded, data.Cost = shown.Exceeded, shown.CostText()
	if len(t.Values) > 0 {
		data.Value = view.Number(t.Values.First())
	}
	for i, o := range spec.Objectives()[1:] {
		if i+1 < len(t.Values) {
			data.Metrics = append(data.Metrics, field{o.Metric, view.Number(t.Values[i+1])})
		}
	}
	for _, metric := range slices.Sorted(maps.Keys(t.Metrics)) {
		if !slices.Contains(study.MetricNames(spec.Objectives()), metric) {
			data.Metrics = append(data.Metrics, field{metric, view.Number(t.Metrics[metric])})
		}
	}
	for i := range t.Attempts {
		data.Attempts = append(data.Attempts, newAttemptItem(&t.Attempts[i], q.now))
	}
	for i, c := range view.OfSeries(m.Series) {
		id, help := fmt.Sprintf("curve-%d", i), fmt.Sprintf("What attempt %d reported at each step.", m.Attempt)
		panel := figure.Reported(id, &c, number, help)
		if s := t.Stopped; s != nil && s.Expected != nil && c.Metric == diagnosis.StoppingMetric(spec) && m.Attempt == s.Attempt {
			panel = figure.ReportedUntilStopped(id, &c, number, s.Expected, help)
		}
		data.Panels = append(data.Panels, q.panels(panel)...)
	}
	if number > 1 {
		data.Earlier = trialAddress(name, number-1)
	}
	if number < s.Status.Trials {
		data.Later = trialAddress(name, number+1)
	}
	if data.Running {
		data.Events = studyAddress(name) + "/events"
		data.Poll = 5
	}
	data.Meanwhile, data.More = meanwhile(name, q.All, &t)
	d.around(q, &t, data)
	if !q.rows.complete || data.AroundWait {
		data.Poll = 1
	}
	d.logOf(r, s, &t, data)
	d.show(w, r, http.StatusOK, data)
	return nil
}

// stages returns when the trial passed each stage, and how long each took.
func stages(t *record.Trial) []fact {
	var list []fact
	var before time.Time
	for _, s := range []struct {
		name string
		at   time.Time
	}{
		{"Suggestion requested", t.Times.Asked}, {"Suggested", t.Times.Suggested}, {"Created", t.Times.Created},
		{"Claimed by a worker", t.Times.Claimed}, {"Evaluation started", t.Times.Started}, {"Evaluation ended", t.Times.Ended},
		{"Result applied", t.Times.Folded},
	} {
		if s.at.IsZero() {
			continue
		}
		since := ""
		if !before.IsZero() && s.at.After(before) {
			since = "+" + figure.Duration(s.at.Sub(before))
		}
		list = append(list, fact{s.name, stamp(s.at), since})
		before = s.at
	}
	return list
}

func newAttemptItem(a *record.Attempt, now time.Time) attemptItem {
	item := attemptItem{Attempt: a}
	if a.Site != nil {
		item.Where = view.SiteLine(*a.Site)
	}
	end := a.Ended
	if end.IsZero() {
		end = now
	}
	if !a.Started.IsZero() {
		item.Duration = figure.Duration(end.Sub(a.Started))
	}
	if a.Waiting != "" {
		item.Failure = "Waiting: " + a.Waiting
	}
	if a.Failure != nil {
		item.Failure, item.Details = view.FailureLine(a.Failure), view.FailureText(a.Failure)
		if item.Details == item.Failure {
			item.Details = ""
		}
	}
	return item
}

// logOf reads the end of the trial's log. The page shows it as it is; if the trial runs,
// the script follows it.
func (d *Dashboard) logOf(r *http.Request, s *server.Study, t *record.Trial, data *trialData) {
	if !slices.ContainsFunc(t.Attempts, func(a record.Attempt) bool { return a.Worker != "" }) {
		data.LogNote = "No worker has taken the trial yet."
		return
	}
	if t.State == study.TrialRunning || t.State == study.TrialClaimed {
		data.LogAddress = trialAddress(data.Study, t.Number) + "/log"
	}
	outputs := map[messaging.LogStream]*bytes.Buffer{messaging.LogStdout: {}, messaging.LogStderr: {}}
	order := []messaging.LogStream{messaging.LogStdout, messaging.LogStderr}
	tail := coordinator.LogTail{Streams: order, Lines: logLines}
	for p, err := range d.backend.TailLogs(r.Context(), s.Spec.ID, t.Number, tail) { //nolint:contextcheck // it has the request's
		if err != nil {
			switch {
			case errors.Is(err, study.ErrNotFound):
				data.LogNote = "There is no log: " + err.Error()
			case errors.Is(err, study.ErrUnavailable):
				data.LogNote = "The log cannot be read now: " + err.Error()
			default:
				_, data.LogNote = d.explain(r.Context(), err)
			}
			break
		}
		if b := outputs[p.Stream]; b != nil && b.Len() < maxLogBytes {
			b.Write(p.Data)
		}
	}
	for _, o := range order {
		output := outputs[o].String()
		data.Log += strings.ToValidUTF8(output[max(0, len(output)-maxLogBytes):], "\uFFFD")
	}
}

// maxLogBytes bounds what a page shows of each output.
const maxLogBytes = 100 << 10

// logEvents sends a running trial's output as it is written.
func (d *Dashboard) logEvents(w http.ResponseWriter, r *http.Request) error {
	number, err := strconv.Atoi(r.PathValue("number"))
	if err != nil || number < 1 {
		return notFound("There is no trial %q: trials have numbers from 1 on.", r.PathValue("number"))
	}
	seated, leave, ok := d.logs.admit(r.Context(), reader(r))
	if !ok {
		return &statusError{http.StatusServiceUnavailable, "too many logs are followed"}
	}
	defer leave()
	ctx, stop := untilDrained(seated, d.o.Draining)
	defer stop()
	tail := coordinator.LogTail{Streams: []messaging.LogStream{messaging.LogStdout, messaging.LogStderr}, Lines: logLines, Follow: true}
	var out *stream
	for p, err := range d.backend.TailLogs(ctx, r.PathValue("study"), number, tail) {
		switch {
		case err != nil && out == nil:
			return err
		case err != nil:
			return nil //nolint:nilerr // the script asks again
		}
		if _, ok := d.find(r); !ok { // the token was withdrawn
			return nil
		}
		if out == nil {
			out = newStream(w)
		}
		if err := out.event("log", strings.ToValidUTF8(string(p.Data), "\uFFFD")); err != nil {
			return nil //nolint:nilerr // the reader is gone
		}
	}
	if seated.Err() != nil {
		return nil // the script asks again
	}
	if out == nil {
		out = newStream(w)
	}
	_ = out.event("end", "") // the reader may be gone
	return nil
}
