// Package katib serves Katib's Suggestion service (https://github.com/kubeflow/katib), so
// that an Experiment of Katib gets its points from an optimiser of Fantasia. It keeps
// nothing: each request carries the Experiment with all of its trials.
package katib

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"connectrpc.com/connect"
	"connectrpc.com/grpchealth"

	katibv1beta1 "github.com/fantasia-hpo/fantasia/api/katib/v1beta1"
	"github.com/fantasia-hpo/fantasia/api/katib/v1beta1/katibv1beta1connect"
	"github.com/fantasia-hpo/fantasia/api/server"
	"github.com/fantasia-hpo/fantasia/internal/base/httpserve"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/algorithms/random"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/telemetry"
)

// Address is where Katib looks for a Suggestion service.
const Address = ":6789"

// The limits of a request.
const (
	// MaxRequest is the largest request, in bytes: what Katib's own services accept, gRPC's
	// default.
	MaxRequest = 4 << 20
	// MaxSuggestions is the largest number of points that a request may ask for.
	MaxSuggestions = 1000
	// MaxRequestTrials is the largest number of trials that a request may have.
	MaxRequestTrials = 10_000
	// effort is the longest that an optimiser searches for the points of a request. It is half
	// of the time that the caller still waits, if that is less.
	effort = 30 * time.Second
	// maxAdmitted is how many requests are in memory at once. Others wait, and are not read before
	// their turn.
	maxAdmitted = 32
	// rounds is how often an optimiser is asked again for points that are not trials yet.
	rounds = 3
)

// healthName is the service that the probes of Katib's Deployments ask for.
const healthName = "manager.v1beta1.Suggestion"

// Serve serves the Suggestion service and grpc.health.v1 on the listener until ctx ends.
// Then searches end early and are answered. It closes the listener. Callers need no token, so
// the requests of each address have bounds, and so have the log's lines.
func Serve(ctx context.Context, listener net.Listener, logger *slog.Logger) error {
	logger.InfoContext(ctx, "serving Katib's Suggestion service", "address", listener.Addr().String())
	logger = telemetry.Sparse(logger, time.Now)
	addresses := server.NewAddresses(server.AddressLimits{}, logger, time.Now)
	return httpserve.Serve(ctx, httpserve.Bound(listener, httpserve.Connections{}, server.Network, logger),
		addresses.Limit(Handler(ctx, logger)), logger)
}

// Handler serves the Suggestion service and grpc.health.v1, over gRPC and Connect. It is
// safe for concurrent use; as many requests as half of the processor's cores are worked on at once,
// and others wait. Once ctx ends, searches end early.
func Handler(ctx context.Context, logger *slog.Logger) http.Handler {
	s := newService(ctx, max(1, runtime.GOMAXPROCS(0)/2), logger)
	mux := http.NewServeMux()
	path, suggestion := katibv1beta1connect.NewSuggestionHandler(s, connect.WithReadMaxBytes(MaxRequest), connect.WithRecover(s.recovered))
	mux.Handle(path, admit(suggestion, maxAdmitted))
	mux.Handle(grpchealth.NewHandler(grpchealth.NewStaticChecker(katibv1beta1connect.SuggestionName, healthName)))
	return mux
}

// admit passes on at most n requests at once. A request that waits ends with its caller.
func admit(next http.Handler, n int) http.Handler {
	places := make(chan struct{}, n)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case places <- struct{}{}:
			defer func() { <-places }()
			next.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	})
}

type service struct {
	logger *slog.Logger
	// atEnd calls a function when the server is to end, unless it is stopped before.
	atEnd func(f func()) (stop func() bool)
	slots chan struct{}
}

func newService(ctx context.Context, slots int, logger *slog.Logger) *service {
	return &service{
		logger: logger, slots: make(chan struct{}, slots),
		atEnd: func(f func()) func() bool { return context.AfterFunc(ctx, f) },
	}
}

var _ katibv1beta1connect.SuggestionHandler = (*service)(nil)

// recovered turns a panic into an error.
func (s *service) recovered(ctx context.Context, spec connect.Spec, _ http.Header, panicked any) error {
	s.logger.ErrorContext(ctx, "a handler panicked", slog.String("procedure", spec.Procedure),
		slog.Any("panic", panicked), slog.String("stack", string(debug.Stack())))
	return connect.NewError(connect.CodeInternal, errors.New("the optimiser failed: the service's log says why"))
}

// ValidateAlgorithmSettings refuses an Experiment for which GetSuggestions would fail: its
// settings, its parameters, or more trials than there are points.
func (s *service) ValidateAlgorithmSettings(ctx context.Context,
	r *connect.Request[katibv1beta1.ValidateAlgorithmSettingsRequest]) (*connect.Response[katibv1beta1.ValidateAlgorithmSettingsReply],
	error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	e, err := parse(r.Msg.GetExperiment())
	if err == nil {
		size, finite := e.space.Size()
		if n := int(r.Msg.GetExperiment().GetSpec().GetMaxTrialCount()); finite && n > size {
			err = fmt.Errorf("spec.maxTrialCount is %d, but there are only %d different assignments of spec.parameters, and none is suggested "+
				"twice: want at most %d", n, size, size)
		}
	}
	if err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err)
	}
	for _, note := range e.notes {
		s.logger.WarnContext(ctx, "an Experiment changes its meaning: "+note, slog.String("experiment", r.Msg.GetExperiment().GetName()))
	}
	return connect.NewResponse(&katibv1beta1.ValidateAlgorithmSettingsReply{}), nil
}

