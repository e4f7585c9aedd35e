package httpserve_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/internal/base/httpserve"
)

// A client that stops in the middle of its body is cut off; one that has sent its body
// may wait longer for the answer, over HTTP/1 and HTTP/2.
func TestBodyTimeout(t *testing.T) {
	const limit = 200 * time.Millisecond
	read, ended := make(chan error, 1), make(chan error, 1)
	s := httptest.NewUnstartedServer(httpserve.BodyTimeout(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, err := io.ReadAll(r.Body)
		read <- err
		if err != nil {
			w.WriteHeader(http.StatusRequestTimeout)
			return
		}
		select { // longer than the limit
		case <-r.Context().Done():
			ended <- r.Context().Err()
		case <-time.After(2 * limit):
			ended <- nil
		}
	}), limit))
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	for _, h2 := range []bool{false, true} {
		roots := x509.NewCertPool()
		roots.AddCert(s.Certificate())
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "example.com"}, Protocols: new(http.Protocols)}
		transport.Protocols.SetHTTP1(!h2)
		transport.Protocols.SetHTTP2(h2)
		client := &http.Client{Transport: transport}
		for _, slow := range []bool{true, false} {
			var body io.Reader = strings.NewReader("all of it")
			var feed *io.PipeWriter
			if slow {
				body, feed = io.Pipe()
				go func() { _, _ = io.WriteString(feed, "half") }()
			}
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL, body)
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				resp, err := client.Do(r)
				if err == nil {
					err = resp.Body.Close()
				}
				if err != nil && !slow {
					t.Error(err)
				}
			}()
			var cut error
			select {
			case cut = <-read:
			case <-time.After(10 * time.Second):
				t.Fatalf("HTTP/2 %v, slow %v: the body's end was not noticed", h2, slow)
			}
			if err := cut; slow != errors.Is(err, context.DeadlineExceeded) || !slow && err != nil {
				t.Errorf("HTTP/2 %v, slow %v: read %v", h2, slow, err)
			}
			if !slow {
				if err := <-ended; err != nil {
					t.Errorf("HTTP/2 %v: the request ended while its answer took its time: %v", h2, err)
				}
			} else if err := feed.Close(); err != nil {
				t.Error(err)
			}
			<-done
		}
		transport.CloseIdleConnections()
	}
}
