package katib

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/descriptorpb"

	katibv1beta1 "github.com/fantasia-hpo/fantasia/api/katib/v1beta1"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/algorithms/random"
	"github.com/fantasia-hpo/fantasia/optimizer/registry"
	"github.com/fantasia-hpo/fantasia/study"
)

// The messages here are those of Katib's own file, which testdata has compiled.
func TestMessagesAreKatibs(t *testing.T) {
	compiled, err := os.ReadFile(filepath.Join("..", "..", "..", "api", "testdata", "katib.v0.19.0.binpb"))
	if err != nil {
		t.Fatal(err)
	}
	var set descriptorpb.FileDescriptorSet
	if err := proto.Unmarshal(compiled, &set); err != nil {
		t.Fatal(err)
	}
	theirs := map[string]*descriptorpb.DescriptorProto{}
	for _, m := range set.GetFile()[0].GetMessageType() {
		theirs[m.GetName()] = m
	}
	ours := protodesc.ToFileDescriptorProto(katibv1beta1.File_katib_v1beta1_api_proto)
	if ours.GetPackage() != set.GetFile()[0].GetPackage() || len(ours.GetMessageType()) < 20 {
		t.Fatalf("package %s with %d messages", ours.GetPackage(), len(ours.GetMessageType()))
	}
	for _, m := range ours.GetMessageType() {
		if diff := cmp.Diff(theirs[m.GetName()], m, protocmp.Transform()); diff != "" {
			t.Errorf("%s (-Katib +ours):\n%s", m.GetName(), diff)
		}
	}
	their := set.GetFile()[0]
	for _, e := range ours.GetEnumType() {
		i := slices.IndexFunc(their.GetEnumType(), func(o *descriptorpb.EnumDescriptorProto) bool { return o.GetName() == e.GetName() })
		if diff := cmp.Diff(their.GetEnumType()[i], e, protocmp.Transform()); diff != "" {
			t.Errorf("%s (-Katib +ours):\n%s", e.GetName(), diff)
		}
	}
	i := slices.IndexFunc(their.GetService(), func(o *descriptorpb.ServiceDescriptorProto) bool { return o.GetName() == "Suggestion" })
	if diff := cmp.Diff(their.GetService()[i], ours.GetService()[0], protocmp.Transform()); diff != "" {
		t.Errorf("the service (-Katib +ours):\n%s", diff)
	}
}

// unitTest is the Experiment of Katib's test_optuna_service.py.
func unitTest(algorithm string, settings ...string) *katibv1beta1.Experiment {
	e := experimentOf(algorithm, settings,
		integer("param-1", "1", "5"), categorical("param-2", "cat1", "cat2", "cat3"),
		discrete("param-3", "3", "2", "6"), double("param-4", "1", "5", step("1")))
	e.Spec.Objective = &katibv1beta1.ObjectiveSpec{Type: katibv1beta1.ObjectiveType_MAXIMIZE, Goal: 0.9}
	return e
}