// GetSuggestions answers with as many assignments as are asked for, all different from each
// other and from those of the request's trials.
func (s *service) GetSuggestions(ctx context.Context,
	r *connect.Request[katibv1beta1.GetSuggestionsRequest]) (*connect.Response[katibv1beta1.GetSuggestionsReply], error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	n := int(r.Msg.GetCurrentRequestNumber())
	switch trials := len(r.Msg.GetTrials()); {
	case n < 1 || n > MaxSuggestions:
		return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("current_request_number is %d: want 1 to %d", n, MaxSuggestions))
	case trials > MaxRequestTrials:
		return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("there are %d trials: want at most %d", trials, MaxRequestTrials))
	}
	e, err := parse(r.Msg.GetExperiment())
	if err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err)
	}
	log := s.logger.With(slog.String("experiment", r.Msg.GetExperiment().GetName()))
	p := e.problem(r.Msg.GetTrials(), int(r.Msg.GetTotalRequestNumber())-n)
	if p.outside > 0 {
		log.WarnContext(ctx, "trials were left out: their assignments do not belong to the Experiment's parameters",
			slog.Int("trials", p.outside))
	}
	points, err := s.suggest(ctx, e, p, n, log)
	if err != nil {
		return nil, err
	}
	reply := &katibv1beta1.GetSuggestionsReply{}
	for _, point := range points {
		reply.ParameterAssignments = append(reply.ParameterAssignments,
			&katibv1beta1.GetSuggestionsReply_ParameterAssignments{Assignments: e.assignments(point)})
	}
	return connect.NewResponse(reply), nil
}

// enter waits for the request's turn, which ends with leave.
func (s *service) enter(ctx context.Context) (leave func(), err error) {
	select {
	case s.slots <- struct{}{}:
		return func() { <-s.slots }, nil
	case <-ctx.Done():
		return nil, failed(ctx.Err())
	}
}

// suggest searches n points.
func (s *service) suggest(ctx context.Context, e *experiment, p *problem, n int, log *slog.Logger) ([]study.Point, error) {
	limit := effort
	if deadline, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(deadline)/2)
	}
	search, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	stop := s.atEnd(cancel)
	defer stop()
	points, err := p.search(search, e.optimizer, n, log)
	switch {
	case err == nil:
		return points, nil
	case ctx.Err() != nil:
		return nil, failed(ctx.Err())
	case errors.Is(err, optimizer.ErrExhausted):
		size, _ := e.space.Size()
		return nil, connect.NewError(connect.CodeFailedPrecondition, fmt.Errorf(
			"spec.parameters has %d different assignments, of which %d can still be suggested, and %d were asked for: want fewer trials, or more "+
				"values", size, len(points), n))
	default:
		log.ErrorContext(ctx, "no suggestion", slog.Any(telemetry.LogError, err))
		return nil, connect.NewError(connect.CodeInternal, err)
	}
}

// failed is the error of a request whose caller no longer waits.
func failed(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return connect.NewError(connect.CodeDeadlineExceeded, err)
	}
	return connect.NewError(connect.CodeCanceled, err)
}

// search returns n points that are neither trials nor equal. In a continuum an optimiser
// may evaluate a point again, which is then pending for its next try. Points that it has not
// found when ctx ends, or in a few tries, are drawn at random. With optimizer.ErrExhausted
// come the points that are left.
func (p *problem) search(ctx context.Context, o optimizer.Optimizer, n int, log *slog.Logger) ([]study.Point, error) {
	var points []study.Point
	known := maps.Clone(p.known)
	next := *p.Problem
	for round := 0; len(points) < n; round++ {
		last := round >= rounds || ctx.Err() != nil
		if last {
			o, ctx = random.New(), context.WithoutCancel(ctx)
		}
		batch, _, err := o.Suggest(ctx, &next, nil, n-len(points), optimizer.NewRand(next.Seed, next.First))
		switch {
		case errors.Is(err, optimizer.ErrExhausted), err != nil && last:
			return points, err
		case err != nil && ctx.Err() == nil:
			log.WarnContext(ctx, "the optimiser failed: points are drawn at random", slog.Any(telemetry.LogError, err))
			round = rounds
		}
		next.Pending = slices.Clip(next.Pending)
		for _, b := range batch {
			next.Pending = append(next.Pending, optimizer.Pending{Trial: next.First, Point: b.Point})
			next.First++
			if key := next.Space.Key(b.Point); !known[key] {
				known[key] = true
				points = append(points, b.Point)
			}
		}
	}
	return points, nil
}
