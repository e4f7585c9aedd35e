// Package remote lets studies of package fantasia be led by a server, which several processes and
// machines share:
//
//	study, err := fantasia.Minimize(space, fantasia.Options{
//		Name: "batches", Trials: 200, Parallel: 4,
//		Server: &remote.Server{URL: "https://fantasia.example.com"},
//	})
//
// The rest of the program stays as it is. Each process that opens a study of the same name, with
// the same space and options, evaluates its share of the trials. While a process evaluates a trial
// it renews its lease. If the process dies, another one gets the trial. If the server does not
// answer for a while, evaluations go on, and what they have reported and found is kept and sent
// later: see Options.Patience of package fantasia.
//
// It is a package of its own, so that programs that need no server do not link an HTTP client.
package remote

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/fantasia-hpo/fantasia"
	"github.com/fantasia-hpo/fantasia/internal/base/backoff"
	"github.com/fantasia-hpo/fantasia/internal/base/httpfault"
	"github.com/fantasia-hpo/fantasia/internal/base/tokenfile"
)

// Server is a coordinator, or fantasia serve, at an address. Studies may share a Server. Do not
// change its fields once it is used.
type Server struct {
	// URL is the server's address, as in https://fantasia.example.com. Default: that of the
	// environment variable FANTASIA_SERVER, or http://localhost:8080.
	URL string
	// Token is sent with each request; TokenFile is a file with it, which is read again for each
	// request. Set at most one. Default: FANTASIA_TOKEN and FANTASIA_TOKEN_FILE.
	Token, TokenFile string
	// CA is a PEM file of the certificate authorities that sign the server's certificate. Default:
	// FANTASIA_CA, or the system's.
	CA string

	once   sync.Once
	failed error // why it cannot be used
	base   string
	client *http.Client
}

var _ fantasia.Server = (*Server)(nil)

const (
	firstPause, longestPause = 50 * time.Millisecond, 2 * time.Second
	// answerTime is how long the server may take to answer a request: calls wait for trials for 10
	// seconds.
	answerTime = 40 * time.Second
	// maxAnswer is the largest answer that is read, in bytes.
	maxAnswer = 64 << 20
)

// Call implements fantasia.Server.
func (s *Server) Call(ctx context.Context, method string, request []byte) ([]byte, error) {
	if s.once.Do(s.prepare); s.failed != nil {
		return nil, s.failed
	}
	pauses := backoff.New(firstPause, longestPause)
	var why error
	for {
		answer, err := s.try(ctx, method, request)
		again, ok := errors.AsType[*againError](err)
		if !ok {
			return answer, err
		}
		if ctx.Err() == nil || why == nil { // else this try was cut off, which says less than the one before
			why = again.why
		}
		pause := again.after
		if pause <= 0 {
			pause = pauses.Next()
		}
		if !backoff.Sleep(ctx, pause) {
			return nil, fmt.Errorf("%w: %s: %w", fantasia.ErrUnavailable, s.base, why)
		}
	}
}

// CloseIdleConnections implements fantasia.Server.
func (s *Server) CloseIdleConnections() {
	if s.once.Do(s.prepare); s.client != nil {
		s.client.CloseIdleConnections()
	}
}

// prepare completes the fields from the environment, and checks them.
func (s *Server) prepare() {
	s.base = strings.TrimRight(cmp.Or(s.URL, os.Getenv("FANTASIA_SERVER"), "http://localhost:8080"), "/")
	target, err := url.Parse(s.base)
	if err != nil || target.Host == "" || target.Scheme != "http" && target.Scheme != "https" {
		s.failed = fmt.Errorf("%w: the URL of the server is %q; want one such as https://fantasia.example.com", fantasia.ErrInvalid, s.base)
		return
	}
	if target.User != nil {
		s.failed = fmt.Errorf("%w: the URL of the server has a user or a password; want a Token", fantasia.ErrInvalid)
		return
	}
	if s.Token == "" && s.TokenFile == "" {
		s.Token, s.TokenFile = os.Getenv("FANTASIA_TOKEN"), os.Getenv("FANTASIA_TOKEN_FILE")
	}
	if s.Token != "" && s.TokenFile != "" {
		s.failed = fmt.Errorf("%w: Token and TokenFile are both set; want at most one", fantasia.ErrInvalid)
		return
	}
	if s.Token, err = tokenfile.Trim(s.Token); err != nil {
		s.failed = fmt.Errorf("%w: Token: %w", fantasia.ErrInvalid, err)
		return
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 16,
		IdleConnTimeout: time.Minute}
	if ca := cmp.Or(s.CA, os.Getenv("FANTASIA_CA")); ca != "" {
		pem, err := os.ReadFile(ca)
		if err != nil {
			s.failed = fmt.Errorf("%w: CA: %w", fantasia.ErrInvalid, err)
			return
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(pem) {
			s.failed = fmt.Errorf("%w: CA: %s has no certificate; want a PEM file with some", fantasia.ErrInvalid, ca)
			return
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	s.client = &http.Client{Transport: transport, Timeout: answerTime}
}

// bearer returns the token for a request; empty for none.
func (s *Server) bearer() (string, error) {
	if s.TokenFile == "" {
		return s.Token, nil
	}
	token, err := tokenfile.Read(s.TokenFile)
	if err != nil {
		return "", fmt.Errorf("%w: TokenFile: %w", fantasia.ErrInvalid, err)
	}
	return token, nil
}

// try sends a request once. The error is an *againError if the request can be sent again.
func (s *Server) try(ctx context.Context, method string, body []byte) ([]byte, error) {
	token, err := s.bearer()
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.base+"/fantasia.v1.StudyService/"+method, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("make a request of %s: %w", method, err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Connect-Protocol-Version", "1")
	req.Header.Set("User-Agent", "fantasia-go")
	if deadline, ok := ctx.Deadline(); ok {
		left := min(answerTime, max(time.Until(deadline), time.Millisecond))
		req.Header.Set("Connect-Timeout-Ms", strconv.FormatInt(left.Milliseconds(), 10))
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		if wrong, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
			return nil, fmt.Errorf("%w; see CA of remote.Server", wrong)
		}
		if request, ok := errors.AsType[*url.Error](err); ok { // it names the address again
			err = request.Err
		}
		if lasting := httpfault.Lasting(err); lasting != nil {
			return nil, fmt.Errorf("%s: %w", s.base, lasting)
		}
		return nil, &againError{why: err}
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, &againError{why: fmt.Errorf("the answer was lost: %w", err)}
	case len(answer) > maxAnswer:
		return nil, fmt.Errorf("the answer of %s has more than %d bytes", method, maxAnswer)
	case resp.StatusCode == http.StatusOK:
		return answer, nil
	}
	return nil, refusal(resp.StatusCode, answer)
}
