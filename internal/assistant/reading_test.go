package assistant_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/fantasia-hpo/fantasia/api/server"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/internal/assistant"
	"github.com/fantasia-hpo/fantasia/internal/test/servertest"
	"github.com/fantasia-hpo/fantasia/optimizer/numeric/design"
	"github.com/fantasia-hpo/fantasia/study"
)

// memory is the API of a server in memory with the study team-a-done of 24 trials and the study
// team-b-new of none. It knows the tokens of a file, if one is given.
func memory(t testing.TB, tokens string) string {
	t.Helper()
	b := servertest.New(t)
	for _, name := range []string{"team-a-done", "team-b-new"} {
		_, err := b.Create(context.Background(),
			[]byte(strings.Replace(strings.Replace(loopFile, "name: loop", "name: "+name, 1), "maxTrials: 9", "maxTrials: 40", 1)))
		must(t, err)
	}
	sequence, err := design.NewSobol(2)
	must(t, err)
	u, best := make([]float64, 2), record.Trial{}
	for n := 1; n <= 24; n++ {
		sequence.At(u, uint32(n))
		exponent, layers := -5+4*u[0], 1+int64(5*u[1])
		trial := record.Trial{
			Number: n, State: study.TrialCompleted, Values: []float64{math.Abs(exponent+3) + 0.1*float64(layers)},
			Point: study.Point{"lr": math.Pow(10, exponent), "layers": layers},
			Times: record.Times{Started: servertest.Epoch, Ended: servertest.Epoch, Folded: servertest.Epoch},
		}
		b.Put("team-a-done", trial)
		if len(best.Values) == 0 || trial.Values[0] < best.Values[0] {
			best = trial
		}
	}
	b.Change("team-a-done", func(s *server.Study) { s.Best = &best })
	o := server.Options{}
	if tokens != "" {
		file := filepath.Join(t.TempDir(), "tokens")
		must(t, os.WriteFile(file, []byte(tokens), 0o600))
		o.Tokens, err = server.ReadTokens(file, slog.New(slog.DiscardHandler))
		must(t, err)
	}
	return listen(t, b, o)
}

// listen serves the API of a server in memory, and returns its URL.
func listen(t testing.TB, b *servertest.Backend, o server.Options) string {
	t.Helper()
	path, handler, err := server.New(b, o)
	must(t, err)
	mux := http.NewServeMux()
	mux.Handle(path, handler)
	h := httptest.NewServer(mux)
	t.Cleanup(h.Close)
	return h.URL
}

// remote returns a server for the studies of an API.
func remote(t testing.TB, url string) *assistant.Server {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return serve(t, assistant.Remote{Client: dial(transport, url)})
}

// A tool says in every way that the protocol has what it takes and does.
func TestTools(t *testing.T) {
	s := meet(t, transports["http"](t, remote(t, memory(t, ""))))
	list, err := s.ListTools(t.Context(), nil)
	must(t, err)
	changing := map[string]bool{"create_study": true, "ask": true, "report": true, "tell": true, "stop_study": true}
	for _, tool := range list.Tools {
		if a := tool.Annotations; a == nil || a.ReadOnlyHint == changing[tool.Name] || a.DestructiveHint == nil ||
			*a.DestructiveHint != (tool.Name == "stop_study") {
			t.Errorf("tool %s has the annotations %+v", tool.Name, tool.Annotations)
		}
		schema, _ := tool.InputSchema.(map[string]any)
		properties, _ := schema["properties"].(map[string]any)
		for name, p := range properties {
			if described, _ := p.(map[string]any); described["description"] == nil {
				t.Errorf("argument %s of tool %s has no description", name, tool.Name)
			}
		}
		if tool.Title == "" || len(tool.Description) < 40 || properties == nil {
			t.Errorf("tool %s has the title %q, the description %q and the arguments %v", tool.Name, tool.Title, tool.Description, properties)
		}
		tool.OutputSchema = nil // follows from Go's types
	}
	text, err := json.MarshalIndent(list.Tools, "", "  ")
	must(t, err)
	checkGolden(t, "tools.json", string(text)+"\n")
}

