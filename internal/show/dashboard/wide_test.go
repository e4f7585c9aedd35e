//go:build browser

package dashboard_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/fantasia-hpo/fantasia/api/server"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/internal/test/browser"
	"github.com/fantasia-hpo/fantasia/internal/test/servertest"
	"github.com/fantasia-hpo/fantasia/study"
)

// longName is as long as a study's name may be.
var longName = "a-very-long-name-of-a-study-" + strings.Repeat("x", 35)

// severalDefinition is a study file with four objectives and a limit, whose metrics have long names.
const severalDefinition = `apiVersion: fantasia.dev/v1
kind: Study
metadata: {name: several}
spec:
  objectives:
    - {metric: validation/loss_after_calibration_of_all_classes, direction: minimize, reference: 2}
    - {metric: throughput_of_the_whole_pipeline_in_images_a_second, direction: maximize, reference: 100}
    - {metric: bytes, direction: minimize, reference: 1e12}
    - {metric: energy_of_one_training_in_kilowatt_hours, direction: minimize, reference: 1e-3}
  limits:
    - {metric: latency_of_the_slowest_percentile_in_milliseconds, max: 250}
  parameters:
    - {name: rate, type: float, min: 1e-5, max: 1e-1, scale: log}
    - {name: width, type: int, min: 1, max: 256}
    - {name: dropout, type: float, min: 0, max: 0.8}
    - {name: solver, type: categorical, values: [adam, sgd, lion]}
    - {name: momentum, type: float, min: 0, max: 0.99, when: {solver: [sgd]}}
  algorithm: {name: hebo}
  budget: {maxTrials: 10000}
  parallelism: 8
  trial: {command: [python, train.py, "${args}"]}
`

// createSeveral makes the study of severalDefinition with ended trials and 8 running ones. Its values span
// many decades.
func createSeveral(t testing.TB, m *servertest.Backend, trials int) {
	t.Helper()
	if _, err := m.Create(t.Context(), []byte(severalDefinition)); err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(7, 4))
	status := record.Status{State: study.Running, Started: epoch, Trials: trials + 8, Position: int64(2*trials + 30),
		Front: &record.Front{}}
	var all []record.Trial
	for n := 1; n <= trials+8; n++ {
		tr := newTrial(rng, n, n > trials)
		if tr.State != study.TrialCompleted && tr.State != study.TrialRunning {
			tr.State, tr.Attempts[0].State, tr.Attempts[0].Failure, tr.Stopped = study.TrialCompleted, study.AttemptSucceeded, nil, nil
		}
		*status.Counts.Of(tr.State)++
		if tr.State == study.TrialCompleted {
			e, width := errorOf(tr.Point), float64(tr.Point["width"].(int64))
			tr.Values = study.Values{e, 12345.678 / (1 + e*width), 1e4 * width * width * width, 1e-9 * width / tr.Point["rate"].(float64)}
			tr.Metrics = map[string]float64{"latency_of_the_slowest_percentile_in_milliseconds": width}
			status.Limits = status.Limits.With([]float64{width - 250})
		}
		all = append(all, tr)
		m.Put("several", tr)
	}
	m.Change("several", func(s *server.Study) {
		front, err := s.Spec.Front(all)
		if err != nil {
			t.Error(err)
		}
		status.Front.Size = len(front)
		s.Status = status
	})
}

// TestLongContents looks at the pages of a study with a long name, a long reason, 29 parameters of long names
// and 10,000 trials, and of one with four objectives and a limit, on a laptop's, a desktop's and a phone's
// screen. No page is wider than the screen, and on a laptop the list of studies needs no scrollbar.
func TestLongContents(t *testing.T) {
	s := serve(t, after(20000), "")
	create(t, s.Backend, "digits", 120, 8)
	create(t, s.Backend, longName, 10_000, 8)
	s.Change(longName, func(st *server.Study) {
		spec := &st.Spec.Definition.Spec
		spec.Objective.Metric = "validation/loss_after_calibration_of_all_classes"
		for i := range 24 {
			low, high := 0.0, 1.0
			spec.Parameters = append(spec.Parameters, study.Parameter{
				Name: fmt.Sprintf("encoder.layers.%d.attention.dropout_probability", i), Type: study.Float, Min: &low, Max: &high,
			})
		}
		st.Status.Reason = "the budget is used up: " + strings.Repeat("and here is much more to say ", 8)
		st.Status.State, st.Status.Ended = study.Completed, after(340)
	})
	createSeveral(t, s.Backend, 400)
	dir := pictures
	if dir == "" {
		dir = t.TempDir()
	}
	b := browser.Start(t)
	for name, path := range map[string]string{
		"studies": "/ui/", "results": "/ui/studies/" + longName, "insights": "/ui/studies/" + longName + "/insights",
		"diagnostics": "/ui/studies/" + longName + "/diagnostics", "health": "/ui/studies/" + longName + "/health",
		"trial": "/ui/studies/" + longName + "/trials/121", "workers": "/ui/workers",
		"several-results": "/ui/studies/several", "several-insights": "/ui/studies/several/insights",
		"several-diagnostics": "/ui/studies/several/diagnostics", "several-health": "/ui/studies/several/health",
		"several-trial": "/ui/studies/several/trials/121",
	} {
		for _, width := range []int{1280, 1920, 390} {
			b.Screen(width, 900, false)
			b.Do(chromedp.Navigate(s.URL+path), chromedp.WaitVisible(chromedp.CSS("h1")))
			browser.Get(b, chromedp.Poll[bool](`document.querySelector('.coming') === null && !document.querySelector('#reading .note')`))
			if browser.Get(b, chromedp.Evaluate[bool](`document.documentElement.scrollWidth > innerWidth`)) {
				t.Errorf("%s: at %d pixels the page is wider than the screen", name, width)
			}
			if name == "studies" && width >= 1280 && browser.Get(b, chromedp.Evaluate[bool](
				`[...document.querySelectorAll('.scroll')].some(e => e.scrollWidth > e.clientWidth)`)) {
				t.Errorf("at %d pixels the list of studies needs a scrollbar", width)
			}
			if text := browser.Get(b, chromedp.Evaluate[string](`document.querySelector('main').innerText`)); name == "studies" &&
				strings.Contains(text, "e+0") {
				t.Errorf("the list of studies has a number with an exponent:\n%s", text)
			}
			b.Picture(filepath.Join(dir, fmt.Sprintf("long-%s-%d.png", name, width)))
		}
	}
	for _, p := range b.Problems() {
		t.Error(p)
	}
}
