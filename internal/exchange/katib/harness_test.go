package katib

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	katibv1beta1 "github.com/fantasia-hpo/fantasia/api/katib/v1beta1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// client calls a service over TCP as Katib does: with gRPC's own client, unencrypted.
type client struct {
	t    testing.TB
	conn *grpc.ClientConn
}

// serve starts the service for the time of a test.
func serve(t testing.TB) client {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, listener, slog.New(slog.DiscardHandler)) }()
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the service ended with %v", err)
		}
	})
	return client{t, conn}
}

// The methods by their names in Katib's api_grpc.pb.go.
const (
	getSuggestions            = "/api.v1.beta1.Suggestion/GetSuggestions"
	validateAlgorithmSettings = "/api.v1.beta1.Suggestion/ValidateAlgorithmSettings"
)

func (c client) suggestions(r *katibv1beta1.GetSuggestionsRequest) (*katibv1beta1.GetSuggestionsReply, error) {
	var reply katibv1beta1.GetSuggestionsReply
	err := c.conn.Invoke(c.t.Context(), getSuggestions, r, &reply)
	return &reply, err
}

func (c client) validate(e *katibv1beta1.Experiment) error {
	return c.conn.Invoke(c.t.Context(), validateAlgorithmSettings,
		&katibv1beta1.ValidateAlgorithmSettingsRequest{Experiment: e}, &katibv1beta1.ValidateAlgorithmSettingsReply{})
}

// double is a parameter of an Experiment, and so are those below.
func double(name, low, high string, more ...func(*katibv1beta1.FeasibleSpace)) *katibv1beta1.ParameterSpec {
	return numeric(katibv1beta1.ParameterType_DOUBLE, name, low, high, more)
}

func integer(name, low, high string, more ...func(*katibv1beta1.FeasibleSpace)) *katibv1beta1.ParameterSpec {
	return numeric(katibv1beta1.ParameterType_INT, name, low, high, more)
}

func numeric(kind katibv1beta1.ParameterType, name, low, high string,
	more []func(*katibv1beta1.FeasibleSpace)) *katibv1beta1.ParameterSpec {
	fs := &katibv1beta1.FeasibleSpace{Min: low, Max: high}
	for _, set := range more {
		set(fs)
	}
	return &katibv1beta1.ParameterSpec{Name: name, ParameterType: kind, FeasibleSpace: fs}
}

func step(text string) func(*katibv1beta1.FeasibleSpace) {
	return func(fs *katibv1beta1.FeasibleSpace) { fs.Step = text }
}

func logUniform(fs *katibv1beta1.FeasibleSpace) {
	fs.Distribution = katibv1beta1.Distribution_LOG_UNIFORM
}

func list(kind katibv1beta1.ParameterType, name string, values ...string) *katibv1beta1.ParameterSpec {
	return &katibv1beta1.ParameterSpec{Name: name, ParameterType: kind, FeasibleSpace: &katibv1beta1.FeasibleSpace{List: values}}
}

func categorical(name string, values ...string) *katibv1beta1.ParameterSpec {
	return list(katibv1beta1.ParameterType_CATEGORICAL, name, values...)
}

func discrete(name string, values ...string) *katibv1beta1.ParameterSpec {
	return list(katibv1beta1.ParameterType_DISCRETE, name, values...)
}

// experimentOf returns an Experiment as Katib's ConvertExperiment makes it.
func experimentOf(algorithm string, settings []string, parameters ...*katibv1beta1.ParameterSpec) *katibv1beta1.Experiment {
	spec := &katibv1beta1.AlgorithmSpec{AlgorithmName: algorithm}
	for _, s := range settings {
		name, value, _ := strings.Cut(s, "=")
		spec.AlgorithmSettings = append(spec.AlgorithmSettings, &katibv1beta1.AlgorithmSetting{Name: name, Value: value})
	}
	return &katibv1beta1.Experiment{Name: "test", Spec: &katibv1beta1.ExperimentSpec{
		Algorithm:          spec,
		Objective:          &katibv1beta1.ObjectiveSpec{Type: katibv1beta1.ObjectiveType_MINIMIZE, ObjectiveMetricName: "loss"},
		ParameterSpecs:     &katibv1beta1.ExperimentSpec_ParameterSpecs{Parameters: parameters},
		ParallelTrialCount: 3,
	}}
}

