package katib

import (
	"log/slog"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	katibv1beta1 "github.com/fantasia-hpo/fantasia/api/katib/v1beta1"
)

// FuzzGetSuggestions holds for every request: it is refused, or the answer has exactly as
// many assignments as were asked for, all different, and none of them a trial's. The service
// reads its own assignments as the points that it meant.
func FuzzGetSuggestions(f *testing.F) {
	add := func(e *katibv1beta1.Experiment, assignments ...string) {
		r := &katibv1beta1.GetSuggestionsRequest{Experiment: e, CurrentRequestNumber: 2, TotalRequestNumber: 5}
		for i := 0; i < len(assignments); i += 2 {
			r.Trials = append(r.Trials, &katibv1beta1.Trial{
				Spec: &katibv1beta1.TrialSpec{ParameterAssignments: &katibv1beta1.TrialSpec_ParameterAssignments{
					Assignments: []*katibv1beta1.ParameterAssignment{{Name: assignments[i], Value: assignments[i+1]}},
				}},
				Status: &katibv1beta1.TrialStatus{Condition: katibv1beta1.TrialStatus_TrialConditionType(i % 8)},
			})
		}
		raw, err := proto.Marshal(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	add(unitTest("fantasia", "random_state=71"))
	add(bowl("bowl", "fantasia"))
	add(experimentOf("fantasia", nil, double("x", "-1e300", "1e300", step("0.1"))), "x", "0.30000000000000004", "x", "-1e300")
	add(experimentOf("fantasia", nil, integer("n", "-9007199254740992", "1", step("7"))), "n", "1.0", "n", "0x1p4")
	add(experimentOf("fantasia", nil, discrete("d", "0.10", "1e-1", "7", "-0", "0")), "d", "0.1", "d", "0")
	add(experimentOf("fantasia", nil, categorical("c", "", "a", "a")), "c", "a", "d", "b")
	f.Fuzz(func(t *testing.T, raw []byte) {
		var r katibv1beta1.GetSuggestionsRequest
		if proto.Unmarshal(raw, &r) != nil {
			return
		}
		if r.GetCurrentRequestNumber() > 20 || len(r.GetExperiment().GetSpec().GetParameterSpecs().GetParameters()) > 20 {
			return // no less right, but slow
		}
		if a := r.GetExperiment().GetSpec().GetAlgorithm(); a != nil {
			a.AlgorithmName = "random" // as above
		}
		s := newService(t.Context(), 1, slog.New(slog.DiscardHandler))
		reply, err := s.GetSuggestions(t.Context(), connect.NewRequest(&r))
		if err != nil {
			if code := connect.CodeOf(err); code != connect.CodeInvalidArgument && code != connect.CodeFailedPrecondition {
				t.Fatalf("%v: %v", code, err)
			}
			return
		}
		if got := len(reply.Msg.GetParameterAssignments()); got != int(r.GetCurrentRequestNumber()) {
			t.Fatalf("%d assignments, want %d", got, r.GetCurrentRequestNumber())
		}
		e, err := parse(r.GetExperiment())
		if err != nil {
			t.Fatal(err)
		}
		p := e.problem(r.GetTrials(), 0)
		points, err := s.suggest(t.Context(), e, e.problem(r.GetTrials(), int(r.GetTotalRequestNumber()-r.GetCurrentRequestNumber())),
			int(r.GetCurrentRequestNumber()), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatalf("the second time: %v", err)
		}
		for i, a := range reply.Msg.GetParameterAssignments() {
			point, ok := e.point(a.GetAssignments())
			if !ok || e.space.Key(point) != e.space.Key(points[i]) {
				t.Fatalf("%v is read as %v, want %v", a, point, points[i])
			}
			key := e.space.Key(point)
			if p.known[key] {
				t.Fatalf("%v was suggested again", a)
			}
			p.known[key] = true
		}
	})
}
