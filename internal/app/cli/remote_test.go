package cli_test

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/fantasia-hpo/fantasia/internal/app/cli"
)

// The wrong scheme and an unusable token are errors at once, with advice. A line end after a token is left out.
func TestWrongScheme(t *testing.T) {
	var shown string
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		shown = r.Header.Get("Authorization")
		w.Header().Set("Content-Type", "application/proto")
	})
	plain, secure := httptest.NewServer(handler), httptest.NewUnstartedServer(handler)
	secure.Config.ErrorLog = log.New(io.Discard, "", 0) // of requests without TLS
	secure.StartTLS()
	defer plain.Close()
	defer secure.Close()
	for server, want := range map[string]string{
		"https" + strings.TrimPrefix(plain.URL, "http"):  "want http://",
		"http" + strings.TrimPrefix(secure.URL, "https"): "want https://",
	} {
		if code, out := fantasia(t, "study", "list", "--server", server); code != cli.ExitError || !strings.Contains(out, want) ||
			strings.Contains(out, "is a coordinator running") {
			t.Errorf("%s: exit code %d, want 1 with %q in\n%s", server, code, want, out)
		}
	}
	t.Setenv("FANTASIA_TOKEN", "secret\n")
	if code, out := fantasia(t, "study", "list", "--server", plain.URL); code != cli.ExitOK || shown != "Bearer secret" {
		t.Errorf("a line end: exit code %d, the token %q, and\n%s", code, shown, out)
	}
	t.Setenv("FANTASIA_TOKEN", "my\nsecret")
	if code, out := fantasia(t, "study", "list", "--server", plain.URL); code != cli.ExitUsage || !strings.Contains(out, "control character") {
		t.Errorf("two lines: exit code %d with\n%s", code, out)
	}
}
