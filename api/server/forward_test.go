package server_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/api/server"
	"github.com/fantasia-hpo/fantasia/internal/test/servertest"
	"github.com/fantasia-hpo/fantasia/internal/test/testenv"
)

// pair is two replicas over one ledger. lead says who leads: 0 is nobody.
type pair struct {
	backend *servertest.Backend
	lead    atomic.Int64
	address [3]string
}

// newPair serves replicas 1 and 2. wrong makes each think that the other leads.
func newPair(t *testing.T, wrong bool) *pair {
	t.Helper()
	p := &pair{backend: servertest.New(t)}
	listeners := [3]net.Listener{1: listen(t), 2: listen(t)}
	for me := 1; me <= 2; me++ {
		p.address[me] = listeners[me].Addr().String()
	}
	for me := int64(1); me <= 2; me++ {
		leader := func(context.Context) (string, bool, error) {
			lead := p.lead.Load()
			if wrong {
				lead = 3 - me
			}
			if lead == 0 {
				return "", false, errors.New("nobody is elected")
			}
			return p.address[lead], lead == me, nil
		}
		_, stop := start(t, listeners[me], asked{p.backend, me}, server.Options{Leader: leader, ForwardTimeout: 5 * time.Second})
		t.Cleanup(stop)
	}
	return p
}

// asked is a backend that records which replica was asked to stop a study.
type asked struct {
	*servertest.Backend
	me int64
}

func (a asked) Stop(ctx context.Context, name, reason string) (server.Study, error) {
	s, err := a.Backend.Stop(ctx, name, reason)
	s.Status.Reason = string(rune('0' + a.me))
	return s, err
}

func TestForward(t *testing.T) {
	p := newPair(t, false)
	for _, protocol := range []string{"connect", "json", "grpc", "grpc-web"} {
		for lead := int64(0); lead <= 2; lead++ {
			p.lead.Store(lead)
			for me := 1; me <= 2; me++ {
				ctx, c := within(t), dial(t, p.address[me], protocol)
				name := "s-" + protocol + string(rune('0'+lead)) + string(rune('0'+me))
				_, err := c.CreateStudy(ctx, connect.NewRequest(&fantasiav1.CreateStudyRequest{StudyFile: named(name)}))
				if lead == 0 {
					if connect.CodeOf(err) != connect.CodeUnavailable || !strings.Contains(err.Error(), "nobody is elected") {
						t.Errorf("%s, no leader: %v", protocol, err)
					}
					// Reads need no leader.
					if _, err := c.ListStudies(ctx, connect.NewRequest(&fantasiav1.ListStudiesRequest{})); err != nil {
						t.Errorf("%s, no leader, list: %v", protocol, err)
					}
					continue
				}
				if err != nil {
					t.Errorf("%s, leader %d, asking %d: %v", protocol, lead, me, err)
				}
				stopped, err := c.StopStudy(ctx, connect.NewRequest(&fantasiav1.StopStudyRequest{Name: "studies/" + name}))
				if err != nil || stopped.Msg.GetStudy().GetReason() != string(rune('0'+lead)) {
					t.Errorf("%s, leader %d, asking %d: stopped by %v, %v", protocol, lead, me, stopped, err)
				}
				// Errors and their details come through as they are.
				_, err = c.CreateStudy(ctx, connect.NewRequest(&fantasiav1.CreateStudyRequest{StudyFile: "kind: Study\n"}))
				if connect.CodeOf(err) != connect.CodeInvalidArgument || len(violations(t, err)) == 0 {
					t.Errorf("%s, leader %d, asking %d: a bad file: %v", protocol, lead, me, err)
				}
			}
		}
	}
}

// TestForwardOnce checks that a request is forwarded at most once.
func TestForwardOnce(t *testing.T) {
	p := newPair(t, true)
	for _, protocol := range []string{"connect", "grpc"} {
		_, err := dial(t, p.address[1], protocol).StopStudy(within(t), connect.NewRequest(&fantasiav1.StopStudyRequest{Name: "studies/digits"}))
		if connect.CodeOf(err) != connect.CodeUnavailable || !strings.Contains(err.Error(), "the leader is changing") {
			t.Errorf("%s: %v", protocol, err)
		}
	}
}

// serveUntilCleanup serves until the test ends, and waits for the server's end.
func serveUntilCleanup(t *testing.T, srv *http.Server, l net.Listener) {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(l) }()
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
}

