package oidc_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/go-jose/go-jose/v4"
	"go.uber.org/goleak"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/api/fantasia/v1/fantasiav1connect"
	"github.com/fantasia-hpo/fantasia/api/oidc"
	"github.com/fantasia-hpo/fantasia/api/server"
	"github.com/fantasia-hpo/fantasia/internal/test/oidctest"
	"github.com/fantasia-hpo/fantasia/internal/test/servertest"
	"github.com/fantasia-hpo/fantasia/internal/test/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// epoch is when the clock of a fixture starts.
var epoch = time.Unix(1_800_000_000, 0)

// fixture is a verifier of an issuer's tokens, with a clock of its own.
type fixture struct {
	*oidctest.Issuer
	t       *testing.T
	key     oidctest.Key
	passed  atomic.Int64 // since epoch
	grants  string
	options oidc.Options
}

func newFixture(t *testing.T, lines ...string) *fixture {
	t.Helper()
	f := &fixture{Issuer: oidctest.New(t), t: t, key: oidctest.NewKey(t, "one"), grants: filepath.Join(t.TempDir(), "grants")}
	f.SetKeys(f.key.Public())
	if len(lines) == 0 {
		lines = []string{"sub=alice write"}
	}
	f.options = oidc.Options{
		Issuer: f.URL, Audience: "fantasia", Grants: grants(t, f.grants, lines...), Roots: f.Roots, Now: f.now,
	}
	return f
}