func TestShapesOfKatibsTests(t *testing.T) {
	c := serve(t)
	for _, name := range append(registry.Names(), "fantasia", "fantasia-gp") {
		e := unitTest(name, "random_state=71")
		reply, err := c.suggestions(&katibv1beta1.GetSuggestionsRequest{Experiment: e, CurrentRequestNumber: 2})
		if err != nil || len(reply.GetParameterAssignments()) != 2 {
			t.Fatalf("%s: %d suggestions, %v", name, len(reply.GetParameterAssignments()), err)
		}
		allowed := map[string][]string{
			"param-1": {"1", "2", "3", "4", "5"}, "param-2": {"cat1", "cat2", "cat3"}, "param-3": {"3", "2", "6"},
			"param-4": {"1", "2", "3", "4", "5"},
		}
		var trials []*katibv1beta1.Trial
		for i, p := range reply.GetParameterAssignments() {
			var order []string
			for _, a := range p.GetAssignments() {
				order = append(order, a.GetName())
				if !slices.Contains(allowed[a.GetName()], a.GetValue()) {
					t.Errorf("%s: %s is %q, want one of %q", name, a.GetName(), a.GetValue(), allowed[a.GetName()])
				}
			}
			if diff := cmp.Diff([]string{"param-1", "param-2", "param-3", "param-4"}, order); diff != "" {
				t.Errorf("%s: parameters (-want +got):\n%s", name, diff)
			}
			// As in Katib's test, only the trial names the metric.
			trials = append(trials, &katibv1beta1.Trial{
				Name: []string{"test-asfjh", "test-234hs"}[i],
				Spec: &katibv1beta1.TrialSpec{
					Objective: &katibv1beta1.ObjectiveSpec{Type: katibv1beta1.ObjectiveType_MAXIMIZE, ObjectiveMetricName: "metric-2",
						Goal: 0.9},
					ParameterAssignments: &katibv1beta1.TrialSpec_ParameterAssignments{Assignments: p.GetAssignments()},
				},
				Status: &katibv1beta1.TrialStatus{
					Condition: katibv1beta1.TrialStatus_SUCCEEDED,
					Observation: &katibv1beta1.Observation{Metrics: []*katibv1beta1.Metric{{Name: "metric-1", Value: "435"},
						{Name: "metric-2", Value: "5643"}}},
				},
			})
		}
		reply, err = c.suggestions(&katibv1beta1.GetSuggestionsRequest{Experiment: e, Trials: trials, CurrentRequestNumber: 2})
		if err != nil || len(reply.GetParameterAssignments()) != 2 {
			t.Errorf("%s: %d suggestions after two trials, %v", name, len(reply.GetParameterAssignments()), err)
		}
	}
}

// bowl is an Experiment whose loss is lowest at rate 0.01, layers 4 and the solver adam.
func bowl(name, algorithm string) *katibv1beta1.Experiment {
	e := experimentOf(algorithm, nil, double("rate", "0.0001", "1", logUniform), integer("layers", "1", "8"),
		double("momentum", "0", "0.9"), categorical("solver", "sgd", "adam"))
	e.Name, e.Spec.MaxTrialCount = name, 30
	return e
}

func loss(t *testing.T, of map[string]string) float64 {
	t.Helper()
	var at [3]float64
	for i, name := range []string{"rate", "layers", "momentum"} {
		var err error
		if at[i], err = strconv.ParseFloat(of[name], 64); err != nil {
			t.Fatal(err)
		}
	}
	y := math.Hypot(math.Hypot(math.Log10(at[0])+2, (at[1]-4)/4), at[2]-0.6)
	y *= y
	if of["solver"] != "adam" {
		y++
	}
	return y
}

// play runs an Experiment of 30 trials, three at once, and returns its lowest loss. Trials
// do not end in the order of their start.
func play(t *testing.T, c *controller) float64 {
	best := math.Inf(1)
	running := c.start(3)
	for ended := 0; ended < 30; ended++ {
		i := c.rng.IntN(len(running))
		y := loss(t, values(running[i]))
		best = min(best, y)
		c.end(running[i], katibv1beta1.TrialStatus_SUCCEEDED, strconv.FormatFloat(y, 'g', -1, 64))
		running = slices.Delete(running, i, i+1)
		if len(c.trials) < 30 {
			running = append(running, c.start(1)...)
		}
	}
	return best
}

// A whole Experiment finds better points than random search, each time.
func TestExperimentBeatsRandom(t *testing.T) {
	c := serve(t)
	for _, name := range []string{"first", "second", "third"} {
		found := play(t, newController(c, bowl(name, "fantasia")))
		drawn := play(t, newController(c, bowl(name, "fantasia-random")))
		t.Logf("%s: fantasia %.4g, random %.4g", name, found, drawn)
		if found >= drawn/2 {
			t.Errorf("%s: the lowest loss is %g; want less than half of random search's, %g", name, found, drawn)
		}
	}
}

