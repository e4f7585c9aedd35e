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

	"github.com/fantasia-hpo/fantasia/api/fantasia/v1/fantasiav1connect"
	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/coordinator/archive"
	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/file"
)

// grantKey is the context key of the request's Grant.
type grantKey struct{}

// authorizer passes on only the requests that their bearers' tokens allow. A forwarded
// request carries its token, which the leader checks again.
type authorizer struct {
	next   http.Handler
	tokens Bearers
	now    func() time.Time
	logger *slog.Logger
}

func newAuthorizer(next http.Handler, o Options) *authorizer {
	return &authorizer{next: next, tokens: o.Tokens, now: o.Now, logger: o.Logger}
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
	if !grant.Write && !readOnly(r.URL.Path) {
		g.refuse(w, r, connect.NewError(connect.CodePermissionDenied, fmt.Errorf("the token %s may only read", grant.Name)))
		return
	}
	ctx := WithGrant(r.Context(), grant)
	if !grant.Expires.IsZero() && streams(r.URL.Path) {
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
	text := err.Error()
	if e, ok := errors.AsType[*connect.Error](err); ok {
		text = e.Message()
	}
	g.logger.WarnContext(r.Context(), "refused a request", "procedure", r.URL.Path, "from", r.RemoteAddr, "why", text)
	status := http.StatusForbidden
	switch connect.CodeOf(err) {
	case connect.CodeUnauthenticated:
		status = http.StatusUnauthorized
		w.Header().Set("WWW-Authenticate", "Bearer")
	case connect.CodeUnavailable:
		status = http.StatusServiceUnavailable
	}
	refuse(w, r, g.logger, err, status, text)
}

// readOnly reports whether a procedure changes nothing. Unknown procedures might.
func readOnly(procedure string) bool {
	switch procedure {
	case fantasiav1connect.StudyServiceGetStudyProcedure,
		fantasiav1connect.StudyServiceListStudiesProcedure,
		fantasiav1connect.StudyServiceListArchivedStudiesProcedure,
		fantasiav1connect.StudyServiceWatchStudyProcedure,
		fantasiav1connect.StudyServiceGetTrialProcedure,
		fantasiav1connect.StudyServiceListTrialsProcedure,
		fantasiav1connect.StudyServiceWatchTrialsProcedure,
		fantasiav1connect.StudyServiceListMeasurementsProcedure,
		fantasiav1connect.StudyServiceTailTrialLogsProcedure,
		fantasiav1connect.StudyServiceListWorkersProcedure:
		return true
	default:
		return false
	}
}

// authorized is a backend that shows and changes only the studies that the request's grant
// covers. For all others it returns ErrNotFound.
type authorized struct{ Backend }

var _ Backend = authorized{}

// granted returns the request's grant. If the request has not passed an authorizer, the
// grant covers nothing.
func granted(ctx context.Context) Grant {
	g, ok := ctx.Value(grantKey{}).(Grant)
	if !ok {
		return Grant{Prefixes: []string{"\x00"}} // no study's name begins with it
	}
	return g
}

// find returns the study with a name or an id, if the grant covers it.
func (b authorized) find(ctx context.Context, nameOrID string) (Study, error) {
	s, err := b.Backend.Study(ctx, nameOrID)
	if err == nil && !granted(ctx).Covers(s.Spec.Definition.Metadata.Name) {
		return Study{}, fmt.Errorf("%w: study %q", study.ErrNotFound, nameOrID)
	}
	return s, err
}

// allowed returns find's error. It does not read the study if the grant covers all.
func (b authorized) allowed(ctx context.Context, nameOrID string) error {
	if g := granted(ctx); len(g.Prefixes) == 0 {
		return nil
	}
	_, err := b.find(ctx, nameOrID)
	return err
}

// changeable is allowed's error, or that the grant does not allow to change the study.
func (b authorized) changeable(ctx context.Context, nameOrID string) error {
	g := granted(ctx)
	if g.changesAll() {
		return nil
	}
	s, err := b.find(ctx, nameOrID)
	if err != nil {
		return err
	}
	return g.change(s.Spec.Definition.Metadata.Name)
}

// changesAll reports whether the grant allows to change every study.
func (g Grant) changesAll() bool {
	return g.Write && len(g.Prefixes) == 0 && len(g.WritePrefixes) == 0
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

// Workers implements Backend. It leaves out what workers run of other studies.
func (b authorized) Workers(ctx context.Context) ([]coordinator.Worker, error) {
	all, err := b.Backend.Workers(ctx)
	if err != nil || len(granted(ctx).Prefixes) == 0 {
		return all, err
	}
	covered := map[string]bool{}
	shown := make([]coordinator.Worker, len(all))
	for i, w := range all {
		running := w.Heartbeat.Running
		w.Heartbeat.Running = nil
		for _, a := range running {
			known, asked := covered[a.Study]
			if !asked {
				switch _, err := b.find(ctx, a.Study); {
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
		shown[i] = w
	}
	return shown, nil
}

// Studies implements Backend.
func (b authorized) Studies(ctx context.Context, after string, limit int) ([]Study, error) {
	g := granted(ctx)
	if len(g.Prefixes) == 0 {
		return b.Backend.Studies(ctx, after, limit)
	}
	var covered []Study
	for {
		page, err := b.Backend.Studies(ctx, after, limit)
		if err != nil {
			return nil, err
		}
		for _, s := range page {
			after = s.Spec.Definition.Metadata.Name
			if g.Covers(after) {
				covered = append(covered, s)
			}
			if len(covered) == limit {
				return covered, nil
			}
		}
		if len(page) < limit {
			return covered, nil
		}
	}
}

// Study implements Backend.
func (b authorized) Study(ctx context.Context, nameOrID string) (Study, error) {
	return b.find(ctx, nameOrID)
}

// WatchStudy implements Backend.
func (b authorized) WatchStudy(ctx context.Context, nameOrID string) iter.Seq2[Study, error] {
	if err := b.allowed(ctx, nameOrID); err != nil {
		return fails[Study](err)
	}
	return b.Backend.WatchStudy(ctx, nameOrID)
}

// Create implements Backend.
func (b authorized) Create(ctx context.Context, text []byte) (Study, error) {
	if g := granted(ctx); !g.changesAll() {
		s, err := file.Parse(text)
		if err != nil {
			return Study{}, err
		}
		if err := g.change(s.Metadata.Name); err != nil {
			return Study{}, err
		}
	}
	return b.Backend.Create(ctx, text)
}

// Update implements Backend. A study's name cannot be changed.
func (b authorized) Update(ctx context.Context, nameOrID string, file []byte) (Study, error) {
	if err := b.changeable(ctx, nameOrID); err != nil {
		return Study{}, err
	}
	return b.Backend.Update(ctx, nameOrID, file)
}

// Stop implements Backend.
func (b authorized) Stop(ctx context.Context, nameOrID, reason string) (Study, error) {
	if err := b.changeable(ctx, nameOrID); err != nil {
		return Study{}, err
	}
	return b.Backend.Stop(ctx, nameOrID, reason)
}

// Delete implements Backend.
func (b authorized) Delete(ctx context.Context, nameOrID string, force bool) error {
	if err := b.changeable(ctx, nameOrID); err != nil {
		return err
	}
	return b.Backend.Delete(ctx, nameOrID, force)
}

// Archive implements Backend.
func (b authorized) Archive(ctx context.Context, nameOrID string) (archive.Entry, error) {
	if err := b.changeable(ctx, nameOrID); err != nil {
		return archive.Entry{}, err
	}
	return b.Backend.Archive(ctx, nameOrID)
}

// Unarchive implements Backend.
func (b authorized) Unarchive(ctx context.Context, nameOrID string) (Study, error) {
	if g := granted(ctx); !g.changesAll() {
		all, err := b.Archived(ctx)
		if err != nil {
			return Study{}, err
		}
		at := slices.IndexFunc(all, func(a archive.Entry) bool { return a.ID == nameOrID || a.Name == nameOrID })
		if at < 0 {
			return Study{}, fmt.Errorf("%w: study %q is not in the archive", study.ErrNotFound, nameOrID)
		}
		if err := g.change(all[at].Name); err != nil {
			return Study{}, err
		}
	}
	return b.Backend.Unarchive(ctx, nameOrID)
}

// Archived implements Backend.
func (b authorized) Archived(ctx context.Context) ([]archive.Entry, error) {
	all, err := b.Backend.Archived(ctx)
	return slices.DeleteFunc(all, func(a archive.Entry) bool { return !granted(ctx).Covers(a.Name) }), err
}

// Trials implements Backend.
func (b authorized) Trials(ctx context.Context, nameOrID string, after, limit int) ([]record.Trial, error) {
	if err := b.allowed(ctx, nameOrID); err != nil {
		return nil, err
	}
	return b.Backend.Trials(ctx, nameOrID, after, limit)
}

// Trial implements Backend.
func (b authorized) Trial(ctx context.Context, nameOrID string, number int) (record.Trial, error) {
	if err := b.allowed(ctx, nameOrID); err != nil {
		return record.Trial{}, err
	}
	return b.Backend.Trial(ctx, nameOrID, number)
}

// WatchTrials implements Backend.
func (b authorized) WatchTrials(ctx context.Context, nameOrID string, existing bool) iter.Seq2[record.Trial, error] {
	if err := b.allowed(ctx, nameOrID); err != nil {
		return fails[record.Trial](err)
	}
	return b.Backend.WatchTrials(ctx, nameOrID, existing)
}

// Measurements implements Backend.
func (b authorized) Measurements(ctx context.Context, nameOrID string, number int) (Measurements, error) {
	if err := b.allowed(ctx, nameOrID); err != nil {
		return Measurements{}, err
	}
	return b.Backend.Measurements(ctx, nameOrID, number)
}

// WatchMeasurements implements Backend.
func (b authorized) WatchMeasurements(ctx context.Context, nameOrID string, existing bool, ended <-chan struct{}) iter.Seq2[Measurements, error] {
	if err := b.allowed(ctx, nameOrID); err != nil {
		return fails[Measurements](err)
	}
	return b.Backend.WatchMeasurements(ctx, nameOrID, existing, ended)
}

// Suggest implements Clients.
func (b authorized) Suggest(ctx context.Context, nameOrID, client string, count int, wait time.Duration) (coordinator.Suggestions, error) {
	if err := b.changeable(ctx, nameOrID); err != nil {
		return coordinator.Suggestions{}, err
	}
	return b.Backend.Suggest(ctx, nameOrID, client, count, wait)
}

// Heartbeat implements Clients.
func (b authorized) Heartbeat(ctx context.Context, nameOrID, client string, held []coordinator.Held) ([]coordinator.Instruction, error) {
	if err := b.changeable(ctx, nameOrID); err != nil {
		return nil, err
	}
	return b.Backend.Heartbeat(ctx, nameOrID, client, held)
}

// Measure implements Clients.
func (b authorized) Measure(ctx context.Context, nameOrID, client string, held coordinator.Held, step int64, metrics map[string]float64) (coordinator.Instruction, error) {
	if err := b.changeable(ctx, nameOrID); err != nil {
		return coordinator.Instruction{}, err
	}
	return b.Backend.Measure(ctx, nameOrID, client, held, step, metrics)
}

// Tell implements Clients.
func (b authorized) Tell(ctx context.Context, nameOrID string, event func(now time.Time) engine.Event) (record.Trial, error) {
	if err := b.changeable(ctx, nameOrID); err != nil {
		return record.Trial{}, err
	}
	return b.Backend.Tell(ctx, nameOrID, event)
}

// TailLogs implements Backend.
func (b authorized) TailLogs(ctx context.Context, nameOrID string, number int, o coordinator.LogTail) iter.Seq2[coordinator.LogPart, error] {
	if err := b.allowed(ctx, nameOrID); err != nil {
		return fails[coordinator.LogPart](err)
	}
	return b.Backend.TailLogs(ctx, nameOrID, number, o)
}

// fails returns a sequence that yields only an error.
func fails[T any](err error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		yield(none, err)
	}
}
