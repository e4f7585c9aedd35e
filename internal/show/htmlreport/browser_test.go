//go:build browser

package htmlreport

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/fantasia-hpo/fantasia/internal/test/browser"
)

// TestReportInABrowser opens a report from a file: it needs nothing else, runs no script of
// a hostile study, and is readable for everybody, at two widths, in light and dark.
func TestReportInABrowser(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(path, []byte(pageOf(t, t.Context(), source(t, 60))), 0o600); err != nil {
		t.Fatal(err)
	}
	b := browser.Start(t)
	for _, width := range []int{1280, 390} {
		for _, dark := range []bool{false, true} {
			b.Screen(width, 900, dark)
			b.Do(chromedp.Navigate("file://"+path), chromedp.WaitVisible(chromedp.CSS("h1")))
			if n := browser.Get(b, chromedp.Evaluate[int](`performance.getEntriesByType('resource').length`)); n > 0 {
				t.Errorf("the report loads %d other files", n)
			}
			if wide := browser.Get(b, chromedp.Evaluate[int](`document.documentElement.scrollWidth`)); wide > width {
				t.Errorf("at %d pixels the report is %d wide", width, wide)
			}
			for _, p := range b.Accessibility() {
				t.Errorf("at %d pixels, dark %t: %s", width, dark, p)
			}
		}
	}
	for _, p := range b.Problems() {
		t.Error(p)
	}
}