// controller plays Katib's controllers for one Experiment.
type controller struct {
	client
	experiment *katibv1beta1.Experiment
	trials     []*katibv1beta1.Trial
	seen       map[string]bool
	rng        *rand.Rand
	clock      int
}

func newController(c client, e *katibv1beta1.Experiment) *controller {
	return &controller{client: c, experiment: e, seen: map[string]bool{}, rng: rand.New(rand.NewPCG(7, 11))}
}

func (c *controller) now() string {
	c.clock++
	return fmt.Sprintf("2026-11-26T%02d:%02d:%02dZ", c.clock/3600, c.clock/60%60, c.clock%60)
}

// request is what Katib asks for n more trials. Its cache lists trials in any order.
func (c *controller) request(n int) *katibv1beta1.GetSuggestionsRequest {
	trials := slices.Clone(c.trials)
	c.rng.Shuffle(len(trials), func(i, j int) { trials[i], trials[j] = trials[j], trials[i] })
	return &katibv1beta1.GetSuggestionsRequest{
		Experiment: c.experiment, Trials: trials, CurrentRequestNumber: int32(n), TotalRequestNumber: int32(len(c.trials) + n),
	}
}

// start asks for n trials and runs them. It holds what Katib demands: exactly n, all new.
func (c *controller) start(n int) []*katibv1beta1.Trial {
	c.t.Helper()
	reply, err := c.suggestions(c.request(n))
	if err != nil {
		c.t.Fatalf("%d suggestions after %d: %v", n, len(c.trials), err)
	}
	if len(reply.GetParameterAssignments()) != n {
		c.t.Fatalf("%d suggestions, want %d", len(reply.GetParameterAssignments()), n)
	}
	var started []*katibv1beta1.Trial
	for _, p := range reply.GetParameterAssignments() {
		key := written(p.GetAssignments())
		if c.seen[key] {
			c.t.Fatalf("suggested again: %s", key)
		}
		c.seen[key] = true
		started = append(started, &katibv1beta1.Trial{
			Name: fmt.Sprintf("%s-%08x", c.experiment.GetName(), c.rng.Uint32()),
			Spec: &katibv1beta1.TrialSpec{
				Objective:            c.experiment.GetSpec().GetObjective(),
				ParameterAssignments: &katibv1beta1.TrialSpec_ParameterAssignments{Assignments: p.GetAssignments()},
			},
			Status: &katibv1beta1.TrialStatus{StartTime: c.now(), Condition: katibv1beta1.TrialStatus_RUNNING,
				Observation: &katibv1beta1.Observation{}},
		})
	}
	c.trials = append(c.trials, started...)
	return started
}

// end ends a trial; an empty value is none.
func (c *controller) end(t *katibv1beta1.Trial, condition katibv1beta1.TrialStatus_TrialConditionType, value string) {
	t.Status.Condition, t.Status.CompletionTime = condition, c.now()
	if value != "" {
		t.Status.Observation.Metrics = []*katibv1beta1.Metric{{Name: "accuracy", Value: "0.5"}, {Name: "loss", Value: value}}
	}
}

// written is an assignment as text.
func written(assignments []*katibv1beta1.ParameterAssignment) string {
	var b strings.Builder
	for _, a := range assignments {
		fmt.Fprintf(&b, "%s=%s ", a.GetName(), a.GetValue())
	}
	return b.String()
}

// values are the assignments of a trial by name.
func values(t *katibv1beta1.Trial) map[string]string {
	m := map[string]string{}
	for _, a := range t.GetSpec().GetParameterAssignments().GetAssignments() {
		m[a.GetName()] = a.GetValue()
	}
	return m
}
