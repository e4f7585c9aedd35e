package httpserve_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/fantasia-hpo/fantasia/internal/base/httpserve"
)

func TestHosts(t *testing.T) {
	h, err := httpserve.NewHosts("tuning.example", ".apps.example", "", "Upper.Example.")
	if err != nil {
		t.Fatal(err)
	}
	h.Add("https://leader.example:8080/x")
	h.Add("box:8080")
	h.Add(":8080")
	for host, want := range map[string]bool{
		"": true, "localhost": true, "localhost:8080": true, "LOCALHOST.": true, "x.localhost": true,
		"127.0.0.1:8080": true, "[::1]:8080": true, "[::1]": true, "10.0.0.7:8080": true,
		"tuning.example": true, "tuning.example:443": true, "upper.example": true,
		"a.apps.example": true, "apps.example": false, "leader.example": true, "box:1": true,
		"evil.example": false, "evil.example:8080": false, "localhost.evil.example": false,
		"127.0.0.1.evil.example": false, "xtuning.example": false, "evilapps.example": false,
		"127.0.0.1:8080:x": false,
	} {
		if got := h.Allow(host); got != want {
			t.Errorf("Allow(%q) = %v, want %v", host, got, want)
		}
	}
	any, err := httpserve.NewHosts("*")
	if err != nil || !any.Allow("evil.example") {
		t.Errorf("* does not accept every name: %v", err)
	}
	for _, wrong := range []string{"http://x", "x:80", "*.x", "a b"} {
		if _, err := httpserve.NewHosts(wrong); err == nil || !strings.Contains(err.Error(), wrong) {
			t.Errorf("NewHosts(%q): %v, want an error with the host", wrong, err)
		}
	}
}

func TestGuard(t *testing.T) {
	h, err := httpserve.NewHosts("tuning.example")
	if err != nil {
		t.Fatal(err)
	}
	guarded := h.Guard(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }),
		"--allowed-hosts", func(w http.ResponseWriter, _ *http.Request, status int, err error) {
			http.Error(w, err.Error(), status)
		})
	for _, test := range []struct {
		method, host, origin, site string
		status                     int
		text                       string
	}{
		{"POST", "localhost:8080", "", "", 204, ""},
		{"POST", "tuning.example", "https://tuning.example", "", 204, ""},
		{"POST", "evil.example:8080", "http://evil.example:8080", "same-origin", 421,
			"localhost, IP addresses, tuning.example; add others with --allowed-hosts"},
		{"GET", "evil.example:8080", "", "same-origin", 421, `unknown host "evil.example:8080"`},
		{"POST", "localhost:8080", "https://evil.example", "", 403, `origin "https://evil.example"`},
		{"POST", "localhost:8080", "null", "cross-site", 403, "cross-origin"},
		{"GET", "localhost:8080", "", "cross-site", 204, ""},
	} {
		r := httptest.NewRequestWithContext(t.Context(), test.method, "http://"+test.host+"/", nil)
		if test.origin != "" {
			r.Header.Set("Origin", test.origin)
		}
		if test.site != "" {
			r.Header.Set("Sec-Fetch-Site", test.site)
		}
		w := httptest.NewRecorder()
		guarded.ServeHTTP(w, r)
		if w.Code != test.status || !strings.Contains(w.Body.String(), test.text) {
			t.Errorf("%+v: %d %q", test, w.Code, w.Body)
		}
	}
}
