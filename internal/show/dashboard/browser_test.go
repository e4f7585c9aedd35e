//go:build browser

package dashboard_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/fantasia-hpo/fantasia/coordinator"
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
	create(t, s.Backend, "digits", 120, 8)
	create(t, s.Backend, "vision", 40, 0)
	for _, stream := range []messaging.LogStream{messaging.LogStdout, messaging.LogStderr} {
		s.PutLog("digits", 121, coordinator.LogPart{Attempt: 1, Stream: stream, Data: []byte("epoch 1: error 0.4\nepoch 2: " +
			"<script>alert(1)</script> 0.3\n")})
	}
	workers(s.Backend, "ID1")
	dir := pictures
	if dir == "" {
		dir = t.TempDir()
	}
	b := browser.Start(t)
	for name, path := range map[string]string{
		"studies": "/ui/", "results": "/ui/studies/digits", "insights": "/ui/studies/digits/insights",
		"diagnostics": "/ui/studies/digits/diagnostics",
		"health":      "/ui/studies/digits/health", "trial": "/ui/studies/digits/trials/121", "failed": "/ui/studies/digits/trials/119",
		"workers":  "/ui/workers",
		"filtered": "/ui/studies/digits/insights?top=20&p.solver=adam&p.solver=lion&sort=value", "login": "/ui/login",
	} {
		t.Run(name, func(t *testing.T) {
			for _, screen := range []struct {
				width, height int
				dark          bool
			}{{1280, 900, false}, {1280, 900, true}, {390, 844, false}, {390, 844, true}} {
				b.Screen(screen.width, screen.height, screen.dark)
				b.Do(chromedp.Navigate(s.URL+path), chromedp.WaitVisible(chromedp.CSS("h1")))
				browser.Get(b,
					chromedp.Poll[bool](
						`document.querySelector('.coming') === null && (!document.querySelector('.picture') || Number(document.querySelector('.picture').getAttribute('width')) <= document.querySelector('.picture').parentNode.clientWidth)`))
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

// TestBrushing drags along axes of parallel coordinates: the table below then shows only
// the trials in that range, and the address says so. A click takes the range away.
func TestBrushing(t *testing.T) {
	s := serve(t, after(190), "")
	create(t, s.Backend, "digits", 120, 8)
	b := browser.Start(t)
	b.Screen(1280, 2400, false) // the whole picture is in the window
	b.Do(chromedp.Navigate(s.URL+"/ui/studies/digits/insights"), chromedp.WaitVisible(chromedp.CSS(".axis-hit")))
	rows := func() string {
		return browser.Get(b, chromedp.Evaluate[string](`[...document.querySelectorAll('#rows tr')].map(r => r.dataset.trial).join()`))
	}
	all := rows()
	drag := func(key string, from, to float64, want string) {
		t.Helper()
		browser.Get(b, chromedp.Poll[bool](`document.querySelector('#insight .coming') === null`))
		var box []float64
		found := browser.Get(b,
			chromedp.Evaluate[string](`JSON.stringify((r => [r.left, r.top, r.width, r.height])(document.querySelector('.axis-hit[data-key="`+key+
				`"]').getBoundingClientRect()))`))
		if err := json.Unmarshal([]byte(found), &box); err != nil {
			t.Fatal(err)
		}
		y := box[1] + box[3]/2
		b.Drag(box[0]+from*box[2], y, box[0]+to*box[2], y)
		browser.Get(b, chromedp.Poll[bool](`new RegExp(`+strconv.Quote(want)+`).test(decodeURIComponent(location.search))`))
		// The tabs of the page lead to the same trials once it has been taken over.
		browser.Get(b,
			chromedp.Poll[bool](
				`decodeURIComponent(new URL(document.querySelector('.tabs [aria-current]').href).search) === decodeURIComponent(location.search)`))
	}
	// The middle of the logarithmic axis from 1e-5 to 0.1 is 1e-3.
	drag("p.rate", 0.5, 1, `^\?p\.rate=0\.00[01]\d*\.\.$`)
	narrowed := rows()
	if narrowed == all || narrowed == "" {
		t.Errorf("the table shows %s after and %s before", narrowed, all)
	}
	for _, number := range strings.Split(narrowed, ",") {
		n, err := strconv.Atoi(number)
		if err != nil {
			t.Fatal(err)
		}
		tr, err := s.Trial(t.Context(), "digits", n)
		if err != nil || tr.Point["rate"].(float64) < 0.00095 {
			t.Errorf("trial %d is in the table: %v, %v", n, tr.Point, err)
		}
	}
	drag("p.solver", 0, 0.6, `p\.solver=adam&p\.solver=sgd$`)
	drag("p.rate", 0.2, 0.2, `^\?p\.solver=adam&p\.solver=sgd$`)
	drag("p.solver", 0.9, 0.9, `^$`)
	if again := rows(); again != all {
		t.Errorf("without a range the table shows %s, want %s", again, all)
	}
	for _, p := range b.Problems() {
		t.Error(p)
	}
}
