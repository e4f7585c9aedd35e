//go:build browser

package htmlreport

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/fantasia-hpo/fantasia/internal/test/browser"
)

// mixedColumns is a script that names the columns of which some cells, or the head, align to the left and others
// to the right.
const mixedColumns = `[...document.querySelectorAll('table')].flatMap(t => [...t.tHead.rows[0].cells].filter((head, i) =>
	new Set([head, ...[...t.tBodies[0].rows].map(r => r.cells[i])].map(c => getComputedStyle(c).textAlign)).size > 1)
	.map(head => t.closest('figure').id + ' ' + head.innerText)).join()`

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
			if mixed := browser.Get(b, chromedp.Evaluate[string](mixedColumns)); mixed != "" {
				t.Errorf("at %d pixels columns align to both sides: %s", width, mixed)
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