func grants(t *testing.T, file string, lines ...string) *server.ClaimGrants {
	t.Helper()
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	g, err := server.ReadClaimGrants(file, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func (f *fixture) now() time.Time          { return epoch.Add(time.Duration(f.passed.Load())) }
func (f *fixture) advance(d time.Duration) { f.passed.Add(int64(d)) }

func (f *fixture) verifier() *oidc.Verifier {
	f.t.Helper()
	v, err := oidc.New(f.options)
	if err != nil {
		f.t.Fatal(err)
	}
	return v
}

// claims returns those of a valid token of alice, changed; a nil removes one.
func (f *fixture) claims(changes map[string]any) map[string]any {
	c := map[string]any{"iss": f.URL, "aud": "fantasia", "sub": "alice", "iat": f.now().Unix(), "exp": f.now().Add(time.Hour).Unix()}
	maps.Copy(c, changes)
	maps.DeleteFunc(c, func(_ string, v any) bool { return v == nil })
	return c
}

func (f *fixture) token(changes map[string]any) string {
	return f.key.Sign(f.t, f.claims(changes), nil)
}

func wantCode(t *testing.T, err error, want connect.Code, text, doing string) {
	t.Helper()
	if err == nil || connect.CodeOf(err) != want || !strings.Contains(err.Error(), text) {
		t.Errorf("%s: %v, want %v with %q", doing, err, want, text)
	}
}

func TestAcceptedTokens(t *testing.T) {
	f := newFixture(t)
	v := f.verifier()
	if f.Asked() != 0 {
		t.Error("the issuer was asked before there was a token")
	}
	for name, changes := range map[string]map[string]any{
		"plain": {}, "several audiences": {"aud": []string{"other", "fantasia"}},
		"a clock that is two minutes ahead": {"nbf": f.now().Add(2 * time.Minute).Unix()},
	} {
		g, err := v.Grant(t.Context(), f.token(changes))
		if err != nil || !g.Write || len(g.Prefixes) > 0 || g.Name != "of alice" || !g.Expires.Equal(f.now().Add(time.Hour)) {
			t.Errorf("%s: %+v, %v", name, g, err)
		}
	}
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	_, edKey, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range []oidctest.Key{{ID: "rsa", Algorithm: jose.RS256, Private: rsaKey}, {ID: "pss", Algorithm: jose.PS512, Private: rsaKey},
		{ID: "ed", Algorithm: jose.EdDSA, Private: edKey}} {
		f.SetKeys(k.Public(), f.key.Public())
		if _, err := f.verifier().Grant(t.Context(), k.Sign(t, f.claims(nil), nil)); err != nil {
			t.Errorf("%s: %v", k.Algorithm, err)
		}
	}
	f.SetKeys(f.key.Public())
	if _, err := f.verifier().Grant(t.Context(),
		oidctest.Key{Algorithm: jose.ES256, Private: f.key.Private}.Sign(t, f.claims(nil), nil)); err != nil {
		t.Errorf("the only key, without an id: %v", err)
	}
}

// Every token that the issuer has not signed for this API and for now is refused, and so is
// each token with one character changed.
func TestForgedTokensAreRefused(t *testing.T) {
	f := newFixture(t)
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	listed, other := oidctest.Key{ID: "rsa", Algorithm: jose.RS256, Private: rsaKey}, oidctest.NewKey(t, "one")
	encrypts := oidctest.NewKey(t, "encrypts")
	forEncryption := encrypts.Public()
	forEncryption.Use = "enc"
	f.SetKeys(f.key.Public(), listed.Public(), forEncryption)
	v := f.verifier()
	if _, err := v.Grant(t.Context(), listed.Sign(t, f.claims(nil), nil)); err != nil {
		t.Fatal(err)
	}

	der, err := x509.MarshalPKIXPublicKey(rsaKey.Public())
	if err != nil {
		t.Fatal(err)
	}
	asJWK, err := listed.Public().MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	secret := func(key []byte) string {
		return oidctest.Sign(t, jose.SigningKey{Algorithm: jose.HS256, Key: jose.JSONWebKey{Key: key, KeyID: "rsa"}}, f.claims(nil), nil)
	}
	part := func(v any) string {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(text)
	}
	good := f.token(nil)
	parts := strings.Split(good, ".")
	otherPublic := other.Public()
	attacker := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("the attacker's server was asked")
	}))
	defer attacker.Close()
	for name, token := range map[string]string{
		"expired":                        f.token(map[string]any{"exp": f.now().Add(-time.Second).Unix()}),
		"without an end":                 f.token(map[string]any{"exp": nil}),
		"valid in ten minutes":           f.token(map[string]any{"nbf": f.now().Add(10 * time.Minute).Unix()}),
		"another audience":               f.token(map[string]any{"aud": "other"}),
		"an audience that begins alike":  f.token(map[string]any{"aud": "fantasia-2"}),
		"no audience":                    f.token(map[string]any{"aud": nil}),
		"another issuer":                 f.token(map[string]any{"iss": "https://issuer.example.com"}),
		"the issuer with a slash":        f.token(map[string]any{"iss": f.URL + "/"}),
		"no issuer":                      f.token(map[string]any{"iss": nil}),
		"no subject":                     f.token(map[string]any{"sub": nil}),
		"a long subject":                 f.token(map[string]any{"sub": strings.Repeat("a", 2000)}),
		"another key with the key's id":  other.Sign(t, f.claims(nil), nil),
		"its own key in the header":      other.Sign(t, f.claims(nil), map[string]any{"jwk": otherPublic}),
		"an address of keys":             other.Sign(t, f.claims(nil), map[string]any{"jku": attacker.URL, "x5u": attacker.URL}),
		"a key for encryption":           encrypts.Sign(t, f.claims(nil), nil),
		"no id where there are two keys": oidctest.Key{Algorithm: jose.ES256, Private: f.key.Private}.Sign(t, f.claims(nil), nil),
		"another algorithm of the key":   oidctest.Key{ID: "rsa", Algorithm: jose.PS256, Private: rsaKey}.Sign(t, f.claims(nil), nil),
		"unsigned":                       part(map[string]any{"alg": "none", "kid": "one"}) + "." + parts[1] + ".",
		"unsigned, in capitals":          part(map[string]any{"alg": "NONE", "kid": "one"}) + "." + parts[1] + ".",
		"unsigned, with a signature":     part(map[string]any{"alg": "none", "kid": "one"}) + "." + parts[1] + "." + parts[2],
		"without its signature":          parts[0] + "." + parts[1] + ".",
		"HS256 with the PEM":             secret(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})),
		"HS256 with the DER":             secret(der),
		"HS256 with the JWK":             secret(asJWK),
		"HS256 with the modulus":         secret(rsaKey.N.Bytes()),
		"other claims":                   parts[0] + "." + part(f.claims(map[string]any{"sub": "root"})) + "." + parts[2],
		"a token as JSON":                fmt.Sprintf(`{"payload":%q,"protected":%q,"signature":%q,"a":".."}`, parts[1], parts[0], parts[2]),
		"too long":                       f.token(map[string]any{"long": strings.Repeat("a", 20_000)}),
		"dots":                           "..",
		"a word":                         "token",
		"nothing":                        "",
	} {
		g, err := v.Grant(t.Context(), token)
		wantCode(t, err, connect.CodeUnauthenticated, "", name)
		if g.Write || g.Name != "" {
			t.Errorf("%s: got the grant %+v", name, g)
		}
	}
	// The last character of a part in base64 may have bits that mean nothing.
	for i := range len(good) - 1 {
		if good[i+1] == '.' {
			continue
		}
		for _, c := range []byte{'A', '_', '.'} {
			if good[i] == c || good[i] == '.' {
				continue
			}
			if _, err := v.Grant(t.Context(), good[:i]+string(c)+good[i+1:]); connect.CodeOf(err) != connect.CodeUnauthenticated {
				t.Fatalf("with %q at %d: %v, want it refused", c, i, err)
			}
		}
	}
}

