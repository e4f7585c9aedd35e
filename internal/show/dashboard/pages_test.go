package dashboard_test

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/api/server"
	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// reply is an answer whose body has been read.
type reply struct {
	StatusCode int
	Status     string
	Header     http.Header
	Cookies    []*http.Cookie
}

// ask sends a request to a site and returns the answer with its body. It follows no
// redirection.
func (s *site) ask(t testing.TB, method, path string, change func(*http.Request)) (*reply, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(r)
	}
	client := *s.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return &reply{resp.StatusCode, resp.Status, resp.Header, resp.Cookies()}, string(text)
}

// eventually asks for a page until it has a text, because trials are read in the background.
func (s *site) eventually(t testing.TB, path, text string) string {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		resp, body := s.ask(t, http.MethodGet, path, nil)
		if resp.StatusCode == http.StatusOK && strings.Contains(body, text) {
			return body
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %s, without %q:\n%s", path, resp.Status, text, body)
		}
	}
}

func TestStatus(t *testing.T) {
	s := serve(t, after(190), "")
	create(t, s.Backend, "digits", 30, 2)
	for _, page := range []struct {
		method, path string
		status       int
		text         string
	}{
		{"GET", "/ui/", 200, "digits"},
		{"GET", "/ui/?name=dig&state=RUNNING", 200, "digits"},
		{"GET", "/ui/?state=asleep", 400, "state is &#34;asleep&#34;; want one of"},
		{"GET", "/ui/workers", 200, "0 workers"},
		{"GET", "/ui/studies/digits", 200, "Best so far"},
		{"GET", "/ui/studies/digits/insights", 200, "model"},
		{"GET", "/ui/studies/digits/diagnostics", 200, "digits"},
		{"GET", "/ui/studies/digits/health", 200, "digits"},
		{"GET", "/ui/studies/digits/nothing", 404, "no page &#34;nothing&#34;"},
		{"GET", "/ui/studies/absent", 404, "absent"},
		{"GET", "/ui/studies/absent/events", 404, "absent"},
		{"GET", "/ui/studies/digits?top=-1", 400, "top"},
		{"GET", "/ui/studies/digits?page=x", 400, "page"},
		{"GET", "/ui/studies/digits?p.rate=9..1", 400, "rate"},
		{"GET", "/ui/studies/digits?p.solver=none", 400, "solver"},
		{"GET", "/ui/studies/digits?sort=none", 400, "sort"},
		{"GET", "/ui/studies/digits/trials/3", 200, "Trial 3"},
		{"GET", "/ui/studies/digits/trials/3", 200, "job 4711_3, node n17"},
		{"GET", "/ui/studies/digits/trials/900", 404, "900"},
		{"GET", "/ui/studies/digits/trials/0", 404, "from 1 on"},
		{"GET", "/ui/studies/digits/trials/x", 404, "from 1 on"},
		{"GET", "/ui/studies/digits/trials/x/log", 404, "from 1 on"},
		{"GET", "/ui/static/script.js", 404, ""},
		{"GET", "/ui/none", 404, "no such page"},
		{"GET", "/ui/login", 303, ""}, // nobody has to log in here
	} {
		resp, body := s.ask(t, page.method, page.path, nil)
		if resp.StatusCode != page.status || !strings.Contains(body, page.text) {
			t.Errorf("%s %s: %s, want %d and %q:\n%.600s", page.method, page.path, resp.Status, page.status, page.text, body)
		}
	}
}

// A study that runs again after a pause shows for how long it has run, and the rates of that time.
func TestTimesWithoutPauses(t *testing.T) {
	s := serve(t, after(3600), "")
	create(t, s.Backend, "digits", 30, 2)
	s.Change("digits", func(s *server.Study) { // it was away for 57 minutes, and has been back for 90 seconds
		s.Status.Ran, s.Status.Counted, s.Status.Since = 120*time.Second, after(3540), after(3510)
	})
	for n := 25; n <= 30; n++ {
		tr, err := s.Trial(t.Context(), "digits", n)
		if err != nil {
			t.Fatal(err)
		}
		tr.Times.Ended = after(3520)
		s.Put("digits", tr)
	}
	_, body := s.ask(t, "GET", "/ui/studies/digits", nil)
	for _, want := range []string{"4 now, 10", "3m"} { // 6 trials in 90 seconds, 30 in 3 minutes
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %q:\n%s", want, body)
		}
	}
}

