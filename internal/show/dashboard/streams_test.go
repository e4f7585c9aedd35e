package dashboard_test

import (
	"bufio"
	"net/http"
	"strings"
	"testing"

	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
)

// open opens a stream and leaves it open until the test ends.
func (s *site) open(t *testing.T, path string) (*reply, *bufio.Scanner) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := s.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := resp.Body.Close(); err != nil {
			t.Error(err)
		}
	})
	return &reply{resp.StatusCode, resp.Status, resp.Header, nil}, bufio.NewScanner(resp.Body)
}

// until reads lines until one begins with a text.
func until(t *testing.T, lines *bufio.Scanner, text string) string {
	t.Helper()
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), text) {
			return lines.Text()
		}
	}
	t.Fatalf("the stream ended without %q: %v", text, lines.Err())
	return ""
}

func TestEventsTellOfChanges(t *testing.T) {
	s := serve(t, after(190), "")
	create(t, s.Backend, "digits", 20, 1)
	s.eventually(t, "/ui/studies/digits", "21 trials") // all have been read
	resp, lines := s.open(t, "/ui/studies/digits/events")
	if kind := resp.Header.Get("Content-Type"); !strings.HasPrefix(kind, "text/event-stream") {
		t.Errorf("the stream is %s", kind)
	}
	first := until(t, lines, "data: ")
	changed, err := s.Trial(t.Context(), "digits", 21)
	if err != nil {
		t.Fatal(err)
	}
	changed.State = study.TrialFailed // the memory tells only of states
	s.Put("digits", changed)
	for until(t, lines, "data: ") == first { //nolint:revive // until another revision is told
	}
}

// The streams are bounded: the oldest gives way.
func TestStreamsAreBounded(t *testing.T) {
	s := serve(t, after(190), "")
	create(t, s.Backend, "digits", 20, 1)
	s.PutLog("digits", 21, coordinator.LogPart{Attempt: 1, Stream: messaging.LogStdout, Data: []byte("epoch 1\n")})
	for path, most := range map[string]int{"/ui/studies/digits/events": 100, "/ui/studies/digits/trials/21/log": 20} {
		var first *bufio.Scanner
		for i := range most + 1 {
			resp, lines := s.open(t, path)
			if resp.StatusCode != http.StatusOK {
				t.Fatalf("%s: stream %d: %s", path, i+1, resp.Status)
			}
			if i == 0 {
				first = lines
			}
		}
		for first.Scan() { //nolint:revive // until it has ended
		}
		if err := first.Err(); err != nil {
			t.Errorf("%s: the first stream: %v, want its end", path, err)
		}
	}
	if resp, _ := s.ask(t, http.MethodGet, "/ui/studies/digits", nil); resp.StatusCode != http.StatusOK {
		t.Errorf("the page, when all streams are taken: %s", resp.Status)
	}
}

// Output cannot end the event that carries it.
func TestLogStream(t *testing.T) {
	s := serve(t, after(190), "")
	create(t, s.Backend, "digits", 20, 1)
	s.PutLog("digits", 21, coordinator.LogPart{Attempt: 1, Stream: messaging.LogStdout, Data: []byte("a\r\rb\n\nevent: end\xff\n")})
	_, lines := s.open(t, "/ui/studies/digits/trials/21/log")
	until(t, lines, "event: log")
	for _, want := range []string{"data: a", "data: ", "data: b", "data: ", "data: event: end\uFFFD", "data: "} {
		if !lines.Scan() || lines.Text() != want {
			t.Errorf("got %q, want %q", lines.Text(), want)
		}
	}
}
