package remote_test

import (
	"context"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/fantasia-hpo/fantasia"
	"github.com/fantasia-hpo/fantasia/remote"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// answer is what a server says to a request.
type answer struct {
	status int
	body   string
}

// serve starts a server that gives one answer after the other, the last one again and again. It
// returns the requests so far.
func serve(t *testing.T, answers ...answer) (*remote.Server, *[]*http.Request) {
	t.Helper()
	var seen []*http.Request
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := answers[min(len(seen), len(answers)-1)]
		seen = append(seen, r)
		if a.status == 0 { // the connection is lost
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(a.status)
		_, _ = io.WriteString(w, a.body)
	}))
	c := &remote.Server{URL: s.URL + "/"}
	t.Cleanup(func() {
		c.CloseIdleConnections()
		s.Close()
	})
	return c, &seen
}

const (
	electing = `{"code": "unavailable", "message": "no leader", "details": [{"type": "google.rpc.RetryInfo", "debug": {"retryDelay": "0.001s"}}]}`
	busy     = `{"code": "resource_exhausted", "message": "slower", "details": [{"type": "google.rpc.RetryInfo", "debug": {"retryDelay": "0.001s"}}]}`
	bad      = `{"code": "invalid_argument", "message": "2 problems", "details": [{"type": "google.rpc.BadRequest", "debug": {"fieldViolations": [{"description": "1:7: spec.budget: wrong"}, {"description": "spec.pool: wrong"}]}}]}`
)

// A call is repeated while the server is away, is busy or has no leader.
func TestCallsAreRepeated(t *testing.T) {
	c, seen := serve(t, answer{503, electing}, answer{0, ""}, answer{502, "<html>"}, answer{429, busy}, answer{200, `{"ok": true}`})
	got, err := c.Call(t.Context(), "GetStudy", []byte(`{"name": "a"}`))
	if err != nil || string(got) != `{"ok": true}` || len(*seen) != 5 {
		t.Fatalf("the answer is %s, %v after %d requests, want that of the 5th", got, err, len(*seen))
	}
	last := (*seen)[4]
	if last.URL.Path != "/fantasia.v1.StudyService/GetStudy" || last.Method != http.MethodPost ||
		last.Header.Get("Content-Type") != "application/json" {
		t.Errorf("the request was %s %s with %v", last.Method, last.URL, last.Header)
	}
}

// What the server refuses is not repeated.
func TestRefusals(t *testing.T) {
	for name, test := range map[string]struct {
		answer
		code, message string
	}{
		"a problem": {answer{400, bad}, "invalid_argument", "spec.budget: wrong\nspec.pool: wrong"},
		"no study":  {answer{404, `{"code": "not_found", "message": "no study a"}`}, "not_found", "no study a"},
		"no token": {answer{401, `{"code": "unauthenticated", "message": "want a token"}`}, "unauthenticated",
			"want a token; see Token and TokenFile of remote.Server, or set FANTASIA_TOKEN"},
		"not ours":   {answer{404, "<html>"}, "unimplemented", "HTTP 404 Not Found: <html>"},
		"a surprise": {answer{418, ""}, "unknown", "HTTP 418 I'm a teapot: "},
	} {
		t.Run(name, func(t *testing.T) {
			c, seen := serve(t, test.answer)
			_, err := c.Call(t.Context(), "GetStudy", []byte("{}"))
			refused, ok := errors.AsType[*fantasia.ServerError](err)
			if !ok || refused.Code != test.code || refused.Message != test.message || len(*seen) != 1 {
				t.Errorf("error %v after %d requests, want %s: %s after 1", err, len(*seen), test.code, test.message)
			}
		})
	}
}

// When the time is over, the error says why nobody has answered.
func TestUnavailable(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	c, _ := serve(t, answer{503, electing})
	if _, err := c.Call(ctx, "GetStudy", nil); !errors.Is(err, fantasia.ErrUnavailable) || !strings.Contains(err.Error(), "no leader") {
		t.Errorf("error %v", err)
	}
	if _, err := (&remote.Server{URL: "http://127.0.0.1:1"}).Call(ctx, "GetStudy", nil); !errors.Is(err, fantasia.ErrUnavailable) ||
		!strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("error %v", err)
	}
}

