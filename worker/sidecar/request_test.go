package sidecar

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fantasia-hpo/fantasia/worker/report"
)

func TestBadRequestsNameTheField(t *testing.T) {
	s, err := New(Options{Slots: 2, Leave: func() {}})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, Sidecar: s, handler: s.Handler()}
	many := ""
	for i := range maxMetrics + 1 {
		many += fmt.Sprintf(`"m%d": 1,`, i)
	}
	for _, tt := range []struct {
		method, path, body string
		code               int
		field, says        string
	}{
		{"POST", "/v1/next", `{"wait": 1}`, 400, "client", "2 slots"},
		{"POST", "/v1/next", `{"client": 7}`, 400, "client", "is 7"},
		{"POST", "/v1/next", `{"client": "a", "wait": 61}`, 400, "wait", "0 to 60 seconds"},
		{"POST", "/v1/next", `{"client": "a", "wait": NaN}`, 400, "wait", "0 to 60 seconds"},
		{"POST", "/v1/next", `{"client": "a", "timeout": 5}`, 400, "timeout", "known are client, wait"},
		{"POST", "/v1/next", `[]`, 400, "", "want one JSON object"},
		{"POST", "/v1/next", `{"client": "a"`, 400, "", "closing brace"},
		{"POST", "/v1/next", `{"client": "a"} {}`, 400, "", "more than one"},
		{"POST", "/v1/next", `{"client": "a", "client": "b"}`, 400, "client", "twice"},
		{"POST", "/v1/report", ``, 400, "id", "missing"},
		{"POST", "/v1/report", `{"id": ""}`, 400, "id", "missing"},
		{"POST", "/v1/report", `{"id": "x", "step": 1.5}`, 400, "step", "is 1.5"},
		{"POST", "/v1/report", `{"id": "x", "step": "NaN"}`, 400, "step", "whole number"},
		{"POST", "/v1/report", `{"id": "x", "metrics": 0.5}`, 400, "metrics", "is 0.5, want an object"},
		{"POST", "/v1/report", `{"id": "x", "metrics": {"a": "low"}}`, 400, "metrics.a", `is "low", want a number`},
		{"POST", "/v1/report", `{"id": "x", "metrics": {"a": 1, "a": 2}}`, 400, "metrics.a", "twice"},
		{"POST", "/v1/report", `{"id": "x", "metrics": {"": 1}}`, 400, "metrics.", "0 bytes"},
		{"POST", "/v1/report", `{"id": "x", "metrics": {` + strings.TrimSuffix(many, ",") + `}}`, 400, "metrics", "at most 128"},
		{"POST", "/v1/report", `{"id": "x", "checkpoint": {}}`, 400, "checkpoint", "is {}"},
		{"POST", "/v1/report", `{"id": "x", "done": true}`, 400, "done", "unknown"},
		{"POST", "/v1/report", `{"id": "` + strings.Repeat("x", maxBody) + `"}`, 413, "", "larger than"},
		{"POST", "/v1/complete", `{"id": "x", "failed": 3}`, 400, "failed", "is 3"},
		{"POST", "/v1/complete", `{"id": "x", "failed": true, "retry": true}`, 400, "retry", "beside failed"},
		{"POST", "/v1/complete", `{"metrics": {"a": 1}}`, 400, "id", "missing"},
		{"GET", "/v1/should-stop", "", 400, "id", "missing"},
		{"GET", "/v1/next", "", 405, "", "want POST"},
		{"POST", "/v1/trials", "", 404, "", "/v1/next"},
	} {
		t.Run(tt.path+" "+cut(tt.body), func(t *testing.T) {
			code, answer := r.do(t.Context(), tt.method, tt.path, tt.body)
			says, _ := answer["error"].(string)
			field, _ := answer["field"].(string)
			if code != tt.code || field != tt.field || !strings.Contains(says, tt.says) {
				t.Errorf("answers %d %v, want %d, the field %q and %q", code, answer, tt.code, tt.field, tt.says)
			}
		})
	}
}

func TestAnUnknownTrialStopsItsClient(t *testing.T) {
	s, err := New(Options{Slots: 1, Leave: func() {}})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, Sidecar: s, handler: s.Handler()}
	if reason := r.stops("1.1.other"); reason != stopUnknown {
		t.Errorf("should-stop says %v", reason)
	}
	if answer := r.post(http.StatusOK, "/v1/report", `{"id": "1.1.other", "metrics": {"a": 1}}`); answer["stop"] != true {
		t.Errorf("report answers %v", answer)
	}
	if answer := r.post(http.StatusOK, "/v1/complete", `{"id": "1.1.other"}`); answer["taken"] != false || answer["outcome"] != "unknown" {
		t.Errorf("complete answers %v", answer)
	}
}