func TestEqualRequestsEqualAnswers(t *testing.T) {
	c := newController(serve(t), bowl("equal", "fantasia"))
	for range 2 {
		for i, trial := range c.start(4) {
			if i < 3 {
				c.end(trial, katibv1beta1.TrialStatus_SUCCEEDED, strconv.FormatFloat(loss(t, values(trial)), 'g', -1, 64))
			}
		}
	}
	first, err := c.suggestions(c.request(2))
	if err != nil {
		t.Fatal(err)
	}
	// The service was started again, and Katib lists the trials in another order.
	c.client = serve(t)
	again, err := c.suggestions(c.request(2))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, again, protocmp.Transform()); diff != "" {
		t.Errorf("the answer (-first +again):\n%s", diff)
	}
	c.experiment = bowl("other", "fantasia")
	if other, err := c.suggestions(c.request(2)); err != nil || proto.Equal(first, other) {
		t.Errorf("an Experiment of another name gets the same suggestions, error %v", err)
	}
}

// Trials however they ended, and those that run, are not suggested again.
func TestNoRepeatsUntilTheSpaceIsExhausted(t *testing.T) {
	for _, algorithm := range []string{"fantasia", "fantasia-random", "fantasia-tpe", "fantasia-forest", "fantasia-sobol", "fantasia-cmaes"} {
		t.Run(algorithm, func(t *testing.T) {
			e := experimentOf(algorithm, nil, integer("n", "1", "3"), categorical("fast", "yes", "no"), double("fixed", "2", "2"),
				discrete("one", "0.50"))
			c := newController(serve(t), e)
			first := c.start(4)
			c.end(first[0], katibv1beta1.TrialStatus_SUCCEEDED, "1")
			c.end(first[1], katibv1beta1.TrialStatus_FAILED, "")
			c.end(first[2], katibv1beta1.TrialStatus_KILLED, "")
			c.end(first[3], katibv1beta1.TrialStatus_EARLYSTOPPED, "2")
			for _, trial := range append(first, c.start(1)...) {
				if v := values(trial); v["fixed"] != "2" || v["one"] != "0.50" {
					t.Errorf("fixed is %q and one %q, want 2 and 0.50 as the Experiment writes it", v["fixed"], v["one"])
				}
			}
			_, err := c.suggestions(c.request(2))
			want := "spec.parameters has 6 different assignments, of which 1 can still be suggested, and 2 were asked for"
			if status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), want) {
				t.Errorf("with one point left: %v, want FAILED_PRECONDITION and %q", err, want)
			}
			c.start(1)
			if _, err := c.suggestions(c.request(1)); status.Code(err) != codes.FailedPrecondition {
				t.Errorf("with no point left: %v, want FAILED_PRECONDITION", err)
			}
		})
	}
}

// fake is an optimiser that calls a function.
type fake func(ctx context.Context, p *optimizer.Problem, n int, rng *rand.Rand) ([]optimizer.Suggestion, error)

func (f fake) Suggest(ctx context.Context, p *optimizer.Problem, _ optimizer.State, n int, rng *rand.Rand) ([]optimizer.Suggestion,
	optimizer.State, error) {
	batch, err := f(ctx, p, n, rng)
	return batch, nil, err
}

func suggest(points ...study.Point) []optimizer.Suggestion {
	batch := make([]optimizer.Suggestion, len(points))
	for i := range points {
		batch[i].Point = points[i]
	}
	return batch
}

