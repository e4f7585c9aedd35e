//go:build browser

package dashboard_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/fantasia-hpo/fantasia/api/server"
	"github.com/fantasia-hpo/fantasia/internal/test/browser"
	"github.com/fantasia-hpo/fantasia/messaging"
)

// pictures is where the test leaves pictures of the pages; "" for a temporary directory.
var pictures = os.Getenv("DASHBOARD_PICTURES")

// TestPages looks at every page on wide and narrow screens, light and dark. No page may
// complain or have a serious fault for those who use keyboards or screen readers, and none
// may be wider than a phone.
func TestPages(t *testing.T) {
	s := serve(t, after(190), "")
	create(t, s.Memory, "digits", 120, 8)
	create(t, s.Memory, "vision", 40, 0)
	for _, stream := range []messaging.LogStream{messaging.LogStdout, messaging.LogStderr} {
		s.PutLog("digits", 121, server.LogPart{Attempt: 1, Stream: stream, Data: []byte("epoch 1: error 0.4\nepoch 2: <script>alert(1)</script> 0.3\n")})
	}
	workers(s.Memory, "ID1")
	dir := pictures
	if dir == "" {
		dir = t.TempDir()
	}
	b := browser.Start(t)
	for name, path := range map[string]string{
		"studies": "/ui/", "results": "/ui/studies/digits", "insights": "/ui/studies/digits/insights", "diagnostics": "/ui/studies/digits/diagnostics",
		"health": "/ui/studies/digits/health", "trial": "/ui/studies/digits/trials/121", "failed": "/ui/studies/digits/trials/119", "workers": "/ui/workers",
		"filtered": "/ui/studies/digits/insights?top=20&p.solver=adam&p.solver=lion&sort=value", "login": "/ui/login",
	} {
		t.Run(name, func(t *testing.T) {
			for _, screen := range []struct {
				width, height int
				dark          bool
			}{{1280, 900, false}, {1280, 900, true}, {390, 844, false}, {390, 844, true}} {
				b.Screen(screen.width, screen.height, screen.dark)
				b.Do(chromedp.Navigate(s.URL+path), chromedp.WaitVisible(chromedp.CSS("h1")))
				browser.Get(b, chromedp.Poll[bool](`document.querySelector('#insight .coming') === null && (!document.querySelector('.picture') || Number(document.querySelector('.picture').getAttribute('width')) <= document.querySelector('.picture').parentNode.clientWidth)`))
				if browser.Get(b, chromedp.Evaluate[bool](`document.documentElement.scrollWidth > innerWidth`)) {
					t.Errorf("at %d pixels the page is wider than the screen", screen.width)
				}
				for _, fault := range b.Accessibility() {
					t.Errorf("at %d pixels, dark %v: %s", screen.width, screen.dark, fault)
				}
				shade := map[bool]string{false: "light", true: "dark"}[screen.dark]
				b.Picture(filepath.Join(dir, fmt.Sprintf("%s-%d-%s.png", name, screen.width, shade)))
				for _, p := range b.Problems() {
					t.Errorf("at %d pixels: %s", screen.width, p)
				}
			}
		})
	}
}
