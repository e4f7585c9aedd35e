package oidc

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"

	"github.com/fantasia-hpo/fantasia/telemetry"
)

// The bounds of what is asked of an issuer.
const (
	// pause is the least time between two fetches. Anybody can send a token that names a
	// key that is not known.
	pause = 10 * time.Second
	// maxAge is when known keys are read again, so that a key that the issuer takes back
	// is not accepted for longer.
	maxAge = 10 * time.Minute
	// maxAnswer bounds an answer in bytes, and maxKeys the keys in it.
	maxAnswer = 1 << 20
	maxKeys   = 100
	// maxRedirects bounds the redirects of a request.
	maxRedirects = 3
)

// problemKey is the context key of a *keyProblem. The library's error does not wrap that
// of the keys.
type problemKey struct{}

// keyProblem is why no key verified a token.
type keyProblem struct {
	unavailable error // the last fetch failed
	unknown     bool  // the issuer does not list the key
}

// keys are the keys of an issuer. It implements oidc.KeySet. Whoever needs a key that is
// not known fetches them, one at a time; the others wait.
type keys struct {
	client *http.Client
	o      Options

	fetching chan struct{} // has one element while nobody fetches

	mu      sync.Mutex
	all     []jose.JSONWebKey
	read    time.Time // when all was read
	asked   time.Time // when the last fetch began
	problem error     // of the last fetch
}

var _ oidc.KeySet = (*keys)(nil)

func newKeys(o Options) *keys {
	u, err := url.Parse(o.Issuer)
	client := http.Client{Transport: &bounded{
		next: &http.Transport{
			Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, ForceAttemptHTTP2: true,
			TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: o.Roots},
		},
		secure: err != nil || u.Scheme == "https",
	}}
	client.CheckRedirect = func(_ *http.Request, via []*http.Request) error {
		if len(via) > maxRedirects {
			return fmt.Errorf("more than %d redirects", maxRedirects)
		}
		return nil
	}
	k := &keys{client: &client, o: o, fetching: make(chan struct{}, 1)}
	k.fetching <- struct{}{}
	return k
}

// permitted are the algorithms for the library that verifies signatures.
var permitted = func() (all []jose.SignatureAlgorithm) {
	for _, a := range algorithms {
		all = append(all, jose.SignatureAlgorithm(a))
	}
	return all
}()

// VerifySignature implements oidc.KeySet. The caller has checked the algorithm.
func (k *keys) VerifySignature(ctx context.Context, token string) ([]byte, error) {
	jws, err := jose.ParseSignedCompact(token, permitted)
	if err != nil {
		return nil, err
	}
	header := jws.Signatures[0].Protected
	key, err := k.find(ctx, header.KeyID)
	if err != nil {
		return nil, err
	}
	if key.Algorithm != "" && key.Algorithm != header.Algorithm {
		return nil, fmt.Errorf("it is signed by %s, but its key is for %s", header.Algorithm, key.Algorithm)
	}
	return jws.Verify(key)
}