func TestStaticFilesAreKept(t *testing.T) {
	s := serve(t, after(0), "")
	_, body := s.ask(t, http.MethodGet, "/ui/", nil)
	found := 0
	for _, part := range strings.Split(body, `"`) {
		if !strings.HasPrefix(part, "/ui/static/") {
			continue
		}
		found++
		resp, text := s.ask(t, http.MethodGet, part, nil)
		if resp.StatusCode != http.StatusOK || text == "" || !strings.Contains(resp.Header.Get("Cache-Control"), "immutable") {
			t.Errorf("%s: %s %v", part, resp.Status, resp.Header)
		}
	}
	if found != 3 {
		t.Errorf("the page names %d static files, want 3", found)
	}
}

// The page of a trial says which limits it is outside of, by the study's limits as they are now.
func TestLimits(t *testing.T) {
	s := serve(t, after(190), "")
	if _, err := s.Create(t.Context(), []byte(`{"apiVersion": "fantasia.dev/v1", "kind": "Study", "metadata": {"name": "bounded"}, "spec": {
		"objective": {"metric": "error", "direction": "minimize"}, "limits": [{"metric": "memory", "max": 20}, {"metric": "recall", "min": 0.5}],
		"parameters": [{"name": "x", "type": "float", "min": 0, "max": 1}], "budget": {"maxTrials": 20}}}`)); err != nil {
		t.Fatal(err)
	}
	s.Put("bounded", record.Trial{
		Number: 1, State: study.TrialCompleted, Point: study.Point{"x": 0.5}, Values: study.Values{3},
		Metrics: map[string]float64{"memory": 30, "recall": 0.4},
		Times:   record.Times{Created: after(1), Started: after(2), Ended: after(3), Folded: after(3)},
	})
	const address, both, one = "/ui/studies/bounded/trials/1", "Outside of memory &lt;= 20, recall &gt;= 0.5<", "Outside of memory &lt;= 20<"
	if _, body := s.ask(t, http.MethodGet, address, nil); !strings.Contains(body, both) {
		t.Errorf("the trial's page does not say %q:\n%s", both, body)
	}
	s.Change("bounded", func(st *server.Study) { st.Spec.Definition.Spec.Limits = st.Spec.Definition.Spec.Limits[:1] })
	if _, body := s.ask(t, http.MethodGet, address, nil); !strings.Contains(body, one) {
		t.Errorf("after an edit, the trial's page does not say %q:\n%s", one, body)
	}
	s.Change("bounded", func(st *server.Study) { st.Spec.Definition.Spec.Limits = nil })
	if _, body := s.ask(t, http.MethodGet, address, nil); strings.Contains(body, "Outside of") {
		t.Errorf("without limits, the trial's page has some:\n%s", body)
	}
}

// The pages of a study with a cost say what was spent, and what each trial has cost.
func TestCost(t *testing.T) {
	s := serve(t, after(190), "")
	if _, err := s.Create(t.Context(), []byte(`{"apiVersion": "fantasia.dev/v1", "kind": "Study", "metadata": {"name": "priced"}, "spec": {
		"objective": {"metric": "error", "direction": "minimize"}, "cost": {"metric": "dollars"},
		"parameters": [{"name": "x", "type": "float", "min": 0, "max": 1}], "budget": {"maxCost": 20}}}`)); err != nil {
		t.Fatal(err)
	}
	s.Put("priced", record.Trial{
		Number: 1, State: study.TrialCompleted, Point: study.Point{"x": 0.5}, Values: study.Values{3}, Expected: 2,
		Attempts: []record.Attempt{{Number: 1, State: study.AttemptSucceeded, Cost: new(2.5)}},
		Times:    record.Times{Created: after(1), Started: after(2), Ended: after(3), Folded: after(3)},
	})
	s.Change("priced", func(st *server.Study) { st.Status.Spent = 2.5 })
	for address, want := range map[string]string{
		"/ui/studies/priced": "2.5 of 20 dollars", "/ui/studies/priced/trials/1": "Cost: 2.5 (2 expected)",
	} {
		if _, body := s.ask(t, http.MethodGet, address, nil); !strings.Contains(body, want) {
			t.Errorf("%s does not say %q:\n%s", address, want, body)
		}
	}
}

