package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/api/fantasia/v1/fantasiav1connect"
	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/coordinator/archive"
	"github.com/fantasia-hpo/fantasia/coordinator/quota"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/file"
	"github.com/fantasia-hpo/fantasia/telemetry"
)

// grantKey is the context key of the request's Grant.
type grantKey struct{}

// authorizer passes on only the requests that their bearers' tokens allow. A forwarded
// request carries its token, which the leader checks again.
type authorizer struct {
	next   http.Handler
	tokens Bearers
	quotas *Quotas
	now    func() time.Time
	logger *slog.Logger
	// refused and strangers log the requests with a token that does not allow them, and those
	// without a valid token.
	refused, strangers *telemetry.Refusals
}

func newAuthorizer(next http.Handler, o Options) *authorizer {
	return &authorizer{
		next: next, tokens: o.Tokens, quotas: o.Quotas, now: o.Now, logger: o.Logger,
		refused:   telemetry.NewRefusals(o.Logger, "refused a request", o.Now),
		strangers: telemetry.NewRefusals(o.Logger, "refused a request", o.Now),
	}
}

// ServeHTTP implements http.Handler.
func (g *authorizer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token, bearer := bearerToken(r.Header)
	if !bearer {
		g.refuse(w, r, connect.NewError(connect.CodeUnauthenticated, errors.New("a token is required (Authorization: Bearer …)")))
		return
	}
	grant, err := g.tokens.Grant(r.Context(), token)
	if err != nil {
		g.refuse(w, r, err)
		return
	}
	if !grant.Write && !procedures[r.URL.Path].readOnly {
		g.refuse(w, r, connect.NewError(connect.CodePermissionDenied, fmt.Errorf("the token %s may only read", grant.Name)))
		return
	}
	ctx := quota.With(WithGrant(r.Context(), grant), g.quotas.shares(&grant))
	if !grant.Expires.IsZero() && procedures[r.URL.Path].streams {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, grant.Expires.Sub(g.now()), errExpired)
		defer cancel()
	}
	g.next.ServeHTTP(w, r.WithContext(ctx))
}