// A token that matches no line is told which claims were looked at, and not their values.
func TestTokensWithoutAGrant(t *testing.T) {
	f := newFixture(t, "groups=secret-team write", "sub=bob read", "groups=other read")
	_, err := f.verifier().Grant(t.Context(), f.token(map[string]any{"groups": []string{"mine"}}))
	wantCode(t, err, connect.CodePermissionDenied, "groups, sub", "no line matches")
	for _, value := range []string{"secret-team", "bob", "other", "mine"} {
		if strings.Contains(err.Error(), value) {
			t.Errorf("%v names %q", err, value)
		}
	}
	f = newFixture(t, "# nobody yet")
	_, err = f.verifier().Grant(t.Context(), f.token(nil))
	wantCode(t, err, connect.CodePermissionDenied, "no lines", "an empty file")
}

// Each line of the grants counts as soon as the file has it.
func TestGrantsAreReadAgain(t *testing.T) {
	f := newFixture(t, "groups=ml read")
	v, token := f.verifier(), f.token(map[string]any{"groups": []string{"ml"}})
	for i, step := range []struct {
		text  string
		write bool
	}{{"groups=ml write team-", true}, {"broken", true}, {"groups=ml read", false}} {
		at := time.Now().Add(time.Duration(i+1) * time.Second)
		if err := os.WriteFile(f.grants, []byte(step.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(f.grants, at, at); err != nil {
			t.Fatal(err)
		}
		if g, err := v.Grant(t.Context(), token); err != nil || g.Write != step.write {
			t.Errorf("after %q: %+v, %v", step.text, g, err)
		}
	}
}

// The issuer's new key is accepted as soon as a token names it, and a key that it takes
// back is accepted for ten minutes at most.
func TestKeysRotate(t *testing.T) {
	f := newFixture(t)
	v, old := f.verifier(), f.token(nil)
	if _, err := v.Grant(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	next := oidctest.NewKey(t, "two")
	f.SetKeys(f.key.Public(), next.Public())
	f.advance(time.Minute)
	if _, err := v.Grant(t.Context(), next.Sign(t, f.claims(nil), nil)); err != nil {
		t.Errorf("a new key: %v", err)
	}
	f.SetKeys(next.Public())
	if _, err := v.Grant(t.Context(), old); err != nil {
		t.Errorf("a key that was known a moment ago: %v", err)
	}
	f.advance(10 * time.Minute)
	_, err := v.Grant(t.Context(), old)
	wantCode(t, err, connect.CodeUnauthenticated, "does not list", "a key that was taken back")
	if _, err := v.Grant(t.Context(), next.Sign(t, f.claims(nil), nil)); err != nil {
		t.Errorf("the key that is left: %v", err)
	}
}

// Tokens that name keys which do not exist make the coordinator ask the issuer once in ten
// seconds, also where many come at once; an issuer that fails is asked no more often.
func TestFetchesAreBounded(t *testing.T) {
	f := newFixture(t)
	v := f.verifier()
	unknown := oidctest.NewKey(t, "unknown").Sign(t, f.claims(nil), nil)
	flood := func() {
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() { _, _ = v.Grant(t.Context(), unknown) })
		}
		all.Wait()
	}
	flood()
	if f.Fetches() != 1 {
		t.Errorf("50 tokens with an unknown key: the keys were read %d times, want once", f.Fetches())
	}
	f.advance(9 * time.Second)
	flood()
	if f.Fetches() != 1 {
		t.Errorf("9 s later: the keys were read %d times, want once", f.Fetches())
	}
	f.advance(time.Second)
	flood()
	if f.Fetches() != 2 {
		t.Errorf("10 s later: the keys were read %d times, want twice", f.Fetches())
	}
	if _, err := v.Grant(t.Context(), f.token(nil)); err != nil || f.Fetches() != 2 {
		t.Errorf("a known key: %v after %d reads", err, f.Fetches())
	}
	var asked atomic.Int64
	f.Instead(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusInternalServerError)
	})
	f.advance(10 * time.Second)
	flood()
	if asked.Load() != 1 {
		t.Errorf("an issuer that fails was asked %d times, want once", asked.Load())
	}
}

