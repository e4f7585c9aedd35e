package standalone_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// rate is how many trials a second end while pages are open.
const rate = 50

// BenchmarkWatched measures what open pages of the dashboard cost and how current they
// are. Each iteration is a trial: a client asks for it and tells its value, at most rate
// times a second. The pages are read as a browser reads them: again whenever their stream
// of events says that something has changed. Reported are the medians of the calls, and
// how long after the answer to a client a page shows the trial as ended, at the median and
// at the 99th percentile.
func BenchmarkWatched(b *testing.B) {
	for _, pages := range []int{0, 10} {
		b.Run(fmt.Sprintf("pages=%d", pages), func(b *testing.B) {
			s := serve(b, filepath.Join(b.TempDir(), "state"))
			file := strings.NewReplacer("NAME", "watched", "maxTrials: 6", "maxTrials: 1000000").Replace(file)
			s.createFrom(b, file)
			s.tellValue(b, s.ask(b, "watched", "c"), "c", 1) // the leader is there, and the engine
			ctx, stop := context.WithCancel(b.Context())
			var open sync.WaitGroup
			watched := make([]*page, pages)
			for i := range watched {
				watched[i] = &page{url: s.URL + "/ui/studies/watched", seen: map[int]time.Time{}}
				open.Go(func() { watched[i].follow(ctx, b) })
			}
			var asked, told []time.Duration
			ended := map[int]time.Time{}
			next := time.Now()
			for n := 2; b.Loop(); n++ {
				time.Sleep(time.Until(next))
				next = time.Now().Add(time.Second / rate)
				start := time.Now()
				trial := s.ask(b, "watched", "c")
				asked = append(asked, time.Since(start))
				start = time.Now()
				s.tellValue(b, trial, "c", float64(n%100))
				told = append(told, time.Since(start))
				ended[n] = time.Now()
			}
			time.Sleep(2 * time.Second) // the last trials arrive
			stop()
			open.Wait()
			report := func(name string, all []time.Duration, share float64) {
				if len(all) > 0 {
					slices.Sort(all)
					b.ReportMetric(float64(all[int(share*float64(len(all)-1))].Microseconds())/1000, name)
				}
			}
			report("ms/ask", asked, 0.5)
			report("ms/tell", told, 0.5)
			var late []time.Duration
			for _, p := range watched {
				for n, at := range ended {
					late = append(late, max(0, p.sawAtLeast(n).Sub(at)))
				}
			}
			report("ms/shown", late, 0.5)
			report("ms/shown-p99", late, 0.99)
			if len(watched) > 0 {
				b.ReportMetric(float64(watched[0].reads)/b.Elapsed().Seconds(), "reads/s/page")
			}
		})
	}
}

// page is an open page of a study.
type page struct {
	url   string
	reads int
	// seen is when the page first showed that number of completed trials.
	seen map[int]time.Time
}

// completed finds the number of completed trials in a page.
var completed = regexp.MustCompile(`(?s)completed</dt><dd[^>]*>([0-9,]+)`)

// follow reads the page again whenever its stream says so, until ctx ends.
func (p *page) follow(ctx context.Context, t testing.TB) {
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	get := func(url string) (*http.Response, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return nil, err
		}
		return client.Do(r)
	}
	events, err := get(p.url + "/events")
	if err != nil {
		t.Errorf("open the stream: %v", err)
		return
	}
	defer events.Body.Close()
	changed := make(chan struct{}, 1) // a change during a read means one more read
	var reading sync.WaitGroup
	defer reading.Wait()
	defer close(changed)
	reading.Go(func() {
		for range changed {
			answer, err := get(p.url)
			if err != nil {
				return
			}
			body, err := io.ReadAll(answer.Body)
			if answer.Body.Close(); err != nil {
				return
			}
			m := completed.FindSubmatch(body)
			if m == nil {
				t.Errorf("the page does not say how many trials have completed: %.200s", body)
				return
			}
			p.reads++
			n, err := strconv.Atoi(strings.ReplaceAll(string(m[1]), ",", ""))
			if _, known := p.seen[n]; err == nil && !known {
				p.seen[n] = time.Now()
			}
		}
	})
	for lines := bufio.NewScanner(events.Body); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "event: change") {
			select {
			case changed <- struct{}{}:
			default:
			}
		}
	}
}

// sawAtLeast returns when the page first showed that at least n trials had completed; a
// minute after it was closed if it never did.
func (p *page) sawAtLeast(n int) time.Time {
	first := time.Now().Add(time.Minute)
	for shown, at := range p.seen {
		if shown >= n && at.Before(first) {
			first = at
		}
	}
	return first
}
