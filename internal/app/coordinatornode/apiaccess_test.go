package coordinatornode_test

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/api/fantasia/v1/fantasiav1connect"
	"github.com/fantasia-hpo/fantasia/api/server"
	"github.com/fantasia-hpo/fantasia/internal/app/access"
	"github.com/fantasia-hpo/fantasia/internal/app/coordinatornode"
	"github.com/fantasia-hpo/fantasia/internal/base/httpserve"
	"github.com/fantasia-hpo/fantasia/internal/test/oidctest"
	"github.com/fantasia-hpo/fantasia/internal/test/servertest"
	"github.com/fantasia-hpo/fantasia/internal/test/testenv"
	"github.com/fantasia-hpo/fantasia/telemetry"
)

const file = `apiVersion: fantasia.dev/v1
kind: Study
metadata: {name: NAME}
spec:
  objective: {metric: error, direction: minimize}
  parameters: [{name: lr, type: float, min: 1e-5, max: 1e-1, scale: log}]
  budget: {maxTrials: 64}
  trial: {command: [python, train.py, "${args}"]}
`

// The API over TLS, with tokens from a file and from an issuer: by gRPC and Connect, through a replica that sends
// the request on to its leader over TLS too, and after the certificate was replaced.
func TestAPI(t *testing.T) {
	ca, dir := testenv.NewCA(t), t.TempDir()
	cert, key, tokens := filepath.Join(dir, "cert"), filepath.Join(dir, "key"), filepath.Join(dir, "tokens")
	ca.Issue("server", cert, key)
	digest := sha256.Sum256([]byte("right"))
	must(t, os.WriteFile(tokens, []byte("me "+hex.EncodeToString(digest[:])+" write\n"), 0o600))
	issuer, signs := oidctest.New(t), oidctest.NewKey(t, "one")
	issuer.SetKeys(signs.Public())
	a := coordinatornode.APIAccess{TLS: access.Files{CA: ca.File, Cert: cert, Key: key}, Tokens: tokens, OIDC: coordinatornode.OIDC{
		Issuer: issuer.URL, Audience: "fantasia", Grants: written(t, "groups=ml write"), CA: issuer.CA,
	}}
	follower := serveReplicas(t, a)
	create := func(caller access.Caller, name string, o ...connect.ClientOption) error {
		secure, err := caller.TLS()
		must(t, err)
		return createStudy(t, follower, secure, caller.Token, name, o...)
	}
	right := access.Caller{Token: "right", CA: ca.File}
	must(t, create(right, "connect"))
	must(t, create(right, "grpc", connect.WithGRPC()))
	for audience, want := range map[string]connect.Code{"fantasia": 0, "other": connect.CodeUnauthenticated} {
		token := signs.Sign(t, map[string]any{"iss": issuer.URL, "sub": "alice", "groups": []string{"ml"}, "aud": audience,
			"exp": time.Now().Add(time.Hour).Unix()}, nil)
		err := create(access.Caller{Token: token, CA: ca.File}, "issued")
		if err == nil != (want == 0) || err != nil && connect.CodeOf(err) != want {
			t.Errorf("create with an issuer's token for %s: %v, want code %d", audience, err, want)
		}
	}
	if err := create(access.Caller{Token: "wrong", CA: ca.File}, "x"); connect.CodeOf(err) != connect.CodeUnauthenticated {
		t.Errorf("create with another token: %v", err)
	}
	for name, caller := range map[string]access.Caller{"the system's authorities": {Token: "right"},
		"another authority": {Token: "right", CA: testenv.NewCA(t).File}} {
		if err := create(caller, "y"); connect.CodeOf(err) != connect.CodeUnavailable || !strings.Contains(err.Error(), "certificate") {
			t.Errorf("create with %s: %v, want that the certificate is not trusted", name, err)
		}
	}
	must(t, os.Remove(cert))
	if err := create(right, "z"); err == nil {
		t.Error("the certificate was not read again")
	}
	ca.Issue("server", cert, key)
	must(t, create(right, "again"))
}

// A replica calls a leader that advertises an address which is not in its certificate, as
// pods do, by the name that all replicas' certificates have.
func TestForwardByName(t *testing.T) {
	ca, dir := testenv.NewCA(t), t.TempDir()
	cert, key := filepath.Join(dir, "cert"), filepath.Join(dir, "key")
	ca.IssueFor(cert, key, "replica.example")
	for name, works := range map[string]bool{"replica.example": true, "other.example": false, "": false} {
		a := coordinatornode.APIAccess{TLS: access.Files{CA: ca.File, Cert: cert, Key: key}, ServerName: name}
		secure, err := (&access.Caller{CA: ca.File}).TLS()
		must(t, err)
		secure.ServerName = "replica.example"
		if err := createStudy(t, serveReplicas(t, a), secure, "", "named"); (err == nil) != works {
			t.Errorf("a request that is forwarded by the name %q: %v, want it to work: %t", name, err, works)
		}
	}
}