// An issuer that is away at the start stops neither the coordinator nor hashed tokens, its
// tokens are accepted once it answers, and known keys stay when it goes away again.
func TestIssuerAway(t *testing.T) {
	f := newFixture(t)
	digest := sha256.Sum256([]byte("hashed"))
	file := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(file, []byte("me "+hex.EncodeToString(digest[:])+" write\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	hashed, err := server.ReadTokens(file, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	f.options.Next = hashed
	f.Instead(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	v := f.verifier()
	both := func(want connect.Code, doing string) {
		t.Helper()
		_, err := v.Grant(t.Context(), f.token(nil))
		if want == 0 && err != nil {
			t.Errorf("%s: %v", doing, err)
		} else if want != 0 {
			wantCode(t, err, want, "keys of its issuer "+f.options.Issuer+" cannot be read", doing)
		}
		if g, err := v.Grant(t.Context(), "hashed"); err != nil || g.Name != "me" {
			t.Errorf("%s: the hashed token: %+v, %v", doing, g, err)
		}
		_, err = v.Grant(t.Context(), "another")
		wantCode(t, err, connect.CodeUnauthenticated, "unknown token", doing)
	}
	both(connect.CodeUnavailable, "away at the start")
	f.Instead(nil)
	both(connect.CodeUnavailable, "a moment later")
	f.advance(10 * time.Second)
	both(0, "back")
	f.Instead(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	f.advance(time.Hour)
	both(0, "away again, with a known key")
	_, err = v.Grant(t.Context(), oidctest.NewKey(t, "two").Sign(t, f.claims(nil), nil))
	wantCode(t, err, connect.CodeUnavailable, "", "away again, with a new key")
	v = f.verifier()
	both(connect.CodeUnavailable, "after a restart")
	f.Instead(nil)
	v = f.verifier()
	both(0, "after another restart")
}

// While an issuer takes its time, tokens with a known key are accepted, and a caller that
// gives up does not wait.
func TestSlowIssuer(t *testing.T) {
	f := newFixture(t)
	f.options.Timeout = time.Minute
	v := f.verifier()
	if _, err := v.Grant(t.Context(), f.token(nil)); err != nil {
		t.Fatal(err)
	}
	came, answer := make(chan struct{}), make(chan struct{})
	f.Instead(func(w http.ResponseWriter, _ *http.Request) {
		close(came)
		<-answer
		w.WriteHeader(http.StatusBadGateway)
	})
	f.advance(30 * time.Minute) // the keys are old
	unknown := oidctest.NewKey(t, "two").Sign(t, f.claims(nil), nil)
	ended := make(chan error, 1)
	go func() {
		_, err := v.Grant(t.Context(), unknown)
		ended <- err
	}()
	<-came
	if _, err := v.Grant(t.Context(), f.token(nil)); err != nil {
		t.Errorf("a known key: %v", err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := v.Grant(cancelled, unknown)
	wantCode(t, err, connect.CodeCanceled, "", "a caller that is gone")
	close(answer)
	wantCode(t, <-ended, connect.CodeUnavailable, "", "a new key")
}

// An issuer that never answers holds a token up for the timeout only.
func TestHangingIssuer(t *testing.T) {
	f := newFixture(t)
	f.options.Timeout = 100 * time.Millisecond
	gone := make(chan struct{})
	f.Instead(func(_ http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		close(gone)
	})
	_, err := f.verifier().Grant(t.Context(), f.token(nil))
	wantCode(t, err, connect.CodeUnavailable, "", "a token")
	<-gone
}

// What an issuer answers is believed only if it is short, encrypted and its own, and never a
// secret.
func TestAnswersOfTheIssuer(t *testing.T) {
	plain := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the keys were read unencrypted") }))
	defer plain.Close()
	for name, change := range map[string]func(f *fixture){
		"keys that are not encrypted": func(f *fixture) { f.SetKeysURL(plain.URL) },
		"keys at no address":          func(f *fixture) { f.SetKeysURL("") },
		"keys in a file":              func(f *fixture) { f.SetKeysURL("file:///etc/passwd") },
		"a redirect to http": func(f *fixture) {
			f.Instead(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, plain.URL, http.StatusFound) })
		},
		"redirects without end": func(f *fixture) {
			f.Instead(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, f.URL+"/again", http.StatusFound) })
		},
		"another issuer's document": func(f *fixture) {
			f.Instead(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = fmt.Fprintf(w, `{"issuer": "https://issuer.example.com", "jwks_uri": "%s/keys"}`, f.URL)
			})
		},
		"a long document": func(f *fixture) {
			f.Instead(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/keys" {
					_ = json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{f.key.Public()}})
					return
				}
				_, _ = fmt.Fprintf(w, `%s{"issuer": %q, "jwks_uri": "%s/keys"}`, strings.Repeat(" ", 2<<20), f.URL, f.URL)
			})
		},
		"long keys": func(f *fixture) {
			f.Instead(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/keys" {
					_, _ = w.Write([]byte(strings.Repeat(" ", 2<<20)))
					_ = json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{f.key.Public()}})
					return
				}
				_, _ = fmt.Fprintf(w, `{"issuer": %q, "jwks_uri": "%s/keys"}`, f.URL, f.URL)
			})
		},
		"only a private key": func(f *fixture) { f.SetKeys(jose.JSONWebKey{Key: f.key.Private, KeyID: "one"}) },
		"no JSON": func(f *fixture) {
			f.Instead(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) })
		},
		"no keys":       func(f *fixture) { f.SetKeys() },
		"only a secret": func(f *fixture) { f.SetKeys(jose.JSONWebKey{Key: []byte("secret"), KeyID: "one"}) },
		"more keys than anybody has": func(f *fixture) {
			f.SetKeys(slices.Repeat([]jose.JSONWebKey{f.key.Public()}, 101)...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			change(f)
			_, err := f.verifier().Grant(t.Context(), f.token(nil))
			wantCode(t, err, connect.CodeUnavailable, "cannot be read", name)
		})
	}
	f := newFixture(t)
	f.options.Roots = x509.NewCertPool()
	_, err := f.verifier().Grant(t.Context(), f.token(nil))
	wantCode(t, err, connect.CodeUnavailable, "cannot be read", "a certificate of another authority")
	f = newFixture(t)
	f.SetKeys(jose.JSONWebKey{Key: []byte("secret"), KeyID: "secret"}, f.key.Public())
	if _, err := f.verifier().Grant(t.Context(), f.token(nil)); err != nil {
		t.Errorf("a key beside one that is not used: %v", err)
	}
}

