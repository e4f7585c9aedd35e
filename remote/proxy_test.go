package remote_test

import (
	"cmp"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/remote"
)

// The usual variables of the environment name a proxy, and what is reached without it. Programs read them
// once, so each case is a process of its own, which runs this test again.
func TestBehindAProxy(t *testing.T) {
	const inside = "FANTASIA_TEST_INSIDE"
	if os.Getenv(inside) != "" {
		s := &remote.Server{URL: "http://fantasia.invalid:8080"}
		defer s.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.Call(ctx, "GetStudy", []byte("{}")); err != nil {
			t.Fatal(err)
		}
		return
	}
	asked := make(chan string, 100)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.String()
		_, _ = w.Write([]byte("{}"))
	}))
	defer proxy.Close()
	for name, test := range map[string]struct {
		env     []string
		through bool
	}{
		"upper":   {[]string{"HTTP_PROXY=" + proxy.URL}, true},
		"lower":   {[]string{"http_proxy=" + proxy.URL}, true},
		"other":   {[]string{"HTTP_PROXY=" + proxy.URL, "NO_PROXY=example.com"}, true},
		"direct":  {[]string{"HTTP_PROXY=" + proxy.URL, "NO_PROXY=.invalid"}, false},
		"no name": {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestBehindAProxy$") //nolint:gosec // this test
			c.Env = append([]string{inside + "=1", "PATH=" + os.Getenv("PATH"), "HOME=" + cmp.Or(os.Getenv("HOME"), "/")}, test.env...)
			out, err := c.CombinedOutput()
			if through := err == nil; through != test.through {
				t.Errorf("reached through the proxy: %t, want %t\n%s", through, test.through, out)
			}
			if test.through {
				if got, want := <-asked, "http://fantasia.invalid:8080/fantasia.v1.StudyService/GetStudy"; got != want {
					t.Errorf("the proxy was asked for %s, want %s", got, want)
				}
			}
		})
	}
}
