package dashboard_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/fantasia-hpo/fantasia/api/server"
	"github.com/fantasia-hpo/fantasia/internal/show/dashboard"
)

func trialLink(n int) string { return fmt.Sprintf("/ui/studies/digits/trials/%d", n) }

// tokenFile has a line for each name; a token is its name with -secret.
func tokenFile(lines ...string) string {
	var b strings.Builder
	for _, line := range lines {
		name, rest, _ := strings.Cut(line, " ")
		sum := sha256.Sum256([]byte(name + "-secret"))
		fmt.Fprintln(&b, name, hex.EncodeToString(sum[:]), rest)
	}
	return b.String()
}

// login logs in by the form.
func (s *site) login(t *testing.T, token, next string, change func(*http.Request)) (*reply, string) {
	t.Helper()
	return s.ask(t, http.MethodPost, "/ui/login", func(r *http.Request) {
		form := url.Values{"token": {token}, "next": {next}}.Encode()
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(form)), int64(len(form))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if change != nil {
			change(r)
		}
	})
}

func TestLogin(t *testing.T) {
	s := serve(t, after(190), tokenFile("ann write", "bob read team-"))
	create(t, s.Backend, "digits", 20, 0)
	resp, _ := s.ask(t, http.MethodGet, "/ui/studies/digits?top=3", nil)
	if to := resp.Header.Get("Location"); resp.StatusCode != http.StatusSeeOther || to != "/ui/login?next=%2Fui%2Fstudies%2Fdigits%3Ftop%3D3" {
		t.Errorf("without a token: %s to %q", resp.Status, to)
	}
	script := func(r *http.Request) { r.Header.Set("Sec-Fetch-Mode", "cors") }
	if resp, _ := s.ask(t, http.MethodGet, "/ui/studies/digits", script); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("the script of a page, without a token: %s", resp.Status)
	}
	if resp, body := s.login(t, "wrong", "/ui/", nil); resp.StatusCode != http.StatusUnauthorized || len(resp.Cookies) > 0 ||
		strings.Contains(body, "wrong") {
		t.Errorf("a wrong token: %s %v\n%s", resp.Status, resp.Cookies, body)
	}
	if resp, _ := s.login(t, strings.Repeat("x", 9<<10), "/ui/", nil); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("a long form: %s", resp.Status)
	}
	resp, _ = s.login(t, " ann-secret\n", "/ui/studies/digits", nil)
	if resp.StatusCode != http.StatusSeeOther || resp.Header.Get("Location") != "/ui/studies/digits" || len(resp.Cookies) != 1 {
		t.Fatalf("login: %s to %s, cookies %v", resp.Status, resp.Header.Get("Location"), resp.Cookies)
	}
	c := resp.Cookies[0]
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != dashboard.Path || c.Secure || c.MaxAge != 0 || c.Domain != "" {
		t.Errorf("cookie: %v", c)
	}
	secure, _ := s.login(t, "ann-secret", "", func(r *http.Request) { r.Header.Set("X-Forwarded-Proto", "https") })
	if c := secure.Cookies; len(c) != 1 || !c[0].Secure {
		t.Errorf("cookie behind a proxy with TLS: %v", c)
	}
	if resp, body := s.ask(t, http.MethodGet, "/ui/studies/digits", func(r *http.Request) {
		r.AddCookie(c)
	}); resp.StatusCode != http.StatusOK || strings.Contains(body, "ann-secret") || !strings.Contains(body, "ann") {
		t.Errorf("with the cookie: %s", resp.Status)
	}
	out, _ := s.ask(t, http.MethodPost, "/ui/logout", func(r *http.Request) { r.AddCookie(c) })
	if c := out.Cookies; len(c) != 1 || c[0].MaxAge >= 0 || c[0].Value != "" {
		t.Errorf("logout: %s %v", out.Status, c)
	}
}

// issued knows tokens as an identity provider makes them.
type issued map[string]func() (server.Grant, error)