// find returns the key with an id. An empty id is the only key of an issuer that has one.
func (k *keys) find(ctx context.Context, id string) (*jose.JSONWebKey, error) {
	key, fresh, _ := k.known(id)
	if key != nil && fresh {
		return key, nil
	}
	if key == nil {
		select {
		case <-k.fetching:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	} else {
		select {
		case <-k.fetching:
		default:
			return key, nil // somebody else reads them again
		}
	}
	defer func() { k.fetching <- struct{}{} }()
	key, fresh, may := k.known(id) // somebody else may have read them meanwhile
	if may && (key == nil || !fresh) {
		k.fetch(ctx)
		key, _, _ = k.known(id)
	}
	if key != nil {
		return key, nil
	}
	return nil, k.explain(ctx)
}

// known returns the known key with an id, whether the keys are fresh, and whether they may
// be fetched now.
func (k *keys) known(id string) (key *jose.JSONWebKey, fresh, may bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.o.Now()
	fresh = !k.read.IsZero() && now.Sub(k.read) < maxAge
	may = k.asked.IsZero() || now.Sub(k.asked) >= pause
	for i := range k.all {
		if k.all[i].KeyID == id || id == "" && len(k.all) == 1 {
			return &k.all[i], fresh, may
		}
	}
	return nil, fresh, may
}

// explain notes in the context why a key was not found.
func (k *keys) explain(ctx context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	problem, _ := ctx.Value(problemKey{}).(*keyProblem)
	if problem != nil {
		problem.unavailable, problem.unknown = k.problem, k.problem == nil
	}
	if k.problem != nil {
		return k.problem
	}
	return errors.New("unknown key")
}

// fetch reads the issuer's keys. If that fails, the last ones stay. The caller MUST have
// taken the element of fetching.
func (k *keys) fetch(ctx context.Context) {
	begun := k.o.Now()
	// The others wait for it too, so it does not end with this caller's request.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), k.o.Timeout)
	defer cancel()
	all, err := k.get(ctx)
	k.mu.Lock()
	k.asked, k.problem = begun, err
	if err == nil {
		k.all, k.read = all, begun
	}
	k.mu.Unlock()
	if err != nil {
		k.o.Logger.WarnContext(ctx, "could not read the keys of the issuer of tokens; the last ones stay in force",
			"issuer", k.o.Issuer, telemetry.LogError, err)
	}
}

// get reads the issuer's keys.
func (k *keys) get(ctx context.Context) ([]jose.JSONWebKey, error) {
	at, err := k.place(ctx)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return nil, fmt.Errorf("the address of the keys is %q: %w", at, err)
	}
	answer, err := k.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("read the keys: %w", err)
	}
	defer func() { _ = answer.Body.Close() }() // it was read
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("read the keys: %s answered %s", at, answer.Status)
	}
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, fmt.Errorf("read the keys: %w", err)
	}
	return parseKeys(text)
}

// place returns the address of the keys.
func (k *keys) place(ctx context.Context) (string, error) {
	if k.o.Keys != "" {
		return k.o.Keys, nil
	}
	provider, err := oidc.NewProvider(oidc.ClientContext(ctx, k.client), k.o.Issuer)
	if err != nil {
		return "", fmt.Errorf("read the discovery document: %w", err)
	}
	var document struct {
		Keys string `json:"jwks_uri"`
	}
	if err := provider.Claims(&document); err != nil || document.Keys == "" {
		return "", errors.Join(errors.New("the discovery document has no jwks_uri"), err)
	}
	return document.Keys, nil
}

// parseKeys returns the keys of a JWK set that can verify signatures. As RFC 7517 (section
// 5) asks, it ignores others. It never returns a secret.
func parseKeys(text []byte) ([]jose.JSONWebKey, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(text, &set); err != nil {
		return nil, fmt.Errorf("the keys are no JWK set: %w", err)
	}
	if len(set.Keys) > maxKeys {
		return nil, fmt.Errorf("the issuer has %d keys; want at most %d", len(set.Keys), maxKeys)
	}
	var all []jose.JSONWebKey
	for _, one := range set.Keys {
		var key jose.JSONWebKey
		if json.Unmarshal(one, &key) == nil && key.Valid() && key.IsPublic() && (key.Use == "" || key.Use == "sig") {
			all = append(all, key)
		}
	}
	if len(all) == 0 {
		return nil, errors.New("the issuer has no public key for signatures")
	}
	return all, nil
}

// bounded bounds answers. It sends nothing unencrypted if it must be secure, also after a
// redirect.
type bounded struct {
	next   http.RoundTripper
	secure bool
}

// RoundTrip implements http.RoundTripper.
func (b *bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	if b.secure && r.URL.Scheme != "https" {
		return nil, fmt.Errorf("%s is not encrypted; want https://, as the issuer has", r.URL.Redacted())
	}
	answer, err := b.next.RoundTrip(r)
	if err == nil {
		answer.Body = http.MaxBytesReader(nil, answer.Body, maxAnswer)
	}
	return answer, err
}