// With the address of the keys, the discovery document is not asked for. The API server of a cluster
// may name an address there that its certificate does not have.
func TestKeysAtAnAddress(t *testing.T) {
	f := newFixture(t)
	f.SetKeysURL("https://127.0.0.1:1/keys")
	if _, err := f.verifier().Grant(t.Context(), f.token(nil)); connect.CodeOf(err) != connect.CodeUnavailable {
		t.Errorf("the document's address: %v", err)
	}
	before := f.Asked()
	f.options.Keys = f.URL + "/keys"
	if _, err := f.verifier().Grant(t.Context(), f.token(nil)); err != nil || f.Asked() != before {
		t.Errorf("%v; the document was read %d times", err, f.Asked()-before)
	}
	f.options.Keys = f.URL + "/none"
	if _, err := f.verifier().Grant(t.Context(), f.token(nil)); connect.CodeOf(err) != connect.CodeUnavailable {
		t.Errorf("an address without keys: %v", err)
	}
	for keys, says := range map[string]string{
		"http://127.0.0.1:1": "as the issuer has", "issuer.example.com/keys": "the URL of the keys",
		"https://a:b@issuer.example.com": "has a login",
	} {
		if _, err := oidc.New(oidc.Options{Issuer: "https://issuer.example.com", Audience: "a", Keys: keys}); err == nil ||
			!strings.Contains(err.Error(), says) {
			t.Errorf("keys at %q: %v, want an error with %q", keys, err, says)
		}
	}
}

func TestOptions(t *testing.T) {
	for issuer, ok := range map[string]bool{
		"https://issuer.example.com": true, "https://issuer.example.com/tenant/v2": true, "http://127.0.0.1:1": true, "http://localhost:1": true,
		"http://[::1]:1":            true,
		"http://issuer.example.com": false, "issuer.example.com": false, "": false, "https://": false, "ftp://localhost": false,
		"https://issuer.example.com?x=y": false, "https://issuer.example.com#x": false, "https://a:b@issuer.example.com": false,
	} {
		if _, err := oidc.New(oidc.Options{Issuer: issuer, Audience: "a"}); (err == nil) != ok {
			t.Errorf("the issuer %q: %v", issuer, err)
		}
	}
	if _, err := oidc.New(oidc.Options{Issuer: "https://issuer.example.com"}); err == nil || !strings.Contains(err.Error(), "audience") {
		t.Errorf("no audience: %v", err)
	}
}