// TestForwardHeaders checks that a caller's headers reach the leader.
func TestForwardHeaders(t *testing.T) {
	got := make(chan http.Header, 1)
	leader := listen(t)
	srv := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got <- r.Header
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, "{}")
	}), Protocols: clear()}
	serveUntilCleanup(t, srv, leader)

	c := dial(t, serve(t, servertest.New(t), server.Options{Leader: func(context.Context) (string, bool, error) {
		return leader.Addr().String(), false, nil
	}}), "json")
	req := connect.NewRequest(&fantasiav1.StopStudyRequest{Name: "studies/digits"})
	req.Header().Set("Authorization", "Bearer token")
	req.Header().Set("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	if _, err := c.StopStudy(within(t), req); err != nil {
		t.Fatal(err)
	}
	header := <-got
	for _, name := range []string{"Authorization", "Traceparent"} {
		if header.Get(name) != req.Header().Get(name) {
			t.Errorf("%s is %q at the leader; want %q", name, header.Get(name), req.Header().Get(name))
		}
	}
	if header.Get(server.ForwardedHeader) == "" || header.Get("X-Forwarded-For") == "" || header.Get("Connect-Timeout-Ms") == "" {
		t.Errorf("the leader's headers lack a mark, the caller's address or its deadline: %v", header)
	}
}

func clear() *http.Protocols {
	var p http.Protocols
	p.SetUnencryptedHTTP2(true)
	return &p
}

// TestForwardDead forwards writes to leaders that do not answer.
func TestForwardDead(t *testing.T) {
	gone := listen(t)
	_ = gone.Close()
	silent := listen(t) // accepts and says nothing
	t.Cleanup(func() { _ = silent.Close() })
	for address, want := range map[string]struct {
		code  connect.Code
		again bool // whether nothing can have been done
	}{
		gone.Addr().String():   {connect.CodeUnavailable, true},
		silent.Addr().String(): {connect.CodeDeadlineExceeded, false},
		"":                     {connect.CodeUnavailable, true},
		"http://":              {connect.CodeUnavailable, true},
	} {
		backend := serve(t, servertest.New(t), server.Options{
			ForwardTimeout: 100 * time.Millisecond,
			Leader:         func(context.Context) (string, bool, error) { return address, false, nil },
		})
		for _, protocol := range []string{"json", "grpc"} {
			_, err := dial(t, backend, protocol).StopStudy(within(t), connect.NewRequest(&fantasiav1.StopStudyRequest{Name: "studies/digits"}))
			if connect.CodeOf(err) != want.code || retryInfo(t, err) != want.again {
				t.Errorf("leader at %q, %s: %v; want %+v", address, protocol, err, want)
			}
		}
	}
}

// TestForwardCut forwards a write to a leader that dies while handling it. Nobody knows
// whether the write took effect, so the caller is not asked to retry it.
func TestForwardCut(t *testing.T) {
	dying := listen(t)
	srv := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		panic(http.ErrAbortHandler)
	}), Protocols: clear()}
	serveUntilCleanup(t, srv, dying)
	address := serve(t, servertest.New(t), server.Options{
		Leader: func(context.Context) (string, bool, error) { return dying.Addr().String(), false, nil },
	})
	_, err := dial(t, address, "connect").StopStudy(within(t), connect.NewRequest(&fantasiav1.StopStudyRequest{Name: "studies/digits"}))
	if connect.CodeOf(err) != connect.CodeUnavailable || retryInfo(t, err) {
		t.Errorf("%v; want unavailable, without a wish to try again", err)
	}
}

// retryInfo reports whether an error says that the request can be sent again.
func retryInfo(t *testing.T, err error) bool {
	t.Helper()
	connected, ok := errors.AsType[*connect.Error](err)
	if !ok {
		t.Fatalf("%v is no error of connect's", err)
	}
	return slices.ContainsFunc(connected.Details(), func(d *connect.ErrorDetail) bool { return d.Type() == "google.rpc.RetryInfo" })
}

