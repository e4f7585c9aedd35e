package testenv

import "net/http"

// Bearer is a transport that sends a token with each request. Safe for concurrent use.
type Bearer struct {
	Next  http.RoundTripper
	Token string // none is sent if it is empty
}

// RoundTrip implements http.RoundTripper.
func (b Bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	if b.Token != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+b.Token)
	}
	return b.Next.RoundTrip(r)
}