// known returns an Experiment over a continuum and its problem after one trial.
func known(t *testing.T) (*experiment, *problem, study.Point) {
	t.Helper()
	e, err := parse(experimentOf("fantasia", nil, double("x", "0", "1")))
	if err != nil {
		t.Fatal(err)
	}
	p := e.problem([]*katibv1beta1.Trial{{Name: "a", Spec: &katibv1beta1.TrialSpec{
		ParameterAssignments: &katibv1beta1.TrialSpec_ParameterAssignments{
			Assignments: []*katibv1beta1.ParameterAssignment{{Name: "x", Value: "0.5"}}},
	}, Status: &katibv1beta1.TrialStatus{Condition: katibv1beta1.TrialStatus_SUCCEEDED, Observation: &katibv1beta1.Observation{
		Metrics: []*katibv1beta1.Metric{{Name: "loss", Value: "1"}},
	}}}}, 1)
	return e, p, study.Point{"p0": 0.5}
}

// An optimiser may evaluate a point of a continuum again. Here it is asked for another.
func TestNoRepeatsInAContinuum(t *testing.T) {
	_, p, observed := known(t)
	asked := 0
	points, err := p.search(t.Context(),
		fake(func(_ context.Context, p *optimizer.Problem, n int, _ *rand.Rand) ([]optimizer.Suggestion, error) {
			asked++
			if asked == 1 {
				return suggest(observed, study.Point{"p0": 0.25}, study.Point{"p0": 0.25}), nil
			}
			want := []optimizer.Pending{{Trial: 2, Point: observed}, {Trial: 3, Point: study.Point{"p0": 0.25}},
				{Trial: 4, Point: study.Point{"p0": 0.25}}}
			if diff := cmp.Diff(want, p.Pending); diff != "" || p.First != 5 || n != 2 {
				t.Errorf("asked again for %d from trial %d on, pending (-want +got):\n%s", n, p.First, diff)
			}
			return suggest(study.Point{"p0": 0.75}, study.Point{"p0": 1.0}), nil
		}), 3, slog.New(slog.DiscardHandler))
	want := []study.Point{{"p0": 0.25}, {"p0": 0.75}, {"p0": 1.0}}
	if diff := cmp.Diff(want, points); diff != "" || err != nil {
		t.Errorf("error %v, points (-want +got):\n%s", err, diff)
	}
}

// Whatever the optimiser does, the answer has the points that were asked for.
func TestExactCountDespiteTheOptimiser(t *testing.T) {
	_, _, observed := known(t)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx context.Context
		o   fake
	}{
		"repeats for ever": {t.Context(), func(context.Context, *optimizer.Problem, int, *rand.Rand) ([]optimizer.Suggestion, error) {
			return suggest(observed), nil
		}},
		"fails": {t.Context(), func(context.Context, *optimizer.Problem, int, *rand.Rand) ([]optimizer.Suggestion, error) {
			return nil, errors.New("singular")
		}},
		"out of time": {ended, func(ctx context.Context, _ *optimizer.Problem, _ int, _ *rand.Rand) ([]optimizer.Suggestion, error) {
			return nil, ctx.Err()
		}},
	} {
		_, p, _ := known(t)
		points, err := p.search(c.ctx, c.o, 5, slog.New(slog.DiscardHandler))
		if err != nil || len(points) != 5 {
			t.Errorf("%s: %d points, %v, want 5", name, len(points), err)
		}
		seen := map[string]bool{p.Space.Key(observed): true}
		for _, point := range points {
			if key := p.Space.Key(point); seen[key] || p.Space.Check(point) != nil {
				t.Errorf("%s: suggested %v", name, point)
			} else {
				seen[key] = true
			}
		}
	}
}

