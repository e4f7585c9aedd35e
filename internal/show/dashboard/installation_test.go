//go:build browser

package dashboard_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/fantasia-hpo/fantasia/internal/test/browser"
	"github.com/fantasia-hpo/fantasia/internal/test/testcluster"
	"github.com/fantasia-hpo/fantasia/internal/test/testenv"
)

// TestInstallation follows a study of a real installation in a browser: the open page
// shows trials that end, and the last state, without being loaded again.
func TestInstallation(t *testing.T) {
	c := testcluster.Start(t, testcluster.Options{Coordinators: 2})
	testenv.Start(t, testenv.Build(t, "github.com/fantasia-hpo/fantasia/cmd/worker"), []string{
		"--nats", c.NATS, "--slots", "4", "--gpus", "none", "--state", filepath.Join(t.TempDir(), "worker"), "--",
		testenv.Build(t, "github.com/fantasia-hpo/fantasia/examples/digits"), "-epochs=6", "${args}",
	}, nil, nil)
	file, err := os.ReadFile(filepath.Join("..", "..", "..", "examples", "digits", "study.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	c.Create(strings.Replace(string(file), "maxTrials: 60", "maxTrials: 40", 1))
	c.Await("digits", 1)
	b := browser.Start(t)
	b.Screen(1280, 900, false)
	for _, address := range slices.Sorted(maps.Keys(c.Coordinators)) { // the leader and another
		b.Do(chromedp.Navigate("http://"+address+"/"), chromedp.WaitVisible(chromedp.CSS("#main table a")))
	}
	b.Do(chromedp.Click(chromedp.CSS(`#main a[href="/ui/studies/digits"]`)), chromedp.WaitVisible(chromedp.CSS(".picture")))
	browser.Get(b, chromedp.Evaluate[int](`window.mark = 7`)) // lost if the page is loaded again
	browser.Get(b, chromedp.Poll[bool](`document.querySelector('#state').textContent.includes('completed') && window.mark === 7`))
	best := browser.Get(b, chromedp.Evaluate[string](`document.querySelector('.big').textContent`))
	s, err := c.Ledger.Study(t.Context(), "digits")
	if err != nil {
		t.Fatal(err)
	}
	if s.Status.Counts.Ended() < 40 || strings.TrimSpace(best) == "" {
		t.Errorf("the page says completed with the best %q; the study is %+v", best, s.Status)
	}
	look := func(name, path string) {
		b.Do(chromedp.Navigate(fmt.Sprintf("http://%s%s", slices.Sorted(maps.Keys(c.Coordinators))[0], path)),
			chromedp.WaitVisible(chromedp.CSS("h1")))
		browser.Get(b,
			chromedp.Poll[bool](`document.querySelector('#insight .coming') === null && !document.body.textContent.includes('Reading the study')`))
		if pictures != "" {
			b.Picture(filepath.Join(pictures, "real-"+name+".png"))
		}
		for _, fault := range b.Accessibility() {
			t.Errorf("%s: %s", path, fault)
		}
	}
	look("results", "/ui/studies/digits")
	look("insights", "/ui/studies/digits/insights")
	look("diagnostics", "/ui/studies/digits/diagnostics")
	look("health", "/ui/studies/digits/health")
	look("trial", fmt.Sprintf("/ui/studies/digits/trials/%d", s.Status.Best))
	look("workers", "/ui/workers")
	for _, p := range b.Problems() {
		t.Error(p)
	}
}
