package dashboard

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"connectrpc.com/connect"

	"github.com/fantasia-hpo/fantasia/api/server"
)

// cookieName is the cookie that holds the token of who has logged in. Scripts cannot read
// it, and other sites cannot make a browser send it.
const cookieName = "fantasia_token"

// maxCookie bounds a token in bytes. Browsers do not keep cookies that, with their name and
// attributes, have more than 4096 (RFC 6265, section 6.1).
const maxCookie = 3900

// maxForm bounds the body of a form, in bytes.
const maxForm = 8 << 10

// headers adds the headers that every response has. Pages load nothing from elsewhere and
// have no script or style of their own, so text from a study or a log that were taken for
// markup could do nothing.
func headers(next http.Handler) http.Handler {
	const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
		"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// session is who asks.
type session struct {
	token string
	grant server.Grant
	// open means that no token is needed.
	open bool
}

// sessionKey is the context key of the session of a request that has passed authorized.
type sessionKey struct{}

// reader names who has sent an authorized request.
func reader(r *http.Request) string {
	s, _ := r.Context().Value(sessionKey{}).(session)
	return s.grant.Name
}

// find returns the session of a request; false if it has no valid token.
func (d *Dashboard) find(r *http.Request) (session, bool) {
	if d.o.Tokens == nil {
		return session{open: true}, true
	}
	c, err := r.Cookie(cookieName)
	if err != nil {
		return session{}, false
	}
	g, err := d.o.Tokens.Grant(r.Context(), c.Value)
	return session{token: c.Value, grant: g}, err == nil
}

// authorized passes on the requests of those who have logged in. Others are sent to the
// login page.
func (d *Dashboard) authorized(next func(http.ResponseWriter, *http.Request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s, ok := d.find(r)
		if !ok {
			if limited := server.Failed(r.Context()); limited != nil {
				d.refused.Log(r, limited)
				http.Error(w, "Too many requests without a valid token. Try again later.", http.StatusTooManyRequests)
				return
			}
			if r.Header.Get("Sec-Fetch-Mode") != "navigate" && r.Header.Get("Sec-Fetch-Mode") != "" {
				http.Error(w, "log in first", http.StatusUnauthorized) // the script of an open page
				return
			}
			http.Redirect(w, r, "/ui/login?"+url.Values{"next": {r.URL.RequestURI()}}.Encode(), http.StatusSeeOther)
			return
		}
		ctx := s.context(context.WithValue(r.Context(), sessionKey{}, s))
		if end := s.grant.Expires; !end.IsZero() { // also of the stream of an open page
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, end.Sub(d.o.Now()))
			defer cancel()
		}
		r = r.WithContext(ctx)
		err := d.allowed(r, s)
		if err == nil {
			err = next(w, r)
		}
		if err != nil {
			d.fail(w, r, err)
		}
	})
}

// context returns a context that holds what the session may read.
func (s session) context(ctx context.Context) context.Context {
	if s.open {
		return ctx
	}
	return server.WithGrant(ctx, s.grant)
}

// allowed returns the error with which to refuse a page of a study. Every handler below a study's
// path MUST be called only if it is nil.
func (d *Dashboard) allowed(r *http.Request, s session) error {
	study := r.PathValue("study")
	if s.open || study == "" {
		return nil
	}
	return server.Allowed(r.Context(), d.backend, study)
}

// loginData is what the login page shows.
type loginData struct {
	page
	Next, Problem string
	// Elsewhere means that a link on another site led here. Browsers then send no cookie,
	// even of someone who has logged in.
	Elsewhere bool
}

func (d *Dashboard) loginPage(w http.ResponseWriter, r *http.Request) {
	next := safeNext(r.FormValue("next"))
	if _, ok := d.find(r); ok {
		http.Redirect(w, r, next, http.StatusSeeOther)
		return
	}
	d.show(w, r, http.StatusOK, &loginData{page: page{Title: "Log in"}, Next: next, Elsewhere: r.Header.Get("Sec-Fetch-Site") == "cross-site"})
}

// login takes a token and sets the cookie.
func (d *Dashboard) login(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	next := safeNext(r.PostFormValue("next"))
	token := strings.TrimSpace(r.PostFormValue("token"))
	if d.o.Tokens == nil {
		http.Redirect(w, r, next, http.StatusSeeOther)
		return
	}
	if _, err := d.o.Tokens.Grant(r.Context(), token); err != nil {
		d.refuseLogin(w, r, next, token, err)
		return
	}
	if len(token) > maxCookie {
		d.show(w, r, http.StatusBadRequest, &loginData{page: page{Title: "Log in"}, Next: next,
			Problem: fmt.Sprintf("This token has %d characters. Browsers keep at most %d; ask for one with fewer claims.", len(token), maxCookie)})
		return
	}
	http.SetCookie(w, d.cookie(r, token, 0))
	http.Redirect(w, r, next, http.StatusSeeOther)
}

// refuseLogin shows the login page with what is wrong with a token.
func (d *Dashboard) refuseLogin(w http.ResponseWriter, r *http.Request, next, token string, err error) {
	d.refused.Log(r, err)
	status, problem := http.StatusUnauthorized, "This token is not known here."
	if e, ok := errors.AsType[*connect.Error](err); ok && server.Issued(token) {
		problem = "This token is not accepted: " + e.Message() + "."
	}
	switch {
	case connect.CodeOf(err) == connect.CodeUnavailable:
		status = http.StatusServiceUnavailable
	case server.Failed(r.Context()) != nil:
		status, problem = http.StatusTooManyRequests, "Too many logins from your address have failed. Try again later."
	}
	d.show(w, r, status, &loginData{page: page{Title: "Log in"}, Next: next, Problem: problem})
}

// logout removes the cookie.
func (d *Dashboard) logout(w http.ResponseWriter, r *http.Request) {
	http.SetCookie(w, d.cookie(r, "", -1))
	http.Redirect(w, r, "/ui/login", http.StatusSeeOther)
}

// cookie returns the cookie of a token; it ends with the browser's session.
func (d *Dashboard) cookie(r *http.Request, token string, age int) *http.Cookie {
	return &http.Cookie{
		Name: cookieName, Value: token, Path: Path, MaxAge: age,
		HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https"),
	}
}

// safeNext returns a path of the dashboard to go to after the login, never another site.
func safeNext(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.Host != "" || u.Scheme != "" || !strings.HasPrefix(u.Path, Path) || strings.Contains(next, "\\") {
		return Path
	}
	return u.RequestURI()
}