const study = `apiVersion: fantasia.dev/v1
kind: Study
metadata: {name: NAME}
spec:
  objective: {metric: error, direction: minimize}
  parameters: [{name: lr, type: float, min: 1e-5, max: 1e-1, scale: log}]
  budget: {maxTrials: 64}
  trial: {command: [python, train.py, "${args}"]}
`

func named(name string) string { return strings.Replace(study, "NAME", name, 1) }

// serve serves the API with a verifier and returns a client that bears a token.
func (f *fixture) serve(b server.Backend, token string) fantasiav1connect.StudyServiceClient {
	f.t.Helper()
	path, handler, err := server.New(b, server.Options{Tokens: f.verifier(), Now: f.now})
	if err != nil {
		f.t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle(path, handler)
	s := httptest.NewServer(mux)
	f.t.Cleanup(s.Close)
	return fantasiav1connect.NewStudyServiceClient(&http.Client{Transport: testenv.Bearer{Next: s.Client().Transport, Token: token}}, s.URL)
}

// Through the API, a token that may read all and write some changes only these.
func TestAPI(t *testing.T) {
	f := newFixture(t, "sub=alice read", "groups=ml write ml-")
	b := servertest.New(t)
	if _, err := b.Create(t.Context(), []byte(named("other"))); err != nil {
		t.Fatal(err)
	}
	c := f.serve(b, f.token(map[string]any{"groups": []string{"ml"}}))
	if _, err := c.CreateStudy(t.Context(), connect.NewRequest(&fantasiav1.CreateStudyRequest{StudyFile: named("ml-1")})); err != nil {
		t.Error(err)
	}
	if _, err := c.GetStudy(t.Context(), connect.NewRequest(&fantasiav1.GetStudyRequest{Name: "studies/other"})); err != nil {
		t.Error(err)
	}
	_, err := c.CreateStudy(t.Context(), connect.NewRequest(&fantasiav1.CreateStudyRequest{StudyFile: named("x")}))
	wantCode(t, err, connect.CodePermissionDenied, "begin with ml-", "create another")
	_, err = c.StopStudy(t.Context(), connect.NewRequest(&fantasiav1.StopStudyRequest{Name: "studies/other"}))
	wantCode(t, err, connect.CodePermissionDenied, "begin with ml-", "stop another")
	for token, want := range map[string]connect.Code{
		f.token(map[string]any{"aud": "other"}): connect.CodeUnauthenticated,
		f.token(map[string]any{"sub": "bob"}):   connect.CodePermissionDenied,
	} {
		_, err = f.serve(b, token).ListStudies(t.Context(), connect.NewRequest(&fantasiav1.ListStudiesRequest{}))
		wantCode(t, err, want, "", "list")
	}
	f.Instead(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	_, err = f.serve(b, f.token(nil)).ListStudies(t.Context(), connect.NewRequest(&fantasiav1.ListStudiesRequest{}))
	wantCode(t, err, connect.CodeUnavailable, "", "list while the issuer is away")
}

// A watch ends when the token of its caller does.
func TestStreamsEndWithTheToken(t *testing.T) {
	f := newFixture(t)
	b := servertest.New(t)
	if _, err := b.Create(t.Context(), []byte(named("s"))); err != nil {
		t.Fatal(err)
	}
	token := f.token(nil)
	f.advance(time.Hour - 300*time.Millisecond)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	c := f.serve(b, token)
	watch, err := c.WatchStudy(ctx, connect.NewRequest(&fantasiav1.WatchStudyRequest{Name: "studies/s"}))
	if err != nil {
		t.Fatal(err)
	}
	if !watch.Receive() {
		t.Fatalf("the watch ended before the token: %v", watch.Err())
	}
	for watch.Receive() {
	}
	wantCode(t, watch.Err(), connect.CodeUnauthenticated, "the token has expired", "watch")
	if err := watch.Close(); err != nil {
		t.Error(err)
	}
	f.advance(time.Second)
	_, err = c.GetStudy(ctx, connect.NewRequest(&fantasiav1.GetStudyRequest{Name: "studies/s"}))
	wantCode(t, err, connect.CodeUnauthenticated, "the token expired at", "get")
}