func (i issued) Grant(_ context.Context, token string) (server.Grant, error) {
	if f, ok := i[token]; ok {
		return f()
	}
	return server.Grant{}, connect.NewError(connect.CodeUnauthenticated, errors.New("unknown token"))
}

// A token of an identity provider logs in if a cookie can hold it, the page says why it is
// refused, and its pages' streams end with it.
func TestIssuedTokens(t *testing.T) {
	now := after(190)
	refuses := func(code connect.Code, text string) func() (server.Grant, error) {
		return func() (server.Grant, error) { return server.Grant{}, connect.NewError(code, errors.New(text)) }
	}
	ends := func() (server.Grant, error) {
		return server.Grant{Name: "of ann", Expires: now.Add(200 * time.Millisecond)}, nil
	}
	long := strings.Repeat("a", 4000) + ".b.c"
	s := serveTo(t, now, issued{
		"good.b.c": ends, long: ends, "late.b.c": refuses(connect.CodeUnauthenticated, "the token expired"),
		"denied.b.c": refuses(connect.CodePermissionDenied, "no line matches"),
		"away.b.c":   refuses(connect.CodeUnavailable, "cannot be checked now"),
	})
	create(t, s.Backend, "digits", 20, 1)
	for token, want := range map[string]struct {
		status int
		text   string
	}{
		"late.b.c": {http.StatusUnauthorized, "the token expired"}, "denied.b.c": {http.StatusUnauthorized, "no line matches"},
		"away.b.c": {http.StatusServiceUnavailable, "cannot be checked now"}, long: {http.StatusBadRequest, "fewer claims"},
		"x.b.c": {http.StatusUnauthorized, "unknown token"},
	} {
		if resp, body := s.login(t, token, "/ui/", nil); resp.StatusCode != want.status || len(resp.Cookies) > 0 ||
			!strings.Contains(body, want.text) {
			t.Errorf("%.10s: %s, cookies %v, want %d with %q", token, resp.Status, resp.Cookies, want.status, want.text)
		}
	}
	resp, _ := s.login(t, "good.b.c", "/ui/studies/digits", nil)
	if resp.StatusCode != http.StatusSeeOther || len(resp.Cookies) != 1 {
		t.Fatalf("login: %s, cookies %v", resp.Status, resp.Cookies)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/ui/studies/digits/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.AddCookie(resp.Cookies[0])
	stream, err := s.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(stream.Body) // until the token ends
	if stream.StatusCode != http.StatusOK || err != nil {
		t.Errorf("the stream: %s, %q, %v", stream.Status, text, err)
	}
	if err := stream.Body.Close(); err != nil {
		t.Error(err)
	}
}

// Pictures are given to the API's tokens, and to those who have logged in.
func TestPicturesNeedAToken(t *testing.T) {
	s := serve(t, after(190), tokenFile("ann read", "bob read team-"))
	create(t, s.Backend, "digits", 20, 0)
	for header, want := range map[string]int{"": http.StatusUnauthorized, "Bearer other": http.StatusUnauthorized,
		"Bearer ann-secret": http.StatusOK, "Bearer bob-secret": http.StatusNotFound} {
		resp, body := s.ask(t, http.MethodGet, "/ui/studies/digits/pictures/history", func(r *http.Request) {
			if header != "" {
				r.Header.Set("Authorization", header)
			}
		})
		if resp.StatusCode != want || (want == http.StatusUnauthorized) != strings.Contains(body, `"unauthenticated"`) {
			t.Errorf("%q: %s, want %d: %.200s", header, resp.Status, want, body)
		}
	}
}

// A login leads to no other site, and no other site logs anybody in or out.
func TestOtherSites(t *testing.T) {
	s := serve(t, after(0), tokenFile("ann write"))
	for _, next := range []string{"https://evil.example/ui/", "//evil.example/ui/", `/\evil.example/ui/`, `/ui/\..\evil`,
		"javascript:alert(1)", "/other", "%zz", ""} {
		if resp, _ := s.login(t, "ann-secret", next, nil); resp.Header.Get("Location") != "/ui/" {
			t.Errorf("next %q: %s to %q", next, resp.Status, resp.Header.Get("Location"))
		}
	}
	foreign := func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }
	if resp, _ := s.login(t, "ann-secret", "/ui/", foreign); resp.StatusCode != http.StatusForbidden || len(resp.Cookies) > 0 {
		t.Errorf("login from another site: %s", resp.Status)
	}
	if resp, _ := s.ask(t, http.MethodPost, "/ui/logout", foreign); resp.StatusCode != http.StatusForbidden {
		t.Errorf("logout from another site: %s", resp.Status)
	}
}