func TestTrialsBecomeObservations(t *testing.T) {
	e, err := parse(experimentOf("fantasia", nil, integer("n", "0", "99")))
	if err != nil {
		t.Fatal(err)
	}
	var trials []*katibv1beta1.Trial
	add := func(n, start, end string, condition katibv1beta1.TrialStatus_TrialConditionType, metrics ...*katibv1beta1.Metric) {
		trials = append(trials, &katibv1beta1.Trial{
			Name: "t" + n,
			Spec: &katibv1beta1.TrialSpec{
				Objective: &katibv1beta1.ObjectiveSpec{ObjectiveMetricName: "loss"},
				ParameterAssignments: &katibv1beta1.TrialSpec_ParameterAssignments{
					Assignments: []*katibv1beta1.ParameterAssignment{{Name: "n", Value: n}}},
			},
			Status: &katibv1beta1.TrialStatus{StartTime: start, CompletionTime: end, Condition: condition,
				Observation: &katibv1beta1.Observation{Metrics: metrics}},
		})
	}
	metric := func(value string) *katibv1beta1.Metric { return &katibv1beta1.Metric{Name: "loss", Value: value} }
	at := func(second string) string { return "2026-11-26T10:00:0" + second + "Z" }
	add("1", "", "", katibv1beta1.TrialStatus_CREATED)
	add("2", at("8"), "", katibv1beta1.TrialStatus_RUNNING, metric("7"))
	add("3", at("1"), at("9"), katibv1beta1.TrialStatus_SUCCEEDED, &katibv1beta1.Metric{Name: "other", Value: "1"}, metric("0.25"))
	add("4", at("2"), at("3"), katibv1beta1.TrialStatus_SUCCEEDED, metric("unavailable"))
	add("5", at("3"), at("4"), katibv1beta1.TrialStatus_SUCCEEDED, metric("NaN"))
	add("6", at("4"), at("5"), katibv1beta1.TrialStatus_FAILED)
	add("7", at("5"), at("6"), katibv1beta1.TrialStatus_METRICSUNAVAILABLE)
	add("8", at("6"), at("7"), katibv1beta1.TrialStatus_EARLYSTOPPED, metric("4"))
	add("9", at("7"), at("8"), katibv1beta1.TrialStatus_KILLED)
	add("100", at("0"), at("0"), katibv1beta1.TrialStatus_SUCCEEDED, metric("-5"))  // beyond the range
	add("many", at("0"), at("0"), katibv1beta1.TrialStatus_SUCCEEDED, metric("-5")) // no number
	p := e.problem(trials, 20)
	point := func(n int64) study.Point { return study.Point{"p0": n} }
	// Numbers follow the starts: trials 100 and many are the first two.
	want := []optimizer.Observation{
		{Trial: 4, Point: point(4), Outcome: optimizer.OutcomeFailed},
		{Trial: 5, Point: point(5), Outcome: optimizer.OutcomeFailed},
		{Trial: 6, Point: point(6), Outcome: optimizer.OutcomeFailed},
		{Trial: 7, Point: point(7), Outcome: optimizer.OutcomeFailed},
		{Trial: 8, Point: point(8), Outcome: optimizer.OutcomePruned, Values: study.Values{4}},
		{Trial: 3, Point: point(3), Outcome: optimizer.OutcomeCompleted, Values: study.Values{0.25}},
	}
	if diff := cmp.Diff(want, p.Observations); diff != "" {
		t.Errorf("observations (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]optimizer.Pending{{Trial: 10, Point: point(2)}, {Trial: 11, Point: point(1)}}, p.Pending); diff != "" {
		t.Errorf("pending (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]optimizer.Observation{{Trial: 9, Point: point(9)}}, p.Taken); diff != "" || p.outside != 2 || p.First != 21 {
		t.Errorf("first trial %d, %d outside, want 21 and 2; taken (-want +got):\n%s", p.First, p.outside, diff)
	}
}

func TestValidate(t *testing.T) {
	c := serve(t)
	x := double("x", "0", "1")
	for _, test := range []struct {
		e    *katibv1beta1.Experiment
		want string // empty if it is valid
	}{
		{bowl("good", "fantasia"), ""},
		{experimentOf("fantasia", []string{"algorithm=tpe", "random_state=71"}, x), ""},
		{experimentOf("fantasia", []string{"initial=4"}, x), ""},
		{experimentOf("fantasia", []string{"warp=true"}, x), ""},
		{experimentOf("tpe", nil, double("--learning rate", "1e-3", "1", logUniform)), ""},
		{experimentOf("invalid", nil, x),
			`spec.algorithm.algorithmName "invalid" is not accepted; want fantasia, or fantasia- and one of hebo, gp`},
		{experimentOf("fantasia", []string{"algorithm=invalid"}, x),
			`spec.algorithm.algorithmSettings: algorithm "invalid" is not accepted; want hebo, gp`},
		{experimentOf("fantasia-tpe", []string{"algorithm=gp"}, x),
			`spec.algorithm.algorithmSettings: algorithm tpe: unknown setting "algorithm"`},
		{experimentOf("fantasia", []string{"invalid=5"}, x), `unknown setting "invalid": the settings are `},
		{experimentOf("fantasia", []string{"initial=-1"}, x), `setting "initial": -1 is not accepted; want an integer from `},
		{experimentOf("fantasia", []string{"initial=many"}, x), `setting "initial": many is not accepted; want an integer from `},
		{experimentOf("fantasia", []string{"warp=maybe"}, x), `setting "warp": maybe is not accepted; want true or false`},
		{experimentOf("fantasia", []string{"random_state=-1"}, x), `random_state "-1" is not accepted; want a whole number from 0 to `},
		{experimentOf("fantasia", []string{"random_state=1", "random_state=2"}, x), "random_state is set twice"},
		{experimentOf("fantasia", nil), "spec.parameters is empty"},
		{experimentOf("fantasia", nil, x, x), `spec.parameters[1] has the name "x" of spec.parameters[0]`},
		{experimentOf("fantasia", nil, double("", "0", "1")), "spec.parameters[0] (): the name is empty"},
		{experimentOf("fantasia", nil, x, double("y", "low", "1")), `spec.parameters[1] (y): feasibleSpace.min "low": want a number`},
		{experimentOf("fantasia", nil, x, double("y", "2", "1")), "spec.parameters[1] (y): feasibleSpace.max: 1 is below min, 2"},
		{experimentOf("fantasia", nil, double("y", "0", "1", logUniform)), "spec.parameters[0] (y): feasibleSpace.min: 0 is not positive"},
		{experimentOf("fantasia", nil, integer("y", "0.5", "1")), "spec.parameters[0] (y): feasibleSpace.min: 0.5 is not a whole number"},
		{experimentOf("fantasia", nil, categorical("y")), "spec.parameters[0] (y): feasibleSpace.list is empty"},
		{experimentOf("fantasia", nil, discrete("y", "1", "two")), `spec.parameters[0] (y): feasibleSpace.list[1] "two": want a number`},
		{experimentOf("fantasia", nil, list(katibv1beta1.ParameterType_UNKNOWN_TYPE, "y", "1")),
			`spec.parameters[0] (y): parameterType "": want int, double, discrete or categorical`},
		{func() *katibv1beta1.Experiment {
			e := experimentOf("fantasia", nil, x)
			e.Spec.Objective.Type = katibv1beta1.ObjectiveType_UNKNOWN
			return e
		}(), "spec.objective.type UNKNOWN: want minimize or maximize"},
		{func() *katibv1beta1.Experiment {
			e := experimentOf("fantasia", nil, x)
			e.Spec.NasConfig = &katibv1beta1.NasConfig{}
			return e
		}(), "spec.nasConfig: "},
		{func() *katibv1beta1.Experiment {
			e := experimentOf("fantasia", nil, integer("n", "1", "5"))
			e.Spec.MaxTrialCount = 6
			return e
		}(), "spec.maxTrialCount is 6, but there are only 5 different assignments"},
		{nil, "spec.objective.type"},
	} {
		err := c.validate(test.e)
		switch {
		case test.want == "" && err != nil:
			t.Errorf("%v: %v", test.e, err)
		case test.want == "":
		case status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), test.want):
			t.Errorf("%v: %v, want INVALID_ARGUMENT and %q", test.e, err, test.want)
		}
		if test.want == "" || strings.HasPrefix(test.want, "spec.maxTrialCount") {
			continue
		}
		if _, err := c.suggestions(&katibv1beta1.GetSuggestionsRequest{Experiment: test.e, CurrentRequestNumber: 1}); status.Code(
			err) != codes.InvalidArgument {
			t.Errorf("GetSuggestions for %v: %v, want INVALID_ARGUMENT", test.e, err)
		}
	}
}

