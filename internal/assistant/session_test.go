package assistant_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"image"
	"image/png"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/fantasia-hpo/fantasia/api/fantasia/v1/fantasiav1connect"
	"github.com/fantasia-hpo/fantasia/internal/app/standalone"
	"github.com/fantasia-hpo/fantasia/internal/assistant"
	"github.com/fantasia-hpo/fantasia/internal/exchange/fetch"
	"github.com/fantasia-hpo/fantasia/internal/test/testenv"
)

var update = flag.Bool("update", false, "write the golden files")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// dial makes a client that waits while nobody leads yet.
func dial(transport http.RoundTripper, url string) fetch.Service {
	return fantasiav1connect.NewStudyServiceClient(&http.Client{Transport: transport}, url, testInterceptors()...)
}

// place returns the studies below a directory, with a real coordinator.
func place(t testing.TB, dir string) *assistant.Local {
	t.Helper()
	l := &assistant.Local{Dir: dir, Served: standalone.Options{State: filepath.Join(dir, "_server"), Listen: "127.0.0.1:0", Version: "1.2.3"},
		Dial: dial}
	t.Cleanup(func() { must(t, l.Close()) })
	return l
}

// serve returns a server for a place.
func serve(t testing.TB, p assistant.Place) *assistant.Server {
	t.Helper()
	s := assistant.New(assistant.Options{Place: p, Version: "1.2.3", Timeout: 30 * time.Second, Hold: time.Hour,
		Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(func() { s.Close(context.Background()) })
	return s
}

// transports are the ways to reach a server.
var transports = map[string]func(testing.TB, *assistant.Server) mcp.Transport{
	"stdio": func(t testing.TB, s *assistant.Server) mcp.Transport {
		in, toServer := io.Pipe()
		fromServer, out := io.Pipe()
		served := make(chan error, 1)
		go func() { served <- s.Stdio(context.Background(), in, out) }()
		t.Cleanup(func() {
			must(t, toServer.Close()) // as when the client's process ends
			must(t, <-served)
			must(t, out.Close())
		})
		return &mcp.IOTransport{Reader: fromServer, Writer: toServer}
	},
	"http": func(t testing.TB, s *assistant.Server) mcp.Transport {
		h := httptest.NewServer(s.Handler(false))
		t.Cleanup(h.Close)
		return over(t, h.URL, "")
	},
}

// over returns the transport of a client that sends a token.
func over(t testing.TB, url, token string) mcp.Transport {
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &mcp.StreamableClientTransport{Endpoint: url + assistant.Path,
		HTTPClient: &http.Client{Transport: testenv.Bearer{Next: transport, Token: token}}, MaxRetries: -1}
}

// session is a client of the SDK.
type session struct {
	testing.TB
	*mcp.ClientSession
	record *strings.Builder
	// quiet leaves calls out of the record.
	quiet bool
}

func meet(t testing.TB, transport mcp.Transport) *session {
	t.Helper()
	client, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), transport, nil)
	must(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return &session{TB: t, ClientSession: client, record: &strings.Builder{}}
}

// try calls a tool.
func (s *session) try(name string, arguments map[string]any) *mcp.CallToolResult {
	s.Helper()
	result, err := s.CallTool(s.Context(), &mcp.CallToolParams{Name: name, Arguments: arguments})
	if err != nil {
		s.Fatalf("%s %v: %v", name, arguments, err)
	}
	if !s.quiet {
		s.note(name, arguments, result)
	}
	return result
}

// call calls a tool that must succeed, and returns its answer.
func (s *session) call(name string, arguments map[string]any) map[string]any {
	s.Helper()
	result := s.try(name, arguments)
	if result.IsError {
		s.Fatalf("%s %v: %s", name, arguments, text(result))
	}
	answer, _ := result.StructuredContent.(map[string]any)
	return answer
}

// fail calls a tool that must fail, with all of the words in its error.
func (s *session) fail(name string, arguments map[string]any, words ...string) {
	s.Helper()
	result := s.try(name, arguments)
	if !result.IsError {
		s.Errorf("%s %v: %s; want an error", name, arguments, text(result))
		return
	}
	for _, word := range words {
		if !strings.Contains(text(result), word) {
			s.Errorf("%s %v: the error %q does not say %q", name, arguments, text(result), word)
		}
	}
}

func text(r *mcp.CallToolResult) string {
	var parts []string
	for _, c := range r.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			parts = append(parts, t.Text)
		}
	}
	return strings.Join(parts, "\n")
}

// varying are the parts of an answer that differ from run to run.
var varying = []struct {
	pattern *regexp.Regexp
	by      string
}{
	{regexp.MustCompile(`"\d{4}-\d\d-\d\dT[^"]*"`), `"TIME"`},
	{regexp.MustCompile(`"seconds": [0-9.e-]+`), `"seconds": SECONDS`},
	{regexp.MustCompile(`"traceId": "[0-9a-f]+"`), `"traceId": "TRACE"`},
	{regexp.MustCompile(`mcp-[a-z0-9]{26}`), `mcp-CLIENT`},
	{regexp.MustCompile(`study 01[a-z0-9]{24}`), `study ID`},
	{regexp.MustCompile(`"staleness": \d+`), `"staleness": NUMBER`},
}

// note records a call as prose.
func (s *session) note(name string, arguments map[string]any, result *mcp.CallToolResult) {
	ask, err := json.Marshal(arguments)
	must(s, err)
	answer := text(result)
	switch {
	case result.IsError:
		answer = "error: " + answer
	case result.StructuredContent != nil:
		indented, err := json.MarshalIndent(result.StructuredContent, "", "  ")
		must(s, err)
		answer = string(indented)
	}
	for _, c := range result.Content {
		if img, ok := c.(*mcp.ImageContent); ok {
			answer = fmt.Sprintf("[%s, %v]\n%s", img.MIMEType, sizeOf(s, img), answer)
		}
	}
	for _, v := range varying {
		answer = v.pattern.ReplaceAllString(answer, v.by)
		ask = v.pattern.ReplaceAll(ask, []byte(v.by))
	}
	fmt.Fprintf(s.record, "> %s %s\n%s\n\n", name, ask, answer)
}

// sizeOf returns the size of a PNG.
func sizeOf(t testing.TB, c *mcp.ImageContent) image.Point {
	t.Helper()
	m, err := png.Decode(bytes.NewReader(c.Data))
	must(t, err)
	return m.Bounds().Size()
}

// golden compares what was recorded with a file.
func (s *session) golden(file string) {
	s.Helper()
	checkGolden(s, file, s.record.String())
}

func checkGolden(t testing.TB, file, got string) {
	t.Helper()
	path := filepath.Join("testdata", file)
	if *update {
		must(t, os.MkdirAll("testdata", 0o755))
		must(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	must(t, err)
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs; go test -update writes it (-want +got):\n%s", path, diff)
	}
}