// TestForwardPlain posts a body that is not a request of any protocol.
func TestForwardPlain(t *testing.T) {
	p := newPair(t, false)
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := c.Post("http://"+p.address[1]+"/fantasia.v1.StudyService/StopStudy", "text/plain", strings.NewReader("stop"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusServiceUnavailable || json.Valid(body) {
		t.Errorf("%s, %q, %v; want 503 and a line of text", resp.Status, body, err)
	}
}

// stopping is a backend that stops studies as it likes.
type stopping struct {
	*servertest.Backend
	stop func(ctx context.Context) error
}

func (s stopping) Stop(ctx context.Context, _, _ string) (server.Study, error) {
	return server.Study{}, s.stop(ctx)
}

// TestNobodyCancelled checks that a caller who still waits is not told that the request was
// cancelled: it is unavailable, and nobody knows whether it took effect.
func TestNobodyCancelled(t *testing.T) {
	ended := func(context.Context) error { return context.Canceled } // as when a leader's time ends
	leader := serve(t, stopping{servertest.New(t), ended}, server.Options{})
	// Its connections are reset once it works on the request.
	asked := make(chan struct{})
	hanging := serve(t, stopping{servertest.New(t), func(ctx context.Context) error {
		select {
		case asked <- struct{}{}:
		case <-ctx.Done():
		}
		<-ctx.Done()
		return ctx.Err()
	}}, server.Options{})
	proxy := testenv.StartProxy(t, hanging)
	over := make(chan struct{})
	var resetting sync.WaitGroup
	t.Cleanup(func() {
		close(over)
		resetting.Wait()
	})
	resetting.Go(func() {
		for {
			select {
			case <-asked:
				proxy.Reset()
			case <-over:
				return
			}
		}
	})
	for who, address := range map[string]string{
		"the leader": leader, "a replica": replica(t, leader), "a replica that loses its leader": replica(t, proxy.Addr),
	} {
		for _, protocol := range []string{"connect", "json", "grpc", "grpc-web"} {
			_, err := dial(t, address, protocol).StopStudy(within(t), connect.NewRequest(&fantasiav1.StopStudyRequest{Name: "studies/digits"}))
			if connect.CodeOf(err) != connect.CodeUnavailable || retryInfo(t, err) {
				t.Errorf("%s, %s: %v; want unavailable, without a wish to try again", who, protocol, err)
			}
		}
	}
}

// replica serves one that forwards to a leader.
func replica(t *testing.T, leader string) string {
	t.Helper()
	return serve(t, servertest.New(t), server.Options{
		ForwardTimeout: 5 * time.Second,
		Leader:         func(context.Context) (string, bool, error) { return leader, false, nil },
	})
}

// TestCallerCancelled checks that the handler of a caller who has gone away is cancelled, also
// behind a replica.
func TestCallerCancelled(t *testing.T) {
	asked, ended := make(chan struct{}), make(chan error, 1)
	leader := serve(t, stopping{servertest.New(t), func(ctx context.Context) error {
		close(asked)
		<-ctx.Done()
		ended <- ctx.Err()
		return ctx.Err()
	}}, server.Options{})
	ctx, cancel := context.WithCancel(within(t))
	go func() {
		<-asked
		cancel()
	}()
	_, err := dial(t, replica(t, leader), "grpc").StopStudy(ctx, connect.NewRequest(&fantasiav1.StopStudyRequest{Name: "studies/digits"}))
	if connect.CodeOf(err) != connect.CodeCanceled {
		t.Errorf("%v; want canceled", err)
	}
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the leader's handler ended with %v; want it cancelled", err)
	}
}

// A replica can become the leader after it has forwarded a request: it then gets its own request.
// A study file takes its place where it is read, so the only place is enough.
func TestForwardToItself(t *testing.T) {
	l := listen(t)
	var asks atomic.Int64
	leader := func(context.Context) (string, bool, error) { return l.Addr().String(), asks.Add(1) > 1, nil }
	_, stop := start(t, l, servertest.New(t),
		server.Options{Leader: leader, ForwardTimeout: 5 * time.Second, Limits: server.Limits{Files: 1, AllFiles: 1}})
	t.Cleanup(stop)
	_, err := dial(t, l.Addr().String(), "grpc").CreateStudy(within(t),
		connect.NewRequest(&fantasiav1.CreateStudyRequest{StudyFile: "kind: Study"}))
	check(t, err, connect.CodeInvalidArgument, "a study file that is forwarded to where it came from")
	if n := asks.Load(); n != 2 {
		t.Errorf("the leader was looked up %d times, want twice", n)
	}
}

// Somebody who answers at the leader's address without a trusted certificate gets no token, and its answers
// reach nobody. A member of the installation with such a certificate is believed: it can read the tokens of its
// callers, and answer them what it likes.
func TestLiarInTheLeadersPlace(t *testing.T) {
	all, _ := tokens(t, "writer "+digest("writer")+" write")
	for _, member := range []bool{false, true} {
		var heard atomic.Value
		heard.Store("")
		liar := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			heard.Store(r.Header.Get("Authorization"))
			answer, err := proto.Marshal(&fantasiav1.CreateStudyResponse{Study: &fantasiav1.Study{Name: "studies/forged"}})
			if err != nil {
				t.Error(err)
			}
			w.Header().Set("Content-Type", "application/proto")
			_, _ = w.Write(answer)
		}))
		liar.EnableHTTP2, liar.Config.ErrorLog = true, log.New(io.Discard, "", 0)
		liar.StartTLS()
		t.Cleanup(liar.Close)
		trusted := x509.NewCertPool()
		if member {
			trusted.AddCert(liar.Certificate())
		}
		address := serve(t, servertest.New(t), server.Options{
			Tokens: all, ForwardTLS: &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12},
			Leader: func(context.Context) (string, bool, error) { return liar.URL, false, nil },
		})
		got, err := bear(t, address, "connect", "writer").CreateStudy(within(t),
			connect.NewRequest(&fantasiav1.CreateStudyRequest{StudyFile: named("s")}))
		if member {
			check(t, err, 0, "a member in the leader's place")
			if name := got.Msg.GetStudy().GetName(); name != "studies/forged" || heard.Load() != "Bearer writer" {
				t.Errorf("the member's answer is %q, and it heard %q", name, heard.Load())
			}
			continue
		}
		check(t, err, connect.CodeUnavailable, "a stranger in the leader's place")
		if heard.Load() != "" {
			t.Errorf("a stranger heard %q", heard.Load())
		}
	}
}