func TestLimits(t *testing.T) {
	c := serve(t)
	e := experimentOf("fantasia-random", nil, double("x", "0", "1"))
	for _, test := range []struct {
		r    *katibv1beta1.GetSuggestionsRequest
		code codes.Code
		want string
	}{
		{&katibv1beta1.GetSuggestionsRequest{Experiment: e}, codes.InvalidArgument, "current_request_number is 0: want 1 to 1000"},
		{&katibv1beta1.GetSuggestionsRequest{Experiment: e, CurrentRequestNumber: -1}, codes.InvalidArgument, "is -1"},
		{&katibv1beta1.GetSuggestionsRequest{Experiment: e, CurrentRequestNumber: 1001}, codes.InvalidArgument, "is 1001"},
		{&katibv1beta1.GetSuggestionsRequest{Experiment: e, CurrentRequestNumber: 1, Trials: make([]*katibv1beta1.Trial, MaxRequestTrials+1)},
			codes.InvalidArgument, "there are 10001 trials"},
		{&katibv1beta1.GetSuggestionsRequest{Experiment: &katibv1beta1.Experiment{Name: strings.Repeat("x", MaxRequest)},
			CurrentRequestNumber: 1}, codes.ResourceExhausted, ""},
	} {
		for i := range test.r.Trials {
			test.r.Trials[i] = &katibv1beta1.Trial{}
		}
		if _, err := c.suggestions(test.r); status.Code(err) != test.code || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%.200v, want %v and %q", err, test.code, test.want)
		}
	}
	reply, err := c.suggestions(&katibv1beta1.GetSuggestionsRequest{Experiment: e, CurrentRequestNumber: MaxSuggestions})
	if err != nil || len(reply.GetParameterAssignments()) != MaxSuggestions {
		t.Errorf("%d suggestions, %v, want %d", len(reply.GetParameterAssignments()), err, MaxSuggestions)
	}
}

