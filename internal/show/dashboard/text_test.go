package dashboard_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/api/server"
	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/coordinator/curve"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/internal/test/outline"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// Whatever the texts of users, programs and addresses are, each page has the elements that it
// has with plain ones. This is without the pictures, which package picture fuzzes.
func FuzzTextStaysText(f *testing.F) {
	for _, text := range []string{
		`<script>alert(1)</script><img src=x onerror=alert(2)>"'`, "<", "&lt;b&gt;", `" onmouseover="x`, "' style='x", "--><!--", "]]>",
		"</title></textarea></pre></form></select>",
		"javascript:x", "//elsewhere/", `\\elsewhere`, "\x00\u2028", "{{.}}", "\n", "?a=b&c=d#e",
	} {
		f.Add(text)
	}
	plain := outlines(f, "text:")
	f.Fuzz(func(t *testing.T, text string) {
		for path, got := range outlines(t, "text:"+strings.ToValidUTF8(text, "\uFFFD")) {
			if !slices.Equal(plain[path], got) {
				t.Errorf("with the text %q %s has the elements\n%s\nwant\n%s", text, path, strings.Join(got, "\n"), strings.Join(plain[path], "\n"))
			}
		}
	})
}

// outlines returns the outlines of all pages where every text is the given one, by what they are.
func outlines(t testing.TB, text string) map[string][]string {
	t.Helper()
	s, guarded := named(t, text), serve(t, after(190), tokenFile("ann write"))
	query := url.QueryEscape(text)
	all := map[string][]string{}
	for name, path := range map[string]string{
		"studies": "/ui/", "studies by name": "/ui/?name=" + query, "no such state": "/ui/?state=" + query, "workers": "/ui/workers",
		"no such study": "/ui/studies/" + url.PathEscape(text),
		"study":         "/ui/studies/digits", "by worker": "/ui/studies/digits?worker=" + query,
		"by a choice":    "/ui/studies/digits?p.solver=" + query,
		"no such choice": "/ui/studies/digits?p.solver=-" + query, "health": "/ui/studies/digits/health", "front": "/ui/studies/two",
		"filtered front": "/ui/studies/two?top=1&objective=" + query,
		"completed":      "/ui/studies/digits/trials/1", "pruned": "/ui/studies/digits/trials/11", "failed": "/ui/studies/digits/trials/17",
		"running":      "/ui/studies/digits/trials/22",
		"trial of two": "/ui/studies/two/trials/1",
	} {
		all[name] = s.outline(t, path, nil)
	}
	cross := func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }
	all["login"] = guarded.outline(t, "/ui/login?next="+url.QueryEscape("/ui/"+text), cross)
	all["login with a query"] = guarded.outline(t, "/ui/login?next="+url.QueryEscape("/ui/?name="+text), cross)
	return all
}

// outline returns the outline of a page once all trials have been read.
func (s *site) outline(t testing.TB, path string, change func(*http.Request)) []string {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		resp, body := s.ask(t, http.MethodGet, path, change)
		if strings.Contains(body, `data-poll="1"`) && time.Now().Before(deadline) {
			continue
		}
		list, err := outline.Of(body)
		if err != nil || len(list) < 20 || resp.StatusCode >= http.StatusInternalServerError {
			t.Fatalf("%s: %s: %v, %d elements:\n%s", path, resp.Status, err, len(list), body)
		}
		return list
	}
}

// named serves studies in which every text that somebody can set is the given one.
func named(t testing.TB, text string) *site {
	t.Helper()
	s := serve(t, after(190), "")
	create(t, s.Backend, "digits", 20, 2)
	for n := 1; n <= 22; n++ {
		tr, err := s.Trial(t.Context(), "digits", n)
		if err != nil {
			t.Fatal(err)
		}
		name(&tr, text)
		s.Put("digits", tr)
		s.PutMeasurements("digits", curve.Reported{Trial: n, Attempt: 1,
			Series: []curve.Series{{Metric: text, Points: []curve.Point{{Step: 1, Value: 2}, {Step: 2, Value: 1}}}}})
		s.PutLog("digits", n, coordinator.LogPart{Attempt: 1, Stream: messaging.LogStdout, Data: []byte(text + "\n")})
	}
	s.Change("digits", func(st *server.Study) {
		st.Status.Reason = text
		d := &st.Spec.Definition
		d.Metadata.Labels, d.Spec.Note, d.Spec.Objective.Metric = map[string]string{"team": text}, text, text
		d.Spec.Limits = []study.Limit{{Metric: text, Max: new(2.0)}}
		for _, p := range d.Spec.Parameters {
			for k, v := range p.Values {
				if v == "lion" {
					p.Values[k] = text
				}
			}
		}
	})
	if _, err := s.Create(t.Context(), []byte(`{"apiVersion": "fantasia.dev/v1", "kind": "Study", "metadata": {"name": "two"}, "spec": {
		"objectives": [{"metric": "error", "direction": "minimize"}, {"metric": "speed", "direction": "maximize"}],
		"parameters": [{"name": "x", "type": "float", "min": 0, "max": 1}], "budget": {"maxTrials": 20}}}`)); err != nil {
		t.Fatal(err)
	}
	s.Put("two", record.Trial{
		Number: 1, State: study.TrialCompleted, Point: study.Point{"x": 0.5}, Values: study.Values{1, 2}, Metrics: map[string]float64{text: 1},
		Times: record.Times{Created: after(1), Started: after(2), Ended: after(3), Folded: after(3)},
	})
	s.Change("two", func(st *server.Study) {
		st.Spec.Definition.Spec.Several[0].Metric = text
		st.Status = record.Status{State: study.Failed, Reason: text, Started: epoch, Ended: after(4), Trials: 1,
			Counts: record.Counts{Completed: 1}, Position: 2}
		st.Recommended = &optimizer.Recommendation{Trial: 1, Mean: 1, SD: 0.2, Point: study.Point{"x": 0.5},
			Front: []optimizer.Expected{{Trial: 1, Means: []float64{1, 2}, SDs: []float64{0.2, 0.5}}}}
	})
	s.SetWorkers(coordinator.Worker{Seen: after(60), Heartbeat: messaging.Heartbeat{
		Worker: text, Pool: text, Host: text, Software: text, Slots: 2,
		Running: []messaging.AttemptID{{Study: "digits", Trial: 22, Attempt: 2}, {Study: text, Trial: 1, Attempt: 1}},
	}})
	return s
}

// name sets the texts of a trial. No model chose it, so that its page need not wait for one.
func name(tr *record.Trial, text string) {
	tr.Source, tr.Reasons.Note, tr.Reasons.Acquisition = optimizer.SourceDesign, text, map[string]float64{text: 1}
	tr.Checkpoint, tr.TraceID, tr.Metrics = text, text, map[string]float64{text: 1}
	if tr.Number == 2 {
		tr.Cancelled = text
	}
	if tr.Stopped != nil {
		stopped := *tr.Stopped
		stopped.Reason, tr.Stopped = text, &stopped
	}
	if tr.Point["solver"] == "lion" {
		tr.Point["solver"] = text
	}
	tr.Attempts = slices.Clone(tr.Attempts)
	a := &tr.Attempts[0]
	a.Worker, a.Site = text, &messaging.Site{Job: text, Node: text, Devices: text}
	switch {
	case a.Failure != nil:
		a.Failure = &messaging.Failure{Reason: text, Message: fmt.Sprintf("%s\n%s", text, text)}
	case a.State == study.AttemptOpen:
		a.Waiting = text
	}
}
