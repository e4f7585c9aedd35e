// Package oidc accepts tokens that an issuer of OpenID Connect has signed, such as an
// identity provider or a cluster of Kubernetes.
package oidc

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/coreos/go-oidc/v3/oidc"

	"github.com/fantasia-hpo/fantasia/api/server"
)

// The bounds of a token.
const (
	maxToken   = 16 << 10 // bytes
	maxSubject = 1 << 10  // bytes; those of Kubernetes have up to 345
)

// algorithms are those by which a token may be signed. All need the issuer's private key,
// so a token that is not signed, or is signed with a public key as a secret, is refused.
var algorithms = []string{
	oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.EdDSA,
}

// Options configure a Verifier. Issuer, Audience and Grants are required.
type Options struct {
	// Issuer is the URL that tokens name as their issuer, letter by letter. It must start with
	// https://, unless its host is a loopback address.
	Issuer string
	// Keys is the URL of the issuer's keys, as CheckKeys accepts it. By default they are found by
	// the issuer's discovery document.
	Keys string
	// Audience is the name that tokens for this API must have in their audience.
	Audience string
	// Grants says what the claims of tokens grant.
	Grants *server.ClaimGrants
	// Roots are the authorities that sign the issuer's certificate. Nil is the system's.
	Roots *x509.CertPool
	// Timeout bounds the requests to the issuer that a token waits for. Default 5 s.
	Timeout time.Duration
	// Next, if not nil, is asked first; what it does not know may be a token of the issuer.
	Next server.Bearers
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Logger gets a line when the issuer's keys cannot be read. Default: no log.
	Logger *slog.Logger
}

// Verifier knows what the bearers of an issuer's tokens may do. It asks the issuer when it
// first needs its keys, so it does not need the issuer at the start. It has no goroutines
// and keeps no connections. Safe for concurrent use.
type Verifier struct {
	o      Options
	keys   *keys
	verify *oidc.IDTokenVerifier
}

var _ server.Bearers = (*Verifier)(nil)

// New returns a Verifier. It does not ask the issuer.
func New(o Options) (*Verifier, error) {
	if err := checkURL("issuer", o.Issuer); err != nil {
		return nil, err
	}
	if err := CheckKeys(o.Issuer, o.Keys); err != nil {
		return nil, err
	}
	if o.Audience == "" {
		return nil, errors.New("the audience is empty; want the name that the issuer's tokens for this API have in their audience")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Timeout <= 0 {
		o.Timeout = 5 * time.Second
	}
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	k := newKeys(o)
	return &Verifier{o: o, keys: k, verify: oidc.NewVerifier(o.Issuer, k, &oidc.Config{
		ClientID: o.Audience, SupportedSigningAlgs: algorithms, Now: o.Now,
	})}, nil
}

// CheckKeys returns an error if the keys of an issuer cannot be read from a URL, which may be empty.
// It must start with https:// if the issuer does.
func CheckKeys(issuer, keys string) error {
	if keys == "" {
		return nil
	}
	if strings.HasPrefix(issuer, "https:") && strings.HasPrefix(keys, "http:") {
		return fmt.Errorf("the URL of the keys is %q; want https://, as the issuer has", keys)
	}
	return checkURL("URL of the keys", keys)
}

// checkURL returns an error if an address is no URL of an issuer or of its keys. Errors begin with
// the name of the address.
func checkURL(named, address string) error {
	u, err := url.Parse(address)
	if err == nil && u.User != nil {
		return fmt.Errorf("the %s %q has a login; want an URL without one, such as https://issuer.example.com", named, u.Host)
	}
	if err != nil || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.Scheme != "https" && u.Scheme != "http" {
		return fmt.Errorf("the %s is %q; want an URL such as https://issuer.example.com", named, address)
	}
	if ip := net.ParseIP(u.Hostname()); u.Scheme == "http" && u.Hostname() != "localhost" && !ip.IsLoopback() {
		return fmt.Errorf("the %s is %q; want https://, since whoever can change the keys on the way can make tokens", named, address)
	}
	return nil
}

// Lines implements server.Lister. It returns the lines of the grants, and then those of Next.
func (v *Verifier) Lines() []server.Grant {
	all := v.o.Grants.Lines()
	if next, ok := v.o.Next.(server.Lister); ok {
		all = append(all, next.Lines()...)
	}
	return all
}

// Grant implements server.Bearers.
func (v *Verifier) Grant(ctx context.Context, token string) (g server.Grant, err error) {
	if v.o.Next != nil {
		if g, err := v.o.Next.Grant(ctx, token); err == nil || !server.Issued(token) {
			return g, err
		}
	}
	switch {
	case len(token) > maxToken:
		return g, refused("the token has %d bytes; want at most %d", len(token), maxToken)
	case !server.Issued(token):
		return g, refused("unknown token")
	}
	var problem keyProblem
	verified, err := v.verify.Verify(context.WithValue(ctx, problemKey{}, &problem), token)
	expired := (*oidc.TokenExpiredError)(nil)
	switch {
	case err != nil && ctx.Err() != nil:
		return g, connect.NewError(connect.CodeCanceled, ctx.Err())
	case problem.unavailable != nil:
		return g, connect.NewError(connect.CodeUnavailable,
			fmt.Errorf("the token cannot be checked now, because the keys of its issuer %s cannot be read: see the coordinator's log",
				v.o.Issuer))
	case problem.unknown:
		return g, refused("the token is signed by a key that the issuer does not list")
	case errors.As(err, &expired):
		return g, refused("the token expired at %s", expired.Expiry.UTC().Format(time.RFC3339))
	case err != nil:
		return g, refused("the token is not valid: %s", strings.TrimPrefix(err.Error(), "oidc: "))
	case verified.Subject == "" || len(verified.Subject) > maxSubject:
		return g, refused("the token's subject (sub) has %d bytes; want 1 to %d", len(verified.Subject), maxSubject)
	}
	var claims map[string]json.RawMessage
	if err := verified.Claims(&claims); err != nil {
		return g, refused("the token's claims cannot be read: %v", err)
	}
	g, looked, ok := v.o.Grants.Grant(claims)
	if len(looked) == 0 {
		return g, connect.NewError(connect.CodePermissionDenied,
			errors.New("no token of the issuer may do anything: the file of grants has no lines"))
	}
	if !ok {
		return g, connect.NewError(connect.CodePermissionDenied,
			fmt.Errorf("no line of the grants matches the token; they ask for the claims: %s", strings.Join(looked, ", ")))
	}
	g.Name, g.Expires = "of "+verified.Subject, verified.Expiry
	return g, nil
}

func refused(format string, args ...any) error {
	return connect.NewError(connect.CodeUnauthenticated, fmt.Errorf(format, args...))
}