// An error names the argument, its value and what would be accepted.
func TestWrongArguments(t *testing.T) {
	s := meet(t, transports["http"](t, remote(t, memory(t, ""))))
	in := func(more map[string]any) map[string]any {
		more["study"] = "team-a-done"
		return more
	}
	s.fail("get_study", map[string]any{}, "get_study", "study")
	s.fail("get_study", map[string]any{"study": "../x"}, `study is "../x"`, "letters")
	s.fail("get_study", map[string]any{"study": "nothing"}, "nothing")
	s.fail("get_study", in(map[string]any{"colour": 1}), "colour")
	s.fail("list_trials", in(map[string]any{"limit": 5000}), "limit", "5000", "500")
	s.fail("list_trials", in(map[string]any{"states": []string{"ended"}}), "states", "ended", "completed")
	s.fail("get_trial", in(map[string]any{"trial": 99}), "99")
	s.fail("get_trial", in(map[string]any{"trial": "x"}), "trial", "integer")
	s.fail("report", in(map[string]any{"trial": 3, "step": 1, "metrics": map[string]any{"loss": 1}}), "trial 3", "ask", "client")
	s.fail("tell", in(map[string]any{"trial": 3, "outcome": "good"}), "outcome", "good", "completed")
	s.fail("picture", in(map[string]any{"picture": "cake"}), "picture", "cake", "history")
	s.fail("picture", in(map[string]any{"picture": "slice"}), "parameters", "slice takes 1", "lr, layers")
	s.fail("picture", in(map[string]any{"picture": "slice", "parameters": []string{"depth"}}), "depth", "lr, layers")
	s.fail("picture", map[string]any{"study": "team-b-new", "picture": "importances"}, "not enough data", "20")
}

// Trials outside of the study's limits are marked, in lists and alone.
func TestLimits(t *testing.T) {
	b := servertest.New(t)
	_, err := b.Create(t.Context(), []byte(strings.Replace(loopFile, "  budget:", "  limits: [{metric: memory, max: 20}]\n  budget:", 1)))
	must(t, err)
	for i, memory := range []float64{20, 21} {
		b.Put("loop", record.Trial{
			Number: i + 1, State: study.TrialCompleted, Values: []float64{1}, Metrics: map[string]float64{"memory": memory},
			Point: study.Point{"lr": 0.1, "layers": int64(1)},
			Times: record.Times{Started: servertest.Epoch, Ended: servertest.Epoch, Folded: servertest.Epoch},
		})
	}
	s := meet(t, transports["http"](t, remote(t, listen(t, b, server.Options{}))))
	trials, _ := s.call("list_trials", map[string]any{"study": "loop"})["trials"].([]any)
	if len(trials) != 2 {
		t.Fatalf("there are %d trials, want 2", len(trials))
	}
	for i, want := range []string{"<nil>", "[memory <= 20]"} {
		if got := fmt.Sprint(trials[i].(map[string]any)["exceeded"]); got != want {
			t.Errorf("in the list, trial %d exceeds %s, want %s", i+1, got, want)
		}
		if got := fmt.Sprint(s.call("get_trial", map[string]any{"study": "loop", "trial": i + 1})["exceeded"]); got != want {
			t.Errorf("trial %d exceeds %s, want %s", i+1, got, want)
		}
	}
}

// Pictures come as PNG of the asked width with words on how to read them, also those that need a
// model.
func TestPictures(t *testing.T) {
	s := meet(t, transports["stdio"](t, remote(t, memory(t, ""))))
	for _, arguments := range []map[string]any{{"picture": "slice", "parameters": []string{"lr"}}, {"picture": "importances"}} {
		arguments["study"], arguments["width"] = "team-a-done", 400
		result := s.try("picture", arguments)
		if result.IsError || len(result.Content) != 2 {
			t.Errorf("%v: %s", arguments, text(result))
			continue
		}
		img, ok := result.Content[0].(*mcp.ImageContent)
		if !ok || img.MIMEType != "image/png" || sizeOf(t, img).X != 800 || len(text(result)) < 10 {
			t.Errorf("%v is %T, with the words %q", arguments, result.Content[0], text(result))
		}
	}
	findings, _ := s.call("diagnose", map[string]any{"study": "team-a-done"})["findings"].([]any)
	if len(findings) == 0 {
		t.Error("a study of 24 trials has no findings")
	}
}