// A token comes from a field, a file that may be renewed, or the environment.
func TestTokens(t *testing.T) {
	shown := func(c *remote.Server, seen *[]*http.Request) string {
		t.Helper()
		if _, err := c.Call(t.Context(), "GetStudy", nil); err != nil {
			t.Fatal(err)
		}
		return (*seen)[len(*seen)-1].Header.Get("Authorization")
	}
	c, seen := serve(t, answer{200, "{}"})
	if got := shown(c, seen); got != "" {
		t.Errorf("without a token, %q is sent", got)
	}
	c, seen = serve(t, answer{200, "{}"})
	c.Token = "secret"
	if got := shown(c, seen); got != "Bearer secret" {
		t.Errorf("with a token, %q is sent", got)
	}
	file := filepath.Join(t.TempDir(), "token")
	t.Setenv("FANTASIA_TOKEN_FILE", file)
	c, seen = serve(t, answer{200, "{}"})
	for _, token := range []string{"first", "second"} {
		if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := shown(c, seen); got != "Bearer "+token {
			t.Errorf("with a file, %q is sent, want %q", got, token)
		}
	}
	if err := os.WriteFile(file, []byte("two words"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Call(t.Context(), "GetStudy", nil); !errors.Is(err, fantasia.ErrInvalid) ||
		!strings.Contains(err.Error(), file+" has 2 words") {
		t.Errorf("a file without a token: %v", err)
	}
	c, seen = serve(t, answer{200, "{}"})
	t.Setenv("FANTASIA_TOKEN_FILE", "")
	t.Setenv("FANTASIA_TOKEN", "of the environment")
	t.Setenv("FANTASIA_SERVER", c.URL)
	c.URL = ""
	if got := shown(c, seen); got != "Bearer of the environment" {
		t.Errorf("with FANTASIA_TOKEN, %q is sent", got)
	}
}

// A certificate must be signed by the system's authorities or those of CA.
func TestCertificates(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") }))
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // of the handshake that fails
	s.StartTLS()
	defer s.Close()
	if _, err := (&remote.Server{URL: s.URL}).Call(t.Context(), "GetStudy", nil); err == nil || !strings.Contains(err.Error(), "see CA") {
		t.Errorf("an unknown authority: %v", err)
	}
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	c := &remote.Server{URL: s.URL, CA: ca}
	defer c.CloseIdleConnections()
	if _, err := c.Call(t.Context(), "GetStudy", nil); err != nil {
		t.Errorf("with CA: %v", err)
	}
}

// What does not get better by waiting is an error at once, with its cause, however long the caller would wait.
func TestNoWaitingForWhatLasts(t *testing.T) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") })
	plain, secure := httptest.NewServer(handler), httptest.NewUnstartedServer(handler)
	secure.Config.ErrorLog = log.New(io.Discard, "", 0) // of requests without TLS
	secure.StartTLS()
	defer plain.Close()
	defer secure.Close()
	for name, test := range map[string]struct{ url, token, want string }{
		"https to HTTP":  {url: "https" + strings.TrimPrefix(plain.URL, "http"), want: "want http://"},
		"http to HTTPS":  {url: "http" + strings.TrimPrefix(secure.URL, "https"), want: "HTTPS server"},
		"a wrong port":   {url: "http://127.0.0.1:99999", want: "invalid port"},
		"two-line token": {url: plain.URL, token: "my\nsecret", want: "control character"},
	} {
		t.Run(name, func(t *testing.T) {
			c := &remote.Server{URL: test.url, Token: test.token}
			defer c.CloseIdleConnections()
			_, err := c.Call(t.Context(), "GetStudy", nil) // it would wait for ever
			if err == nil || errors.Is(err, fantasia.ErrUnavailable) || !strings.Contains(err.Error(), test.want) ||
				strings.Contains(err.Error(), "secret") {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
	c, seen := serve(t, answer{200, "{}"})
	c.Token = "secret\r\n"
	if _, err := c.Call(t.Context(), "GetStudy", nil); err != nil || (*seen)[0].Header.Get("Authorization") != "Bearer secret" {
		t.Errorf("a token with a line end: %v with %v", err, *seen)
	}
}

func TestWrongServersAreRefused(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		server *remote.Server
		want   string
	}{
		"no URL":     {&remote.Server{URL: "fantasia:8080"}, `is "fantasia:8080"; want one such as https://`},
		"a password": {&remote.Server{URL: "https://me:secret@fantasia"}, "want a Token"},
		"two tokens": {&remote.Server{URL: "http://fantasia", Token: "a", TokenFile: "b"}, "both set"},
		"no CA":      {&remote.Server{URL: "https://fantasia", CA: "nowhere.pem"}, "CA: open nowhere.pem"},
		"no PEM":     {&remote.Server{URL: "https://fantasia", CA: empty}, "has no certificate"},
		"no file":    {&remote.Server{URL: "http://fantasia", TokenFile: "nowhere"}, "TokenFile: open nowhere"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := test.server.Call(t.Context(), "GetStudy", nil)
			if !errors.Is(err, fantasia.ErrInvalid) || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("error %v, want an ErrInvalid with %q", err, test.want)
			}
		})
	}
}