// Many Experiments at once get the answers that each would get alone.
func TestConcurrentExperiments(t *testing.T) {
	c := serve(t)
	names := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	ask := func(name string) *katibv1beta1.GetSuggestionsReply {
		reply, err := c.suggestions(&katibv1beta1.GetSuggestionsRequest{Experiment: bowl(name, "fantasia"), CurrentRequestNumber: 3})
		if err != nil {
			t.Error(err)
		}
		return reply
	}
	together := make([]*katibv1beta1.GetSuggestionsReply, len(names))
	var wg sync.WaitGroup
	for i, name := range names {
		wg.Go(func() { together[i] = ask(name) })
	}
	wg.Wait()
	for i, name := range names {
		if diff := cmp.Diff(ask(name), together[i], protocmp.Transform()); diff != "" {
			t.Errorf("%s (-alone +together):\n%s", name, diff)
		}
	}
}

// slow is an optimiser that searches until its time is over, and then answers with one point.
func slow(started chan<- struct{}) fake {
	return func(ctx context.Context, p *optimizer.Problem, _ int, rng *rand.Rand) ([]optimizer.Suggestion, error) {
		close(started)
		<-ctx.Done()
		batch, _, err := random.New().Suggest(context.WithoutCancel(ctx), p, nil, 1, rng)
		return batch, err
	}
}

