package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"

	"connectrpc.com/connect"

	"github.com/fantasia-hpo/fantasia/api/fantasia/v1/fantasiav1connect"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/telemetry"
)

// ForwardedHeader marks a request that a replica has forwarded. No replica forwards it
// again, so that two replicas that are wrong about the leader cannot cause a loop.
const ForwardedHeader = "Fantasia-Forwarded"

// Leader returns the address that the leader advertises ("host:port" or a URL), or self
// if this replica leads. Its error says why there is no leader; it wraps study.ErrAway if
// that cannot be known now.
type Leader func(ctx context.Context) (address string, self bool, err error)

// forward forwards requests that only the leader can answer.
type forward struct {
	local   http.Handler
	leader  Leader
	timeout time.Duration
	maxBody int64
	proxy   *httputil.ReverseProxy
	logger  *slog.Logger
}

// targetKey is the context key of the URL to which a request is forwarded.
type targetKey struct{}

func newForward(local http.Handler, o Options) *forward {
	f := &forward{
		local: local, leader: o.Leader, timeout: o.ForwardTimeout, maxBody: int64(o.MaxBody),
		logger: o.Logger,
	}
	f.proxy = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			target, _ := r.In.Context().Value(targetKey{}).(*url.URL)
			r.SetURL(target)
			r.SetXForwarded()
			r.Out.Header.Set(ForwardedHeader, "1")
		},
		Transport:    forwardTransport(o.ForwardTLS),
		ErrorHandler: f.failed,
		ErrorLog:     slog.NewLogLogger(o.Logger.Handler(), slog.LevelWarn),
	}
	return f
}

// forwardTransport returns a transport that uses HTTP/2 even without TLS, as gRPC
// requires.
func forwardTransport(secure *tls.Config) *http.Transport {
	var protocols http.Protocols
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Transport{Protocols: &protocols, ForceAttemptHTTP2: true, TLSClientConfig: secure, IdleConnTimeout: time.Minute}
}

// ServeHTTP answers the request or forwards it to the leader.
func (f *forward) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !procedures[r.URL.Path].leaderOnly {
		f.local.ServeHTTP(w, r)
		return
	}
	timeout := f.timeout
	if r.URL.Path == fantasiav1connect.StudyServiceSuggestTrialsProcedure {
		timeout += maxWait
	}
	ctx, cancel := context.WithTimeout(r.Context(), timeout)
	defer cancel()
	address, self, err := f.leader(ctx)
	if err != nil {
		if !errors.Is(err, study.ErrAway) { // there was time enough for it
			err = again("no leader: %w", err)
		}
		f.refuse(w, r, err)
		return
	}
	if self {
		f.local.ServeHTTP(w, r)
		return
	}
	if r.Header.Get(ForwardedHeader) != "" {
		f.refuse(w, r, again("the leader is changing"))
		return
	}
	target, err := leaderURL(address)
	if err != nil {
		f.refuse(w, r, err)
		return
	}
	r = r.WithContext(context.WithValue(ctx, targetKey{}, target))
	r.Body = http.MaxBytesReader(w, r.Body, f.maxBody)
	f.proxy.ServeHTTP(w, r)
}

// failed answers a request that could not be forwarded.
func (f *forward) failed(w http.ResponseWriter, r *http.Request, err error) {
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		f.refuse(w, r, connect.NewError(connect.CodeResourceExhausted, tooLarge))
		return
	}
	if refused, ok := errors.AsType[*connect.Error](err); ok { // by a limit, while its body was read
		f.refuse(w, r, refused)
		return
	}
	f.logger.WarnContext(r.Context(), "the leader did not answer a forwarded request",
		slog.String("procedure", r.URL.Path), slog.Any(telemetry.LogError, err))
	if errors.Is(err, context.DeadlineExceeded) {
		f.refuse(w, r, fmt.Errorf("the leader did not answer in time: %w", context.DeadlineExceeded))
		return
	}
	if errors.Is(err, context.Canceled) && r.Context().Err() != nil {
		f.refuse(w, r, context.Canceled)
		return
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		f.refuse(w, r, fmt.Errorf("%w: the leader's certificate is not trusted: see this coordinator's log", study.ErrUnavailable))
		return
	}
	if dial, ok := errors.AsType[*net.OpError](err); ok && dial.Op == "dial" {
		f.refuse(w, r, again("cannot connect to the leader"))
		return
	}
	f.refuse(w, r, fmt.Errorf("%w: the leader did not answer: check whether the request took effect before you try again",
		study.ErrUnavailable))
}

// refuse answers with an error, in the request's protocol.
func (f *forward) refuse(w http.ResponseWriter, r *http.Request, err error) {
	err = toConnect(err)
	refuse(w, r, f.logger, err, http.StatusServiceUnavailable, err.Error())
}

// leaderURL returns the URL of the address that a leader advertises.
func leaderURL(address string) (*url.URL, error) {
	if address == "" {
		return nil, again("the leader advertises no address")
	}
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	target, err := url.Parse(address)
	if err == nil && target.Host == "" {
		err = errors.New("no host")
	}
	if err != nil {
		return nil, again("the leader advertises %q; want host:port or a URL: %w", address, err)
	}
	return target, nil
}