// The report and the table of trials are resources, and a missing study is said to be missing.
func TestResources(t *testing.T) {
	s := meet(t, transports["http"](t, remote(t, memory(t, ""))))
	templates, err := s.ListResourceTemplates(t.Context(), nil)
	must(t, err)
	if len(templates.ResourceTemplates) != 2 {
		t.Errorf("there are %d kinds of resources, want 2", len(templates.ResourceTemplates))
	}
	for uri, want := range map[string][]string{
		"fantasia://studies/team-a-done/report": {"text/html", "<!doctype html>", "team-a-done", "</html>"},
		"fantasia://studies/team-a-done/trials": {"text/csv", "trial,state,value", "\n24,COMPLETED,"},
	} {
		got, err := s.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
		must(t, err)
		all := fmt.Sprint(got.Contents[0].MIMEType, "\n", got.Contents[0].Text)
		for _, w := range want {
			if !strings.Contains(strings.ToLower(all), strings.ToLower(w)) {
				t.Errorf("%s has no %q in %d bytes", uri, w, len(all))
			}
		}
	}
	if _, err := s.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "fantasia://studies/nothing/trials"}); err == nil ||
		!strings.Contains(err.Error(), "nothing") {
		t.Errorf("a resource of no study: %v", err)
	}
}

// Over HTTP a caller's token decides what the caller sees and changes, and without one nothing is
// answered.
func TestTokens(t *testing.T) {
	const reader, writer = "reader-token", "writer-token"
	h := httptest.NewServer(remote(t, memory(t, fmt.Sprintf("r %s read team-a-\nw %s write team-b-\n", sum(reader), sum(writer)))).
		Handler(true))
	t.Cleanup(h.Close)
	for _, token := range []string{"", "wrong"} {
		client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
		if c, err := client.Connect(t.Context(), over(t, h.URL, token), nil); err == nil {
			t.Errorf("a client with the token %q was let in", token)
			_ = c.Close()
		}
	}
	for token, want := range map[string]string{reader: "team-a-done", writer: "team-b-new"} {
		s := meet(t, over(t, h.URL, token))
		studies, _ := s.call("list_studies", map[string]any{})["studies"].([]any)
		if len(studies) != 1 || !strings.Contains(fmt.Sprint(studies[0]), want) {
			t.Errorf("%s sees %v, want only %s", token, studies, want)
		}
	}
	s := meet(t, over(t, h.URL, reader))
	s.fail("get_study", map[string]any{"study": "team-b-new"}, "team-b-new")
	s.fail("stop_study", map[string]any{"study": "team-a-done"}, "read")
	s = meet(t, over(t, h.URL, writer))
	s.fail("create_study", map[string]any{"studyFile": loopFile}, "team-b-")
	s.call("stop_study", map[string]any{"study": "team-b-new"})
}

// A message of a client is bounded.
func TestLargeMessage(t *testing.T) {
	h := httptest.NewServer(remote(t, memory(t, "")).Handler(false))
	t.Cleanup(h.Close)
	resp, err := h.Client().Post(h.URL+assistant.Path, "application/json", bytes.NewReader(bytes.Repeat([]byte(" "), 5<<20)))
	must(t, err)
	must(t, resp.Body.Close())
	if resp.StatusCode != http.StatusRequestEntityTooLarge && resp.StatusCode != http.StatusBadRequest &&
		resp.StatusCode != http.StatusNotAcceptable {
		t.Errorf("5 MiB are answered with %s", resp.Status)
	}
}
