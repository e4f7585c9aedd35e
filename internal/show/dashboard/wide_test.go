//go:build browser

package dashboard_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/fantasia-hpo/fantasia/api/server"
	"github.com/fantasia-hpo/fantasia/internal/test/browser"
	"github.com/fantasia-hpo/fantasia/study"
)

// longName is as long as a study's name may be.
var longName = "a-very-long-name-of-a-study-" + strings.Repeat("x", 35)

// TestLongContents looks at the pages of a study with a long name, four objectives, a long reason, 24
// parameters of long names and 10,000 trials, on a laptop's, a desktop's and a phone's screen. No page is wider
// than the screen, and on a laptop the list of studies needs no scrollbar.
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
	dir := pictures
	if dir == "" {
		dir = t.TempDir()
	}
	b := browser.Start(t)
	for name, path := range map[string]string{
		"studies": "/ui/", "results": "/ui/studies/" + longName, "insights": "/ui/studies/" + longName + "/insights",
		"diagnostics": "/ui/studies/" + longName + "/diagnostics", "health": "/ui/studies/" + longName + "/health",
		"trial": "/ui/studies/" + longName + "/trials/121", "workers": "/ui/workers",
	} {
		for _, width := range []int{1280, 1920, 390} {
			b.Screen(width, 900, false)
			b.Do(chromedp.Navigate(s.URL+path), chromedp.WaitVisible(chromedp.CSS("h1")))
			browser.Get(b, chromedp.Poll[bool](`document.querySelector('.coming') === null`))
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
