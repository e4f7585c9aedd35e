package server_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/api/server"
	"github.com/fantasia-hpo/fantasia/internal/test/servertest"
)

// addressed is a handler behind the limits of addresses, at a time that the test sets.
type addressed struct {
	http.Handler
	seconds int
	log     bytes.Buffer
}

func limitAddresses(limits server.AddressLimits, next http.Handler) *addressed {
	a := &addressed{}
	limits.Pause = time.Nanosecond
	now := func() time.Time { return servertest.Epoch.Add(time.Duration(a.seconds) * time.Second) }
	a.Handler = server.NewAddresses(limits, slog.New(slog.NewTextHandler(&a.log, nil)), now).Limit(next)
	return a
}

// ask sends a request from an address and returns the answer's status, and after how many
// seconds to try again.
func (a *addressed) ask(t *testing.T, from, path string, change func(*http.Request)) (status int, retry string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader("{}"))
	r.RemoteAddr = from
	r.Header.Set("Content-Type", "application/json")
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	a.ServeHTTP(w, r)
	return w.Code, w.Header().Get("Retry-After")
}

func fine(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }

// An address may send so many requests a second, of whatever port and network prefix, and
// whatever it says of where it is. Others are not affected, nor are probes and sockets.
func TestAddressRate(t *testing.T) {
	a := limitAddresses(server.AddressLimits{Rate: 2, Burst: 3}, http.HandlerFunc(fine))
	for i, ask := range []struct {
		from, path string
		want       int
	}{
		{"192.0.2.1:1000", "/x", 200}, {"192.0.2.1:1001", "/y", 200}, {"[::ffff:192.0.2.1]:1002", "/x", 200},
		{"192.0.2.1:1003", "/x", 429}, {"192.0.2.1:1003", "/healthz", 200}, {"192.0.2.1:1003", "/readyz", 200}, {"192.0.2.2:1003", "/x", 200},
		{"[2001:db8::1]:1", "/x", 200}, {"[2001:db8::2]:1", "/x", 200}, {"[2001:db8::3]:1", "/x", 200}, {"[2001:db8::4%eth0]:1", "/x", 429},
		{"[2001:db8:0:1::4]:1", "/x", 200}, {"@", "/x", 200}, {"@", "/x", 200}, {"", "/x", 200}, {"@", "/x", 200},
	} {
		got, retry := a.ask(t, ask.from, ask.path, func(r *http.Request) {
			r.Header.Set("X-Forwarded-For", fmt.Sprintf("203.0.113.%d", i))
			r.Header.Set("Fantasia-Forwarded", "1")
		})
		if got != ask.want || (ask.want == 429) != (retry == "1") {
			t.Errorf("request %d, from %s: %d, retry after %q; want %d", i+1, ask.from, got, retry, ask.want)
		}
	}
	a.seconds++
	for i, want := range []int{200, 200, 429, 429} {
		if got, _ := a.ask(t, "192.0.2.1:1", "/x", nil); got != want {
			t.Errorf("request %d a second later: %d, want %d", i+1, got, want)
		}
	}
	if n := strings.Count(a.log.String(), "\n"); n != 2 || !strings.Contains(a.log.String(), "192.0.2.1 sends more than 2 requests a second") {
		t.Errorf("four refusals in two seconds have %d lines, want one a second:\n%s", n, &a.log)
	}
}

// An address has so many requests in progress; one that ends makes room.
func TestAddressOpen(t *testing.T) {
	begun, proceed := make(chan struct{}), make(chan struct{})
	a := limitAddresses(server.AddressLimits{Open: 2}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begun <- struct{}{}
		<-proceed
	}))
	ended := make(chan int)
	ask := func(from string) {
		status, _ := a.ask(t, from, "/x", nil)
		ended <- status
	}
	for range 2 {
		go ask("192.0.2.1:1")
		<-begun
	}
	if got, _ := a.ask(t, "192.0.2.1:2", "/x", nil); got != 429 {
		t.Errorf("a third request: %d, want 429", got)
	}
	proceed <- struct{}{}
	<-ended
	go ask("192.0.2.1:3")
	<-begun
	close(proceed)
	for range 2 {
		if got := <-ended; got != 200 {
			t.Errorf("a request within the limit: %d, want 200", got)
		}
	}
}

// An address whose requests fail for want of a valid token is told to stop, but everybody there
// who has one goes on.
func TestAddressFailures(t *testing.T) {
	all, _ := tokens(t, "one "+digest("one")+" write")
	_, api, err := server.New(servertest.New(t), server.Options{Tokens: all})
	if err != nil {
		t.Fatal(err)
	}
	a := limitAddresses(server.AddressLimits{Failures: 1, FailureBurst: 2}, api)
	const list = "/fantasia.v1.StudyService/ListStudies"
	bearer := func(token string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
	}
	for i, ask := range []struct {
		from, token string
		want        int
	}{
		{"192.0.2.1:1", "guess", 401}, {"192.0.2.1:2", "", 401}, {"192.0.2.1:3", "a.b.c", 429}, {"192.0.2.1:3", "guess", 429},
		{"192.0.2.1:4", "one", 200}, {"192.0.2.1:4", "one", 200}, {"192.0.2.2:1", "guess", 401}, {"192.0.2.1:5", "", 429},
	} {
		if got, _ := a.ask(t, ask.from, list, bearer(ask.token)); got != ask.want {
			t.Errorf("request %d, of %s with the token %q: %d, want %d", i+1, ask.from, ask.token, got, ask.want)
		}
	}
	a.seconds++
	if got, _ := a.ask(t, "192.0.2.1:1", list, bearer("guess")); got != 401 {
		t.Errorf("a wrong token a second later: %d, want 401", got)
	}
}