func TestSearchEndsWithItsTime(t *testing.T) {
	for name, c := range map[string]func(t *testing.T) (caller, serving context.Context, started chan struct{}){
		"the caller waits for 200 ms": func(t *testing.T) (context.Context, context.Context, chan struct{}) {
			caller, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			t.Cleanup(cancel)
			return caller, t.Context(), make(chan struct{})
		},
		"the server ends": func(t *testing.T) (context.Context, context.Context, chan struct{}) {
			serving, cancel := context.WithCancel(t.Context())
			started := make(chan struct{})
			go func() { <-started; cancel() }()
			return t.Context(), serving, started
		},
	} {
		t.Run(name, func(t *testing.T) {
			caller, serving, started := c(t)
			e, p, _ := known(t)
			e.optimizer = slow(started)
			points, err := newService(serving, 1, slog.New(slog.DiscardHandler)).suggest(caller, e, p, 3, slog.New(slog.DiscardHandler))
			if err != nil || len(points) != 3 || caller.Err() != nil {
				t.Errorf("%d points, error %v, the caller's %v; want 3 in time", len(points), err, caller.Err())
			}
		})
	}
}

// A request whose turn does not come in time is not answered late.
func TestWaitingRequestEndsWithItsCaller(t *testing.T) {
	s := newService(t.Context(), 1, slog.New(slog.DiscardHandler))
	leave, err := s.enter(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer leave()
	caller, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	e := experimentOf("fantasia", nil, double("x", "0", "1"))
	_, err = s.GetSuggestions(caller, connect.NewRequest(&katibv1beta1.GetSuggestionsRequest{Experiment: e, CurrentRequestNumber: 1}))
	if connect.CodeOf(err) != connect.CodeDeadlineExceeded {
		t.Errorf("GetSuggestions: %v, want DEADLINE_EXCEEDED", err)
	}
	_, err = s.ValidateAlgorithmSettings(caller, connect.NewRequest(&katibv1beta1.ValidateAlgorithmSettingsRequest{Experiment: e}))
	if connect.CodeOf(err) != connect.CodeDeadlineExceeded {
		t.Errorf("ValidateAlgorithmSettings: %v, want DEADLINE_EXCEEDED", err)
	}
}

// Requests beyond those that are admitted wait for a place, or for their caller's end.
func TestHeldRequestsAreBounded(t *testing.T) {
	entered, leave := make(chan string), make(chan struct{})
	h := admit(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		entered <- r.URL.Path
		<-leave
	}), 1)
	var wg sync.WaitGroup
	call := func(ctx context.Context, path string) {
		wg.Go(func() {
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodPost, path, nil))
		})
	}
	call(t.Context(), "/first")
	if got := <-entered; got != "/first" {
		t.Fatalf("%s came in", got)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(gone, http.MethodPost, "/gone", nil))
	call(t.Context(), "/second")
	leave <- struct{}{}
	if got := <-entered; got != "/second" {
		t.Errorf("%s came in after the first, want /second", got)
	}
	leave <- struct{}{}
	wg.Wait()
}

// The probes of Katib's Deployments ask for the service by this name.
func TestHealth(t *testing.T) {
	health := healthv1.NewHealthClient(serve(t).conn)
	for _, name := range []string{"", "manager.v1beta1.Suggestion", "api.v1.beta1.Suggestion"} {
		reply, err := health.Check(t.Context(), &healthv1.HealthCheckRequest{Service: name})
		if err != nil || reply.GetStatus() != healthv1.HealthCheckResponse_SERVING {
			t.Errorf("%q: %v, %v", name, reply.GetStatus(), err)
		}
	}
	if _, err := health.Check(t.Context(), &healthv1.HealthCheckRequest{Service: "other"}); status.Code(err) != codes.NotFound {
		t.Errorf("another service: %v, want NOT_FOUND", err)
	}
}
