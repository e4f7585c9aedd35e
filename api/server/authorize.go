package server

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/coordinator/archive"
	"github.com/fantasia-hpo/fantasia/coordinator/curve"
	"github.com/fantasia-hpo/fantasia/coordinator/quota"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
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

// Restrict returns a reader that shows only the studies that the grant of the request's
// context covers (see WithGrant). For all others, and without a grant, its methods return
// study.ErrNotFound.
func Restrict(r Reader) Reader { return restricted{r} }

// restricted is the result of Restrict. It does not embed the reader, so that it must limit
// each new method.
type restricted struct{ reader Reader }

var _ Reader = restricted{}

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

// allowed returns Name's error. It reads nothing if the grant covers all.
func (r restricted) allowed(ctx context.Context, nameOrID string) error {
	if g := granted(ctx); len(g.Prefixes) == 0 {
		return nil
	}
	_, err := r.Name(ctx, nameOrID)
	return err
}

// changes returns an interceptor that refuses the calls that change something, unless
// allowed allows a request.
func changes(allowed func(ctx context.Context, request any) error) connect.UnaryInterceptorFunc {
	return func(next connect.UnaryFunc) connect.UnaryFunc {
		return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
			if !procedures[req.Spec().Procedure].readOnly {
				if err := allowed(ctx, req.Any()); err != nil {
					return nil, toConnect(err)
				}
			}
			return next(ctx, req)
		}
	}
}

// mayChange returns an error if the grant does not allow a request that changes a study. A
// study's name cannot be changed.
func (r restricted) mayChange(ctx context.Context, request any) error {
	g := granted(ctx)
	if g.Write && len(g.Prefixes) == 0 && len(g.WritePrefixes) == 0 { // it allows to change every study
		return nil
	}
	switch m := request.(type) {
	case *fantasiav1.CreateStudyRequest:
		s, err := file.Parse([]byte(m.GetStudyFile()))
		if err != nil {
			return err
		}
		return g.change(s.Metadata.Name)
	case *fantasiav1.UnarchiveStudyRequest:
		nameOrID := studyOf(m.GetName())
		all, err := r.reader.Archived(ctx)
		if err != nil {
			return err
		}
		at := slices.IndexFunc(all, func(a archive.Entry) bool { return g.Covers(a.Name) && (a.ID == nameOrID || a.Name == nameOrID) })
		if at < 0 {
			return fmt.Errorf("%w: study %q is not in the archive", study.ErrNotFound, nameOrID)
		}
		return g.change(all[at].Name)
	case interface{ GetParent() string }:
		return r.mayChangeStudy(ctx, m.GetParent())
	case interface{ GetName() string }:
		return r.mayChangeStudy(ctx, m.GetName())
	}
	return g.change("")
}

// mayChangeStudy is mayChange for a resource's name: of a study, or of a trial.
func (r restricted) mayChangeStudy(ctx context.Context, resource string) error {
	nameOrID, _, _ := strings.Cut(studyOf(resource), "/")
	name, err := r.Name(ctx, nameOrID)
	if err != nil {
		return err
	}
	return granted(ctx).change(name)
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
		fmt.Errorf("study %q: the token %s only allows to change studies whose names begin with %s", study, g.Name, strings.Join(prefixes, " or ")))
}

// Used implements Reader. Whoever asks says whose shares may be shown.
func (r restricted) Used(ctx context.Context, shares []quota.Share) ([]quota.Use, error) {
	return r.reader.Used(ctx, shares)
}