// bearerToken returns the token of an Authorization header (RFC 6750, section 2.1).
func bearerToken(h http.Header) (string, bool) {
	scheme, token, ok := strings.Cut(h.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	return token, ok && strings.EqualFold(scheme, "Bearer") && token != ""
}

func (g *authorizer) refuse(w http.ResponseWriter, r *http.Request, err error) {
	text := message(err)
	status, log := http.StatusForbidden, g.refused
	switch connect.CodeOf(err) {
	case connect.CodeUnauthenticated:
		log = g.strangers
		if limited := Failed(r.Context()); limited != nil {
			log.Log(r, errors.New(message(limited)))
			tooMany(w, r, g.logger, limited)
			return
		}
		status = http.StatusUnauthorized
		w.Header().Set("WWW-Authenticate", "Bearer")
	case connect.CodeUnavailable:
		status = http.StatusServiceUnavailable
	}
	log.Log(r, errors.New(text))
	refuse(w, r, g.logger, err, status, text)
}

// Restrict returns a reader whose lists have only what the grant of the request's context covers
// (see WithGrant), and nothing without a grant. Whoever reads a single study from it MUST ask
// Allowed first.
func Restrict(r Reader) Reader { return restricted{r, r} }

// restricted is the result of Restrict. It does not embed the Lists, so that a new one does not
// compile before it is limited here.
type restricted struct {
	StudyReader
	all Lists
}

// WithGrant returns a context whose requests to a restricted reader have a grant.
func WithGrant(ctx context.Context, g Grant) context.Context {
	return context.WithValue(ctx, grantKey{}, g)
}

// granted returns the request's grant. If the request has not passed an authorizer, the
// grant covers nothing.
func granted(ctx context.Context) Grant {
	g, ok := ctx.Value(grantKey{}).(Grant)
	if !ok {
		return Grant{Prefixes: []string{"\x00"}} // no study's name begins with it
	}
	return g
}

// Allowed returns an error that wraps study.ErrNotFound unless the grant of the request's context
// covers the study with a name or an id. It reads nothing if the grant covers all.
func Allowed(ctx context.Context, r StudyReader, nameOrID string) error {
	if len(granted(ctx).Prefixes) == 0 {
		return nil
	}
	_, err := covered(ctx, r, nameOrID)
	return err
}

// covered returns the name of a study that the grant covers.
func covered(ctx context.Context, r StudyReader, nameOrID string) (string, error) {
	name, err := r.Name(ctx, nameOrID)
	if err == nil && !granted(ctx).Covers(name) {
		return "", fmt.Errorf("study %q: %w", nameOrID, study.ErrNotFound)
	}
	return name, err
}

// listed are the calls that are about no single study. What they show comes from the Lists of a
// restricted reader, or from the caller's own grant.
var listed = map[string]bool{
	fantasiav1connect.StudyServiceListStudiesProcedure:         true,
	fantasiav1connect.StudyServiceListArchivedStudiesProcedure: true,
	fantasiav1connect.StudyServiceListWorkersProcedure:         true,
	fantasiav1connect.StudyServiceListQuotasProcedure:          true,
}

// mayCall is the one place that decides whether a token allows a call. It returns the check of a
// request, which is about the study that its name or its parent says. A token that is limited to some
// studies is refused a call of which that cannot be said, so a new call is closed until it has a
// row in listed or a case in aboutStudy.
func mayCall(r Reader) check {
	return func(ctx context.Context, procedure string, request any) error {
		g, writes := granted(ctx), !procedures[procedure].readOnly
		limited := len(g.Prefixes) > 0
		if writes {
			limited = limited || !g.Write || len(g.WritePrefixes) > 0
		}
		if !limited || listed[procedure] && !writes {
			return nil
		}
		name, err := aboutStudy(ctx, r, request)
		if err != nil || !writes {
			return err
		}
		return g.change(name)
	}
}

// aboutStudy returns the name of the study that a request is about, if the grant covers it. A study's
// name cannot be changed.
func aboutStudy(ctx context.Context, r Reader, request any) (string, error) {
	var resource string
	switch m := request.(type) {
	case *fantasiav1.CreateStudyRequest:
		s, err := file.Parse([]byte(m.GetStudyFile()))
		if err != nil {
			return "", err
		}
		for _, e := range s.Spec.LearnFrom {
			if e.Trials == nil { // the study's trials are read
				if _, err := covered(ctx, r, e.Study); err != nil {
					return "", err
				}
			}
		}
		return s.Metadata.Name, nil
	case *fantasiav1.UnarchiveStudyRequest:
		nameOrID := studyOf(m.GetName())
		all, err := Restrict(r).Archived(ctx)
		if err != nil {
			return "", err
		}
		at := slices.IndexFunc(all, func(a archive.Entry) bool { return a.ID == nameOrID || a.Name == nameOrID })
		if at < 0 {
			return "", fmt.Errorf("%w: study %q is not in the archive", study.ErrNotFound, nameOrID)
		}
		return all[at].Name, nil
	case interface{ GetParent() string }:
		resource = m.GetParent()
	case interface{ GetName() string }:
		resource = m.GetName()
	}
	of, ok := strings.CutPrefix(resource, studiesPrefix)
	if !ok {
		return "", connect.NewError(connect.CodePermissionDenied,
			fmt.Errorf("the token %s is limited to some studies, and this call is about none", granted(ctx).Name))
	}
	nameOrID, _, _ := strings.Cut(of, "/")
	return covered(ctx, r, nameOrID)
}

// change returns an error if the grant does not allow to change the study with a name.
func (g Grant) change(study string) error {
	if g.Changes(study) {
		return nil
	}
	prefixes := g.Prefixes
	if len(g.WritePrefixes) > 0 {
		prefixes = g.WritePrefixes
	}
	return connect.NewError(connect.CodePermissionDenied,
		fmt.Errorf("study %q: the token %s only allows to change studies whose names begin with %s", study, g.Name,
			strings.Join(prefixes, " or ")))
}

// Used implements Lists. Whoever asks says whose shares may be shown.
func (r restricted) Used(ctx context.Context, shares []quota.Share) ([]quota.Use, error) {
	return r.all.Used(ctx, shares)
}

// Workers implements Lists. It leaves out what workers run of other studies.
func (r restricted) Workers(ctx context.Context) ([]coordinator.Worker, error) {
	all, err := r.all.Workers(ctx)
	if err != nil || len(granted(ctx).Prefixes) == 0 {
		return all, err
	}
	seen := map[string]bool{}
	shown := make([]coordinator.Worker, len(all))
	for i, w := range all {
		running, causes := w.Heartbeat.Running, w.Heartbeat.Causes()
		w.Heartbeat.Running = nil
		for _, a := range running {
			known, asked := seen[a.Study]
			if !asked {
				switch err := Allowed(ctx, r, a.Study); {
				case err == nil:
					known = true
				case !errors.Is(err, study.ErrNotFound):
					return nil, err
				}
				seen[a.Study] = known
			}
			if known {
				w.Heartbeat.Running = append(w.Heartbeat.Running, a)
			}
		}
		w.Heartbeat.SetWaiting(causes)
		shown[i] = w
	}
	return shown, nil
}

// Studies implements Lists.
func (r restricted) Studies(ctx context.Context, after string, limit int) ([]Study, error) {
	g := granted(ctx)
	if len(g.Prefixes) == 0 {
		return r.all.Studies(ctx, after, limit)
	}
	var found []Study
	for _, prefix := range slices.Sorted(slices.Values(g.Prefixes)) {
		page, err := r.all.Studies(ctx, max(after, before(prefix)), limit-len(found))
		if err != nil {
			return nil, err
		}
		for _, s := range page {
			if !strings.HasPrefix(s.Spec.Definition.Metadata.Name, prefix) {
				break
			}
			after = s.Spec.Definition.Metadata.Name
			found = append(found, s)
		}
		if len(found) == limit {
			break
		}
	}
	return found, nil
}

// before returns a text that is less than every name with a prefix, and greater than every
// name that is less than these: names have no bytes above 0x7e.
func before(prefix string) string {
	last := len(prefix) - 1
	return prefix[:last] + string([]byte{prefix[last] - 1, 0xff})
}

// Archived implements Lists.
func (r restricted) Archived(ctx context.Context) ([]archive.Entry, error) {
	all, err := r.all.Archived(ctx)
	return slices.DeleteFunc(all, func(a archive.Entry) bool { return !granted(ctx).Covers(a.Name) }), err
}
