package testenv

import (
	"context"
	"fmt"
	"io"
	"net/http"
)

// Answers returns nil if a GET of the URL returns status 200. Otherwise the error has
// the status and the beginning of the body.
func Answers(ctx context.Context, client *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if body, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10)); resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s: %s", url, resp.Status, body)
	}
	return nil
}

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
