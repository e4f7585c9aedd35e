package httpfault_test

import (
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/fantasia-hpo/fantasia/internal/base/httpfault"
)

// What waiting cannot mend is told from a server that is not there.
func TestLasting(t *testing.T) {
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0) // of the handshake that fails
	secure.StartTLS()
	defer secure.Close()
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := gone.Close(); err != nil {
		t.Fatal(err)
	}
	alert := tlsOnly(t)
	for name, test := range map[string]struct{ url, token, want string }{
		"https to HTTP":       {url: "https" + strings.TrimPrefix(plain.URL, "http"), want: "want http://"},
		"http to TLS alone":   {url: "http://" + alert, want: "want https://"},
		"an unknown issuer":   {url: secure.URL, want: "certificate"},
		"a port beyond 65535": {url: "http://127.0.0.1:99999", want: "invalid port"},
		"a line end":          {url: plain.URL, token: "secret\n", want: "invalid header field"},
		"nobody":              {url: "http://" + gone.Addr().String()},
	} {
		t.Run(name, func(t *testing.T) {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, test.url, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", test.token)
			resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
			if err == nil {
				t.Fatal(resp.Body.Close(), resp.Status)
			}
			got := httpfault.Lasting(err)
			if (got != nil) != (test.want != "") || got != nil && !strings.Contains(got.Error(), test.want) {
				t.Errorf("%v becomes %v, want %q", err, got, test.want)
			}
		})
	}
}

// tlsOnly returns the address of a server that answers a request without TLS with an alert, as most servers but Go's do.
func tlsOnly(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Read(make([]byte, 4096))
			_, _ = c.Write([]byte{0x15, 3, 1, 0, 2, 2, 70}) // protocol_version: RFC 8446, 6.2
			_ = c.Close()
		}
	}()
	return l.Addr().String()
}
