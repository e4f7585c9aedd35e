// Package browser looks at pages in a real Chromium, for tests. It needs the program
// chromium: Debian's package of that name, or the path in CHROMIUM.
package browser

import (
	"bytes"
	"compress/gzip"
	"context"
	_ "embed" // for axe-core
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// axe is axe.min.js of the npm package axe-core 4.14.1, compressed with gzip -9n. Its
// licences are beside it.
//
//go:embed axe/axe.min.js.gz
var axe []byte

// patience bounds each step, on a slow machine.
const patience = time.Minute

// Browser is a Chromium that ends with the test. It notes what pages complain about.
type Browser struct {
	t   testing.TB
	ctx context.Context

	mu       sync.Mutex
	problems []string
}

// Start starts a Chromium.
func Start(t testing.TB) *Browser {
	t.Helper()
	program := os.Getenv("CHROMIUM")
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if program == "" {
			program, _ = exec.LookPath(name)
		}
	}
	if program == "" {
		t.Fatal("this test needs Chromium: install Debian's package chromium, or set CHROMIUM to the path of one")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("force-color-profile", "srgb"))
	b := &Browser{t: t}
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancel := chromedp.NewContext(allocator, chromedp.WithListener(b.note))
	b.ctx = ctx
	t.Cleanup(func() {
		if err := chromedp.Cancel(ctx); err != nil { // waits until the program has ended
			t.Errorf("end Chromium: %v", err)
		}
		cancel()
		stop()
	})
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("start %s: %v", program, err)
	}
	return b
}

// note keeps errors on the console: of scripts, of the content security policy, and of
// requests.
func (b *Browser) note(event any) {
	text := ""
	switch e := event.(type) {
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			text = fmt.Sprintf("%s: %s (%s)", e.Entry.Source, e.Entry.Text, e.Entry.URL)
		}
	case *runtime.EventExceptionThrown:
		text = fmt.Sprintf("%s at %s:%d", e.ExceptionDetails.Text, e.ExceptionDetails.URL, e.ExceptionDetails.LineNumber+1)
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
			text = fmt.Sprintf("console: %v", e.Args)
		}
	}
	if text != "" {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.problems = append(b.problems, text)
	}
}

// Problems returns and forgets what pages have complained about.
func (b *Browser) Problems() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.problems
	b.problems = nil
	return p
}

// Do runs actions, within a minute.
func (b *Browser) Do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		b.t.Fatalf("%v\nthe page complained: %s", err, strings.Join(b.Problems(), "\n"))
	}
}

// Get runs an action, within a minute, and returns its value.
func Get[T any](b *Browser, action chromedp.Action[T]) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, action)
	if err != nil {
		b.t.Fatalf("%v\nthe page complained: %s", err, strings.Join(b.Problems(), "\n"))
	}
	return v
}

// Screen makes the window as wide and as high as a screen, in pixels. A width below 640 is
// a phone's. dark is the system's setting.
func (b *Browser) Screen(width, height int, dark bool) {
	b.t.Helper()
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	b.Do(func(ctx context.Context, t *chromedp.Target) (v chromedp.Void, err error) {
		_, err = cdp.Call(ctx, t, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
			Width: int64(width), Height: int64(height), DeviceScaleFactor: 1, Mobile: width < 640,
		})
		if err == nil {
			_, err = cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
				Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
			})
		}
		return v, err
	})
}

// Drag presses the mouse's button at a place of the window, in pixels, moves it to another
// place, and lets it go.
func (b *Browser) Drag(fromX, fromY, toX, toY float64) {
	b.t.Helper()
	b.Do(func(ctx context.Context, t *chromedp.Target) (v chromedp.Void, err error) {
		for _, e := range []input.DispatchMouseEventParams{
			{Type: input.DispatchMouseEventTypeMousePressed, X: fromX, Y: fromY, Button: input.MouseButtonLeft, ClickCount: 1},
			{Type: input.DispatchMouseEventTypeMouseMoved, X: (fromX + toX) / 2, Y: (fromY + toY) / 2, Button: input.MouseButtonLeft},
			{Type: input.DispatchMouseEventTypeMouseMoved, X: toX, Y: toY, Button: input.MouseButtonLeft},
			{Type: input.DispatchMouseEventTypeMouseReleased, X: toX, Y: toY, Button: input.MouseButtonLeft, ClickCount: 1},
		} {
			if _, err = cdp.Call(ctx, t, input.DispatchMouseEvent, e); err != nil {
				return v, err
			}
		}
		return v, nil
	})
}

// Picture writes the whole page as a PNG.
func (b *Browser) Picture(file string) {
	b.t.Helper()
	png := Get(b, chromedp.FullScreenshot(100))
	if err := os.WriteFile(file, png, 0o644); err != nil { //nolint:gosec // a picture for everybody
		b.t.Fatal(err)
	}
}

// violation is a finding of axe-core.
type violation struct {
	ID, Impact, Help string
	Nodes            []struct {
		HTML   string
		Target []string
	}
}

// Accessibility returns what axe-core finds on the page, one finding a line, if it is
// serious or critical.
func (b *Browser) Accessibility() []string {
	b.t.Helper()
	unzip, err := gzip.NewReader(bytes.NewReader(axe))
	if err != nil {
		b.t.Fatal(err)
	}
	script, err := io.ReadAll(unzip)
	if err != nil {
		b.t.Fatal(err)
	}
	Get(b, chromedp.Evaluate[int](string(script)+";0"))
	found := Get(b, chromedp.Evaluate[string](`axe.run().then(r => JSON.stringify(r.violations))`, chromedp.EvalAwaitPromise))
	var all []violation
	if err := json.Unmarshal([]byte(found), &all); err != nil {
		b.t.Fatal(err)
	}
	var lines []string
	for _, v := range all {
		if v.Impact != "serious" && v.Impact != "critical" {
			continue
		}
		for _, n := range v.Nodes {
			lines = append(lines, fmt.Sprintf("%s (%s): %s: %s", v.ID, v.Impact, v.Help, n.HTML))
		}
	}
	return lines
}