// serveReplicas serves the API of two replicas with one backend and returns the address of
// the one that does not lead.
func serveReplicas(t *testing.T, a coordinatornode.APIAccess) (follower string) {
	t.Helper()
	silent := slog.New(slog.DiscardHandler)
	backend := servertest.New(t)
	var listeners []net.Listener
	for range 2 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		listeners = append(listeners, l)
	}
	leader := "https://" + listeners[0].Addr().String()
	for i, l := range listeners {
		o := server.Options{Logger: silent, Leader: func(context.Context) (string, bool, error) { return leader, i == 0, nil }}
		must(t, a.Options(&o, silent))
		path, handler, err := server.New(backend, o)
		must(t, err)
		mux := http.NewServeMux()
		mux.Handle(path, handler)
		ctx, stop := context.WithCancel(context.Background())
		served := make(chan error, 1)
		go func() {
			served <- httpserve.Serve(ctx, a.Listener(l), mux, silent)
		}()
		t.Cleanup(func() {
			stop()
			must(t, <-served)
		})
	}
	return listeners[1].Addr().String()
}

// createStudy creates a study at the API of an address.
func createStudy(t *testing.T, address string, secure *tls.Config, token, name string, o ...connect.ClientOption) error {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: secure, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	client := fantasiav1connect.NewStudyServiceClient(&http.Client{Transport: transport}, "https://"+address, o...)
	request := connect.NewRequest(&fantasiav1.CreateStudyRequest{StudyFile: strings.Replace(file, "NAME", name, 1)})
	request.Header().Set("Authorization", "Bearer "+token)
	_, err := client.CreateStudy(t.Context(), request)
	return err
}

// Connections whose TLS handshake fails cause few lines, which tell why.
func TestFailedHandshakesAreFewLines(t *testing.T) {
	ca, dir := testenv.NewCA(t), t.TempDir()
	cert, key := filepath.Join(dir, "cert"), filepath.Join(dir, "key")
	ca.Issue("server", cert, key)
	a := coordinatornode.APIAccess{TLS: access.Files{CA: ca.File, Cert: cert, Key: key}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	var lines syncBuffer
	logger := slog.New(slog.NewTextHandler(&lines, &slog.HandlerOptions{Level: slog.LevelDebug}))
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() {
		served <- httpserve.Serve(ctx, a.Listener(l), http.NotFoundHandler(),
			telemetry.Sparse(logger, func() time.Time { return time.Unix(1, 0) }))
	}()
	const attempts = 100
	for range attempts {
		c, err := net.Dial("tcp", l.Addr().String())
		must(t, err)
		_, err = c.Write([]byte("this is no handshake, and longer than a record's header"))
		must(t, err)
		_, err = io.ReadAll(c) // until the server gives up
		must(t, errors.Join(err, c.Close()))
	}
	stop()
	must(t, <-served)
	if n := strings.Count(lines.String(), "\n"); n == 0 || n > 10 || !strings.Contains(lines.String(), "TLS handshake error") {
		t.Errorf("%d failed handshakes have %d lines, want ten:\n%s", attempts, n, lines.String())
	}
}

// syncBuffer is a buffer that several goroutines may write.
type syncBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func TestAPIErrors(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	for _, test := range []struct {
		api  coordinatornode.APIAccess
		want string
	}{
		{coordinatornode.APIAccess{TLS: access.Files{Cert: missing}}, "--tls-key"},
		{coordinatornode.APIAccess{TLS: access.Files{Cert: missing, Key: missing}}, "--tls-cert " + missing},
		{coordinatornode.APIAccess{TLS: access.Files{CA: missing}}, "--tls-ca"},
		{coordinatornode.APIAccess{Tokens: missing}, "--tokens: "},
		{coordinatornode.APIAccess{Tokens: written(t, "x")}, ":1: got 1 words"},
		{coordinatornode.APIAccess{OIDC: coordinatornode.OIDC{Issuer: "https://a", Audience: "a"}}, "--oidc-grants is not set"},
		{coordinatornode.APIAccess{OIDC: coordinatornode.OIDC{Issuer: "https://a", Grants: missing}}, "--oidc-audience is not set"},
		{coordinatornode.APIAccess{OIDC: coordinatornode.OIDC{CA: missing}}, "--oidc-issuer is not set"},
		{coordinatornode.APIAccess{OIDC: coordinatornode.OIDC{Issuer: "https://a", Audience: "a", Grants: missing}}, "--oidc-grants: "},
		{coordinatornode.APIAccess{OIDC: coordinatornode.OIDC{Issuer: "https://a", Audience: "a", Grants: written(t, "x")}}, ":1: "},
		{coordinatornode.APIAccess{OIDC: coordinatornode.OIDC{Issuer: "https://a", Audience: "a", Grants: written(t, ""), CA: missing}},
			"--oidc-ca"},
		{coordinatornode.APIAccess{OIDC: coordinatornode.OIDC{Issuer: "http://a", Audience: "a", Grants: written(t, "")}}, "--oidc-issuer: "},
		{coordinatornode.APIAccess{OIDC: coordinatornode.OIDC{Issuer: "https://a", Audience: "a", Grants: written(t, ""), Keys: "a/keys"}},
			"--oidc-keys: "},
	} {
		if err := test.api.Options(&server.Options{}, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: %v, want an error with %q", test.api, err, test.want)
		}
	}
	if _, err := (&access.Caller{CA: missing}).TLS(); err == nil || !strings.Contains(err.Error(), "--ca: ") {
		t.Errorf("TLS: %v, want an error that names --ca", err)
	}
}