// Workers implements Reader. It leaves out what workers run of other studies.
func (r restricted) Workers(ctx context.Context) ([]coordinator.Worker, error) {
	all, err := r.reader.Workers(ctx)
	if err != nil || len(granted(ctx).Prefixes) == 0 {
		return all, err
	}
	covered := map[string]bool{}
	shown := make([]coordinator.Worker, len(all))
	for i, w := range all {
		running, causes := w.Heartbeat.Running, w.Heartbeat.Causes()
		w.Heartbeat.Running = nil
		for _, a := range running {
			known, asked := covered[a.Study]
			if !asked {
				switch _, err := r.Name(ctx, a.Study); {
				case err == nil:
					known = true
				case !errors.Is(err, study.ErrNotFound):
					return nil, err
				}
				covered[a.Study] = known
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

// Studies implements Reader.
func (r restricted) Studies(ctx context.Context, after string, limit int) ([]Study, error) {
	g := granted(ctx)
	if len(g.Prefixes) == 0 {
		return r.reader.Studies(ctx, after, limit)
	}
	var covered []Study
	for _, prefix := range slices.Sorted(slices.Values(g.Prefixes)) {
		page, err := r.reader.Studies(ctx, max(after, before(prefix)), limit-len(covered))
		if err != nil {
			return nil, err
		}
		for _, s := range page {
			if !strings.HasPrefix(s.Spec.Definition.Metadata.Name, prefix) {
				break
			}
			after = s.Spec.Definition.Metadata.Name
			covered = append(covered, s)
		}
		if len(covered) == limit {
			break
		}
	}
	return covered, nil
}

// before returns a text that is less than every name with a prefix, and greater than every
// name that is less than these: names have no bytes above 0x7e.
func before(prefix string) string {
	last := len(prefix) - 1
	return prefix[:last] + string([]byte{prefix[last] - 1, 0xff})
}

// Study implements Reader.
func (r restricted) Study(ctx context.Context, nameOrID string) (Study, error) {
	s, err := r.reader.Study(ctx, nameOrID)
	if err == nil && !granted(ctx).Covers(s.Spec.Definition.Metadata.Name) {
		return Study{}, fmt.Errorf("study %q: %w", nameOrID, study.ErrNotFound)
	}
	return s, err
}

// Name implements Reader.
func (r restricted) Name(ctx context.Context, nameOrID string) (string, error) {
	name, err := r.reader.Name(ctx, nameOrID)
	if err == nil && !granted(ctx).Covers(name) {
		return "", fmt.Errorf("study %q: %w", nameOrID, study.ErrNotFound)
	}
	return name, err
}

// WatchStudy implements Reader.
func (r restricted) WatchStudy(ctx context.Context, nameOrID string) iter.Seq2[Study, error] {
	if err := r.allowed(ctx, nameOrID); err != nil {
		return fails[Study](err)
	}
	return r.reader.WatchStudy(ctx, nameOrID)
}

// Archived implements Reader.
func (r restricted) Archived(ctx context.Context) ([]archive.Entry, error) {
	all, err := r.reader.Archived(ctx)
	return slices.DeleteFunc(all, func(a archive.Entry) bool { return !granted(ctx).Covers(a.Name) }), err
}

// Trials implements Reader.
func (r restricted) Trials(ctx context.Context, nameOrID string, after, limit int) ([]record.Trial, error) {
	if err := r.allowed(ctx, nameOrID); err != nil {
		return nil, err
	}
	return r.reader.Trials(ctx, nameOrID, after, limit)
}

// Trial implements Reader.
func (r restricted) Trial(ctx context.Context, nameOrID string, number int) (record.Trial, error) {
	if err := r.allowed(ctx, nameOrID); err != nil {
		return record.Trial{}, err
	}
	return r.reader.Trial(ctx, nameOrID, number)
}

// WatchTrials implements Reader.
func (r restricted) WatchTrials(ctx context.Context, nameOrID string, existing bool) iter.Seq2[record.Trial, error] {
	if err := r.allowed(ctx, nameOrID); err != nil {
		return fails[record.Trial](err)
	}
	return r.reader.WatchTrials(ctx, nameOrID, existing)
}

// Measurements implements Reader.
func (r restricted) Measurements(ctx context.Context, nameOrID string, number int) (curve.Reported, error) {
	if err := r.allowed(ctx, nameOrID); err != nil {
		return curve.Reported{}, err
	}
	return r.reader.Measurements(ctx, nameOrID, number)
}

// WatchMeasurements implements Reader.
func (r restricted) WatchMeasurements(ctx context.Context, nameOrID string, existing bool, ended <-chan struct{}) iter.Seq2[curve.Reported, error] {
	if err := r.allowed(ctx, nameOrID); err != nil {
		return fails[curve.Reported](err)
	}
	return r.reader.WatchMeasurements(ctx, nameOrID, existing, ended)
}

// TailLogs implements Reader.
func (r restricted) TailLogs(ctx context.Context, nameOrID string, number int, o coordinator.LogTail) iter.Seq2[coordinator.LogPart, error] {
	if err := r.allowed(ctx, nameOrID); err != nil {
		return fails[coordinator.LogPart](err)
	}
	return r.reader.TailLogs(ctx, nameOrID, number, o)
}

// fails returns a sequence that yields only an error.
func fails[T any](err error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		yield(none, err)
	}
}