// A token that is limited to a prefix shows no other studies: neither their names in the
// list or beside workers, nor their pages.
func TestPrefix(t *testing.T) {
	s := serve(t, after(190), tokenFile("ann write", "bob read team-"))
	create(t, s.Backend, "digits", 20, 1)
	create(t, s.Backend, "team-a", 20, 1)
	hidden, err := s.Study(t.Context(), "digits")
	if err != nil {
		t.Fatal(err)
	}
	workers(s.Backend, hidden.Spec.ID)
	as := func(name string) func(*http.Request) {
		return func(r *http.Request) { r.AddCookie(&http.Cookie{Name: "fantasia_token", Value: name + "-secret"}) }
	}
	for _, path := range []string{"/ui/", "/ui/workers"} {
		if resp, body := s.ask(t, http.MethodGet, path, as("bob")); resp.StatusCode != http.StatusOK || strings.Contains(body, "digits") {
			t.Errorf("%s shows the other study: %s\n%s", path, resp.Status, body)
		}
		if _, body := s.ask(t, http.MethodGet, path, as("ann")); !strings.Contains(body, "digits") {
			t.Errorf("%s does not show the study to ann", path)
		}
	}
	for _, study := range []string{"digits", hidden.Spec.ID} {
		for _, rest := range []string{"", "/insights", "/diagnostics", "/health", "/events", "/trials/3", "/trials/3/log", "/pictures/history"} {
			path := "/ui/studies/" + study + rest
			if resp, body := s.ask(t, http.MethodGet, path, as("bob")); resp.StatusCode != http.StatusNotFound {
				t.Errorf("%s: %s\n%s", path, resp.Status, body)
			}
		}
	}
	if resp, _ := s.ask(t, http.MethodGet, "/ui/studies/team-a/trials/3", as("bob")); resp.StatusCode != http.StatusOK {
		t.Errorf("bob's own study: %s", resp.Status)
	}
}

// An address with many failed logins is told to stop, and its log has a line a second. Those who
// know a token still log in.
func TestFailedLoginsAreBounded(t *testing.T) {
	all := serve(t, after(190), tokenFile("ann write"))
	addresses := server.NewAddresses(server.AddressLimits{Failures: 1e-9, FailureBurst: 3, Pause: time.Nanosecond},
		slog.New(slog.DiscardHandler), time.Now)
	front := httptest.NewServer(addresses.Limit(all.Config.Handler))
	t.Cleanup(front.Close)
	s := &site{all.Backend, front, nil}
	for i, want := range []int{401, 401, 401, 429, 429} {
		if resp, body := s.login(t, "wrong", "/ui/", nil); resp.StatusCode != want || want == 429 && !strings.Contains(body, "Too many logins") {
			t.Errorf("failed login %d: %s, want %d", i+1, resp.Status, want)
		}
	}
	if resp, _ := s.ask(t, http.MethodGet, "/ui/", nil); resp.StatusCode != http.StatusTooManyRequests {
		t.Errorf("a page without a token: %s, want 429", resp.Status)
	}
	resp, _ := s.login(t, "ann-secret", "/ui/", nil)
	if resp.StatusCode != http.StatusSeeOther || len(resp.Cookies) != 1 {
		t.Fatalf("a login with a valid token: %s, want that it succeeds", resp.Status)
	}
	if resp, _ := s.ask(t, http.MethodGet, "/ui/", func(r *http.Request) { r.AddCookie(resp.Cookies[0]) }); resp.StatusCode != http.StatusOK {
		t.Errorf("a page with a valid token: %s", resp.Status)
	}
}