// A study of several objectives has a front in place of its best point, and a recommended front.
func TestFront(t *testing.T) {
	s := serve(t, after(190), "")
	if _, err := s.Create(t.Context(), []byte(`{"apiVersion": "fantasia.dev/v1", "kind": "Study", "metadata": {"name": "two"}, "spec": {
		"objectives": [{"metric": "error", "direction": "minimize"}, {"metric": "speed", "direction": "maximize"}],
		"parameters": [{"name": "x", "type": "float", "min": 0, "max": 1}], "budget": {"maxTrials": 20}}}`)); err != nil {
		t.Fatal(err)
	}
	for i, values := range []study.Values{{3, 9}, {1, 5}, {2, 4}} { // the last is dominated by the second
		s.Put("two", record.Trial{
			Number: i + 1, State: study.TrialCompleted, Point: study.Point{"x": 0.25 * float64(3-i)}, Values: values,
			Metrics: map[string]float64{"error": values[0], "speed": values[1]},
			Times:   record.Times{Created: after(1), Started: after(2), Ended: after(3), Folded: after(3)},
		})
	}
	s.Change("two", func(st *server.Study) {
		st.Status = record.Status{State: study.Completed, Started: epoch, Ended: after(4), Trials: 3, Counts: record.Counts{Completed: 3},
			Position: 6}
		st.Recommended = &optimizer.Recommendation{Trial: 2, Mean: 1.1, SD: 0.2, Point: study.Point{"x": 0.5}, Front: []optimizer.Expected{
			{Trial: 2, Means: []float64{1.1, 5.2}, SDs: []float64{0.2, 0.5}, Knee: true},
		}}
	})
	_, body := s.ask(t, http.MethodGet, "/ui/studies/two", nil)
	row := func(trial int, values ...string) string {
		return fmt.Sprintf(`trial %d</a></th><td class="n">%s</td></tr>`, trial, strings.Join(values, `</td><td class="n">`))
	}
	second, first := strings.Index(body, row(2, "1", "5")), strings.Index(body, row(1, "3", "9"))
	if second < 0 || first < second || strings.Contains(body, "trial 3</a></th>") || strings.Contains(body, "Best so far") ||
		!strings.Contains(body, "(minimize error, maximize speed)") {
		t.Errorf("the page does not show a front of the trials 2 and 1:\n%s", body)
	}
	for path, want := range map[string]string{
		"/ui/":              "1 trial</td>",
		"/ui/?name=two":     `– <span class="soft broken">of 2 objectives</span>`,
		"/ui/studies/two?x": `<span class="badge mark">knee</span></th><td class="n">1.1 ± 0.2</td><td class="n">5.2 ± 0.5</td>`,
		// The table of trials shows both objectives. The chosen one is the first column.
		"/ui/studies/two?sort=value.2":                     `<td class="n">2</td><td class="n">4</td>`,
		"/ui/studies/two?objective=speed&sort=-value.2":    `<td class="n">9</td><td class="n">3</td>`,
		"/ui/studies/two?sort=value.99":                    "sort is &#34;value.99&#34;",
		"/ui/studies/two":                                  "Trials on the front: 2, others: 1, by error, lower is better and speed, higher",
		"/ui/studies/two?objective=speed":                  "Trials on the front: 2, others: 1, by speed, higher is better and error, lower",
		"/ui/studies/two/insights?objective=speed":         "across 2 parameters and speed, higher is better",
		"/ui/studies/two/pictures/front":                   "Front of two",
		"/ui/studies/two/pictures/history?objective=speed": "the best is 9 in trial 1",
		"/ui/studies/two/pictures/hypervolume":             "hypervolume, higher is better",
		"/ui/studies/two?objective=sped":                   "objective: &#34;sped&#34; is not an objective",
	} {
		if _, body := s.ask(t, http.MethodGet, path, nil); !strings.Contains(body, want) {
			t.Errorf("%s does not show %q:\n%s", path, want, body)
		}
	}
	// After an edit of the space, trials outside of it are not on the front.
	s.Change("two", func(st *server.Study) {
		st.Spec.Definition.Spec.Parameters[0].Max = new(0.6)
		st.Spec.Space = 2
	})
	if _, body := s.ask(t, http.MethodGet, "/ui/studies/two", nil); !strings.Contains(body, "Trials on the front: 1, others: 1,") {
		t.Errorf("the front has the trial outside of the space:\n%s", body)
	}
	if _, body := s.ask(t, http.MethodGet, "/ui/studies/two/trials/1", nil); !strings.Contains(body, "<dt>speed</dt><dd>9</dd>") {
		t.Errorf("the trial's page does not show its speed:\n%s", body)
	}
}

