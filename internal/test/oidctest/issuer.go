// Package oidctest has an issuer of OpenID Connect for tests.
package oidctest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-jose/go-jose/v4"
)

// Issuer serves a discovery document and keys over HTTPS until the test ends. Safe for
// concurrent use.
type Issuer struct {
	// URL is the issuer's name and address.
	URL string
	// Roots trust its certificate; CA is their file.
	Roots *x509.CertPool
	CA    string

	t        testing.TB
	instead  atomic.Pointer[http.HandlerFunc]
	document atomic.Int64
	fetched  atomic.Int64

	mu   sync.Mutex
	keys []jose.JSONWebKey
	uri  string
}

// New returns an issuer without keys.
func New(t testing.TB) *Issuer {
	t.Helper()
	i := &Issuer{t: t}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		i.document.Add(1)
		i.mu.Lock()
		defer i.mu.Unlock()
		i.write(w, map[string]any{"issuer": i.URL, "jwks_uri": i.uri})
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		i.fetched.Add(1)
		i.mu.Lock()
		defer i.mu.Unlock()
		i.write(w, jose.JSONWebKeySet{Keys: i.keys})
	})
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f := i.instead.Load(); f != nil {
			(*f)(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	i.URL, i.uri = s.URL, s.URL+"/keys"
	i.Roots = x509.NewCertPool()
	i.Roots.AddCert(s.Certificate())
	i.CA = filepath.Join(t.TempDir(), "ca")
	if err := os.WriteFile(i.CA, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return i
}

func (i *Issuer) write(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(v); err != nil {
		i.t.Error(err)
	}
}

// Instead answers all requests; nil lets the issuer answer again.
func (i *Issuer) Instead(f http.HandlerFunc) {
	if f == nil {
		i.instead.Store(nil)
		return
	}
	i.instead.Store(&f)
}

// Fetches returns how often the keys were read.
func (i *Issuer) Fetches() int { return int(i.fetched.Load()) }

// Asked returns how often the discovery document was read.
func (i *Issuer) Asked() int { return int(i.document.Load()) }

// SetKeys replaces the keys that the issuer lists.
func (i *Issuer) SetKeys(keys ...jose.JSONWebKey) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keys = keys
}

// SetKeysURL replaces the address of the keys in the discovery document.
func (i *Issuer) SetKeysURL(address string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.uri = address
}

// Key is a key that signs.
type Key struct {
	ID        string
	Algorithm jose.SignatureAlgorithm
	Private   crypto.Signer
}

// NewKey returns a key for ES256.
func NewKey(t testing.TB, id string) Key {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return Key{id, jose.ES256, private}
}

// Public is the key as an issuer lists it.
func (k Key) Public() jose.JSONWebKey {
	return jose.JSONWebKey{Key: k.Private.Public(), KeyID: k.ID, Algorithm: string(k.Algorithm), Use: "sig"}
}

// Sign returns a token with claims, and with more fields in its header.
func (k Key) Sign(t testing.TB, claims, header map[string]any) string {
	t.Helper()
	return Sign(t, jose.SigningKey{Algorithm: k.Algorithm, Key: jose.JSONWebKey{Key: k.Private, KeyID: k.ID}}, claims, header)
}

// Sign returns a token that is signed with any key.
func Sign(t testing.TB, key jose.SigningKey, claims, header map[string]any) string {
	t.Helper()
	o := &jose.SignerOptions{}
	for name, value := range header {
		o.WithHeader(jose.HeaderKey(name), value)
	}
	signer, err := jose.NewSigner(key, o)
	if err != nil {
		t.Fatal(err)
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		t.Fatal(err)
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}
