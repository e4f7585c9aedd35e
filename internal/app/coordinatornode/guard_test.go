package coordinatornode_test

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"connectrpc.com/connect"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/api/fantasia/v1/fantasiav1connect"
	"github.com/fantasia-hpo/fantasia/api/server"
	"github.com/fantasia-hpo/fantasia/internal/app/coordinatornode"
	"github.com/fantasia-hpo/fantasia/internal/test/servertest"
)

// A page whose name resolves to this machine, and a page of another origin, create no
// study; programs that call an allowed name do, by every protocol.
func TestPagesCreateNoStudy(t *testing.T) {
	silent, backend := slog.New(slog.DiscardHandler), servertest.New(t)
	path, handler, err := server.New(backend, server.Options{Logger: silent})
	must(t, err)
	mux := http.NewServeMux()
	mux.Handle(path, handler)
	a := coordinatornode.APIAccess{AllowedHosts: []string{"tuning.example"}}
	guarded, err := a.Guard(mux, silent, ":8080", "https://leader.example:8080")
	must(t, err)
	s := httptest.NewServer(guarded)
	defer s.Close()
	post := func(host, origin string) (int, string) {
		body, err := json.Marshal(map[string]string{"studyFile": strings.Replace(file, "NAME", "page", 1)})
		must(t, err)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+fantasiav1connect.StudyServiceCreateStudyProcedure,
			strings.NewReader(string(body)))
		must(t, err)
		r.Host = host
		r.Header.Set("Content-Type", "application/json")
		if origin != "" {
			r.Header.Set("Origin", origin)
		}
		resp, err := http.DefaultClient.Do(r)
		must(t, err)
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		must(t, err)
		return resp.StatusCode, string(text)
	}
	for _, page := range []struct{ host, origin, want string }{
		{"evil.example:8080", "http://evil.example:8080", `unknown host \"evil.example:8080\"`},
		{"evil.example", "", "--allowed-hosts"},
		{"localhost:8080", "http://evil.example", "cross-origin"},
	} {
		if code, text := post(page.host, page.origin); code != http.StatusForbidden || !strings.Contains(text, page.want) {
			t.Errorf("%+v: %d %s", page, code, text)
		}
	}
	if studies, err := backend.Studies(t.Context(), "", 10); err != nil || len(studies) > 0 {
		t.Errorf("there are studies: %v, %v", studies, err)
	}
	client := fantasiav1connect.NewStudyServiceClient(http.DefaultClient, strings.Replace(s.URL, "127.0.0.1", "localhost", 1),
		connect.WithGRPCWeb())
	_, err = client.CreateStudy(t.Context(),
		connect.NewRequest(&fantasiav1.CreateStudyRequest{StudyFile: strings.Replace(file, "NAME", "mine", 1)}))
	must(t, err)
	for i, host := range []string{"tuning.example", "leader.example:8080", "127.0.0.1", "[::1]:8080"} {
		if code, text := post(host, ""); i == 0 && code != http.StatusOK || code == http.StatusForbidden {
			t.Errorf("%s: %d %s", host, code, text)
		}
	}
	other, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/metrics", nil)
	must(t, err)
	other.Host = "evil.example"
	resp, err := http.DefaultClient.Do(other)
	must(t, err)
	resp.Body.Close()
	if resp.StatusCode != http.StatusMisdirectedRequest {
		t.Errorf("a page reads the metrics: %s", resp.Status)
	}
	a.AllowedHosts = []string{"https://x"}
	if _, err := a.Guard(mux, silent); err == nil || !strings.Contains(err.Error(), `--allowed-hosts: host "https://x"`) {
		t.Errorf("Guard: %v, want an error that names the flag and the host", err)
	}
}