// Text of programs and of people who name studies is shown as text.
func TestTextIsNoMarkup(t *testing.T) {
	s := serve(t, after(190), "")
	create(t, s.Backend, "digits", 20, 1)
	const evil = `<script>alert(1)</script><img src=x onerror=alert(2)>"'`
	failed, err := s.Trial(t.Context(), "digits", 17)
	if err != nil {
		t.Fatal(err)
	}
	failed.Attempts = append([]record.Attempt(nil), failed.Attempts...)
	failed.Attempts[0].Worker = evil
	failed.Attempts[0].Site = &messaging.Site{Job: evil, Node: evil, Devices: evil}
	failed.Attempts[0].Failure = &messaging.Failure{Reason: "exit", Message: evil + "\n" + evil}
	failed.Reasons.Note, failed.Checkpoint, failed.TraceID = evil, evil, evil
	failed.Metrics = map[string]float64{evil: 1}
	s.Put("digits", failed)
	s.PutLog("digits", 17, coordinator.LogPart{Attempt: 1, Stream: messaging.LogStdout, Data: []byte(evil + "\n")})
	s.Change("digits", func(st *server.Study) { st.Status.Reason = evil })
	s.SetWorkers(coordinator.Worker{Seen: after(60), Heartbeat: messaging.Heartbeat{Worker: evil, Pool: evil, Host: evil, Software: evil}})
	for path, text := range map[string]string{
		"/ui/studies/digits": "Best so far", "/ui/studies/digits/health": "digits", "/ui/studies/digits/trials/17": "alert(1)",
		"/ui/workers": "alert(1)",
		"/ui/studies/digits?worker=" + url.QueryEscape(evil): "alert(1)", "/ui/?name=" + url.QueryEscape(evil): "alert(1)",
		"/ui/login?next=" + url.QueryEscape("/ui/"+evil): "",
	} {
		resp, body := s.ask(t, http.MethodGet, path, nil)
		if !strings.Contains(body, text) {
			t.Errorf("%s: %s, without %q", path, resp.Status, text)
		}
		if strings.Contains(body, "<script>alert") || strings.Contains(body, "<img") {
			t.Errorf("%s has text as markup:\n%s", path, body)
		}
	}
}