// A page in a browser on the same machine must not take trials.
func TestPagesAreRefused(t *testing.T) {
	s, err := New(Options{Slots: 1, Leave: func() {}})
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range []struct {
		host, site string
		status     int
	}{
		{"127.0.0.1:7070", "cross-site", http.StatusForbidden},
		// Its name resolves to this machine.
		{"evil.example:7070", "same-origin", http.StatusMisdirectedRequest},
	} {
		req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+page.host+"/v1/hand-back", nil)
		req.Header.Set("Sec-Fetch-Site", page.site)
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, req)
		var answer problemAnswer
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || answer.Error == "" || w.Code != page.status || s.handedBack {
			t.Errorf("a page of %s is answered %d %q (%v), want %d; handed back: %v", page.host, w.Code, w.Body, err, page.status, s.handedBack)
		}
	}
}

// A program may call a socket by any name, and an address by the names that are allowed.
func TestAllowedHosts(t *testing.T) {
	s, err := New(Options{Slots: 1, Leave: func() {}, AllowedHosts: []string{"trainer"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		address, host string
		status        int
	}{
		{"127.0.0.1:0", "trainer", http.StatusOK},
		{"127.0.0.1:0", "other", http.StatusMisdirectedRequest},
		{"unix:" + filepath.Join(t.TempDir(), "socket"), "other", http.StatusOK},
	} {
		listener, err := Listen(t.Context(), test.address)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() { served <- s.Serve(ctx, listener) }()
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true,
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, listener.Addr().Network(), listener.Addr().String())
			}}}
		resp, err := client.Get("http://" + test.host + "/healthz")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != test.status {
			t.Errorf("%s at %s: %d, want %d", test.host, test.address, resp.StatusCode, test.status)
		}
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}
	if _, err := New(Options{Slots: 1, Leave: func() {}, AllowedHosts: []string{"http://x"}}); err == nil {
		t.Error("a URL is accepted as a host")
	}
}

func FuzzCompletion(f *testing.F) {
	for _, seed := range []string{
		`{"id": "1.1.n", "metrics": {"error": 0.5, "b": NaN, "c": null, "d": "-Infinity"}, "step": 3, "checkpoint": "s3://x"}`,
		`{"id": "1", "failed": "why"}`, `{"id": "1", "retry": true, "infeasible": false}`, `{"metrics": {"a": 1, "a": 2}}`,
		`{"id": "\ud800"}`, `{"id":"1","step":1e30}`, `[[[[`, `{"id": {"a": [}]}`, "{\"id\": \"\x00\"}",
	} {
		f.Add([]byte(seed))
	}
	known := []string{"id", "step", "metrics", "checkpoint", "failed", "infeasible", "retry"}
	f.Fuzz(func(t *testing.T, body []byte) {
		fields, err := parseFields(body, known...)
		var id string
		var r *report.Report
		if err == nil {
			id, r, err = fields.completion()
		}
		if err != nil {
			p, ok := errors.AsType[*problem](err)
			if !ok || p.status != http.StatusBadRequest || p.message == "" || len(p.field) > 200 || len(p.message) > 1000 {
				t.Errorf("a problem that is none for people: %#v", err)
			}
			return
		}
		if id == "" || len(id) > maxID || len(r.Metrics) > maxMetrics || len(r.Checkpoint) > report.MaxText {
			t.Errorf("out of bounds: %q %+v", id, r)
		}
		ends := 0
		for _, why := range []*string{r.Error, r.Infeasible, r.Retry} {
			if why != nil {
				ends++
				if len(*why) > report.MaxText {
					t.Errorf("a reason of %d bytes", len(*why))
				}
			}
		}
		if ends > 1 {
			t.Errorf("%d ends at once", ends)
		}
		// Whatever is plain JSON is read as the standard library reads it.
		var plain struct{ ID string }
		if json.Valid(body) && !bytes.Contains(body, []byte(`\u`)) {
			if err := json.Unmarshal(body, &plain); err == nil && plain.ID != "" && plain.ID != id {
				t.Errorf("the id is %q, want %q", id, plain.ID)
			}
		}
	})
}

func TestListenOnASocket(t *testing.T) {
	address := "unix:" + t.TempDir() + "/sidecar.sock"
	r := newRig(t, Options{})
	for range 2 { // the second time over what the first has left
		listener, err := Listen(t.Context(), address)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Listen(t.Context(), address); err == nil {
			t.Error("two listen on one socket")
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- r.Serve(ctx, listener) }()
		if open, err := HandBack(t.Context(), address); err != nil || open != 0 {
			t.Errorf("HandBack: %d, %v", open, err)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if _, err := HandBack(t.Context(), address); err == nil {
		t.Error("HandBack reaches nobody and says nothing")
	}
}