func TestHeaders(t *testing.T) {
	s := serve(t, after(0), "")
	for _, path := range []string{"/ui/", "/ui/none", "/ui/workers", "/ui/studies/absent", "/ui/static/none"} {
		resp, _ := s.ask(t, http.MethodGet, path, nil)
		policy := resp.Header.Get("Content-Security-Policy")
		for _, part := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "base-uri 'none'", "frame-ancestors 'none'",
			"form-action 'self'"} {
			if !strings.Contains(policy, part) {
				t.Errorf("%s: the policy %q lacks %s", path, policy, part)
			}
		}
		if strings.Contains(policy, "unsafe") {
			t.Errorf("%s: the policy %q has an exception", path, policy)
		}
		got := map[string]string{}
		for _, name := range []string{"X-Content-Type-Options", "Referrer-Policy", "Cache-Control"} {
			got[name] = resp.Header.Get(name)
		}
		if d := cmp.Diff(map[string]string{"X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin", "Cache-Control": "no-store"},
			got); d != "" {
			t.Errorf("%s: %s", path, d)
		}
	}
}

// Whatever is sent to the dashboard, studies stay as they are.
func TestNothingChanges(t *testing.T) {
	s := serve(t, after(190), "")
	create(t, s.Backend, "digits", 20, 1)
	before, err := s.Study(t.Context(), "digits")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/ui/", "/ui/workers", "/ui/studies/digits", "/ui/studies/digits/health", "/ui/studies/digits/stop",
		"/ui/studies/digits/trials/3"} {
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
			if resp, _ := s.ask(t, method, path, nil); resp.StatusCode != http.StatusMethodNotAllowed {
				t.Errorf("%s %s: %s, want 405", method, path, resp.Status)
			}
		}
		s.ask(t, http.MethodGet, path+"?stop=1&delete=1", nil)
	}
	after, err := s.Study(t.Context(), "digits")
	if d := cmp.Diff(before.Status, after.Status); err != nil || d != "" {
		t.Errorf("the study has changed: %v %s", err, d)
	}
}

func TestFilterAndOrder(t *testing.T) {
	s := serve(t, after(190), "")
	create(t, s.Backend, "digits", 60, 0)
	s.eventually(t, "/ui/studies/digits", "60 trials")
	body := s.eventually(t, "/ui/studies/digits?state=FAILED", "Showing 3 trials of 60")
	for _, n := range []string{"17", "34", "51"} {
		if !strings.Contains(body, "/ui/studies/digits/trials/"+n+`"`) {
			t.Errorf("failed trial %s is not shown", n)
		}
	}
	best, err := s.Study(t.Context(), "digits")
	if err != nil {
		t.Fatal(err)
	}
	body = s.eventually(t, "/ui/studies/digits?top=1", "Showing 1 trial of 60")
	_, table, _ := strings.Cut(body, `id="trials`)
	if link := trialLink(best.Status.Best); !strings.Contains(table, link) {
		t.Errorf("the best trial is not %s:\n%s", link, table)
	}
}

// The page of a study that runs says how long it still takes: at first by the pace so far, and then by the model of its trials' times.
func TestTimeLeft(t *testing.T) {
	s := serve(t, after(101), "")
	create(t, s.Backend, "digits", 60, 8) // the budget is 68, and the last trial began 0.7 s ago
	s.Change("digits", func(st *server.Study) { st.Status.Started = epoch.Add(-10 * time.Hour) })
	s.eventually(t, "/ui/studies/digits", ", about 1h 20m left")
	page := s.eventually(t, "/ui/studies/digits", "s left")
	found := regexp.MustCompile(`, about ([0-9.]+)s left`).FindStringSubmatch(page)
	if found == nil {
		t.Fatalf("the page has no time left:\n%s", page)
	}
	// Trials take 8 to 11 seconds.
	if left, err := strconv.ParseFloat(found[1], 64); err != nil || left < 7 || left > 12 {
		t.Errorf("%q, want about 9 s", found[0])
	}
	s.Change("digits", func(st *server.Study) { st.Status.State = study.Stopped })
	if page := s.eventually(t, "/ui/studies/digits", "stopped"); strings.Contains(page, " left<") {
		t.Errorf("a study that has ended has time left:\n%s", page)
	}
}
