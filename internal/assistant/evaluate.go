package assistant

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/internal/exchange/fetch"
)

// clientHelp says when the id of a client is needed.
const clientHelp = "client of the ask that returned the trial; needed only if fantasia mcp was restarted since then"

type askInput struct {
	Study       string `json:"study" jsonschema:"the name of the study, or its id"`
	Count       int    `json:"count,omitempty" jsonschema:"how many trials to get; more than 1 only if you run them at once (default 1)"`
	WaitSeconds int    `json:"waitSeconds,omitempty" jsonschema:"how long to wait for a trial (default 10)"`
	Client      string `json:"client,omitempty" jsonschema:"client of an earlier ask, to get the trials that it holds once more; leave it out to get new trials"`
}

// asked is a trial to evaluate.
type asked struct {
	Trial      int             `json:"trial"`
	Attempt    int32           `json:"attempt"`
	Parameters view.Parameters `json:"parameters"`
	Why        string          `json:"why,omitempty"`
	// Checkpoint is where an earlier attempt, or the trial that this one continues, left off.
	Checkpoint string `json:"checkpoint,omitempty"`
}

type askOutput struct {
	Trials []asked `json:"trials"`
	Client string  `json:"client"`
	// Metrics are those that tell needs.
	Metrics []string `json:"metrics"`
	State   string   `json:"state"`
	Note    string   `json:"note"`
}

type reportInput struct {
	Study   string             `json:"study" jsonschema:"the name of the study, or its id"`
	Trial   int                `json:"trial" jsonschema:"the number of the trial, from 1"`
	Step    int64              `json:"step" jsonschema:"the step, such as an epoch; steps must grow"`
	Metrics map[string]float64 `json:"metrics" jsonschema:"what the program has reached at the step, by metric"`
	Client  string             `json:"client,omitempty"`
}

type reportOutput struct {
	// Action is continue, prune or abandon.
	Action string `json:"action"`
	Reason string `json:"reason,omitempty"`
	Note   string `json:"note"`
	// Ignored explains what was left out of the trial's curve.
	Ignored []string `json:"ignored,omitempty"`
}

type tellInput struct {
	Study      string             `json:"study" jsonschema:"the name of the study, or its id"`
	Trial      int                `json:"trial" jsonschema:"the number of the trial, from 1"`
	Outcome    string             `json:"outcome,omitempty" jsonschema:"how it ended (default completed). failed: the program failed and may be tried again; infeasible: this point can never be evaluated; pruned: stopped because report said so; released: give it back unevaluated"`
	Metrics    map[string]float64 `json:"metrics,omitempty" jsonschema:"the final value of each metric; a completed trial needs the study's objectives, and what its limits bound"`
	Reason     string             `json:"reason,omitempty" jsonschema:"why it failed, in a few words, such as: out of memory"`
	Message    string             `json:"message,omitempty" jsonschema:"details of a failure for people, such as the end of a log"`
	Parameters map[string]any     `json:"parameters,omitempty" jsonschema:"the point that was evaluated, if it is another one than was suggested: a value for every parameter"`
	Client     string             `json:"client,omitempty"`
}

type tellOutput struct {
	Trial view.Trial `json:"trial"`
	Note  string     `json:"note"`
}

// actions are the words for what to do with a trial.
var actions = map[fantasiav1.TrialAction]string{
	fantasiav1.TrialAction_TRIAL_ACTION_CONTINUE: "continue", fantasiav1.TrialAction_TRIAL_ACTION_PRUNE: "prune",
	fantasiav1.TrialAction_TRIAL_ACTION_ABANDON: "abandon",
}

// evaluationTools adds the tools of those who evaluate trials themselves.
func (s *Server) evaluationTools() {
	client := func(p map[string]*jsonschema.Schema) {
		p["client"].Pattern = "^[A-Za-z0-9_-]{1,128}$"
		if p["client"].Description == "" {
			p["client"].Description = clientHelp
		}
	}
	add(s, tool[askInput]("ask", "Get a trial to evaluate",
		"Returns trials to evaluate, with their parameters, of a study without spec.trial.command. Run your program with the parameters, then "+
			"tell the result; while it runs, report what it reaches. The trials are held for you until you tell, so tell every one, also one "+
			"that failed. No trial is returned if all that may run at once are held, or if the study has ended.", adds,
		func(p map[string]*jsonschema.Schema) {
			client(p)
			between(p["count"], 1, 100)
			between(p["waitSeconds"], 1, 30)
		}), s.ask)
	add(s, tool[reportInput]("report", "Report a measurement of a trial",
		"Adds what a running evaluation has reached at a step, and says whether to go on: continue; prune: stop the program and tell with "+
			"outcome pruned; abandon: stop it and forget the trial. It also records the curve for pictures.", settles,
		func(p map[string]*jsonschema.Schema) {
			client(p)
			boundedTrial(p)
			between(p["step"], 0, 1<<53)
			p["metrics"].MinProperties, p["metrics"].MaxProperties = new(1), new(1000)
		}), s.report)
	add(s, tool[tellInput]("tell", "Tell the result of a trial",
		"Ends a trial with its result, from which the next suggestions learn. Give the objectives in metrics; other metrics are kept too. "+
			"Telling the same again changes nothing.", settles,
		func(p map[string]*jsonschema.Schema) {
			client(p)
			boundedTrial(p)
			oneOf(p["outcome"], "completed", "failed", "infeasible", "pruned", "released")
			longest(p["reason"], 256)
			longest(p["message"], 4096)
			p["metrics"].MaxProperties = new(1000)
		}), s.tell)
}

func (s *Server) ask(ctx context.Context, in askInput) (out askOutput, err error) {
	client := cmp.Or(in.Client, "mcp-"+strings.ToLower(rand.Text()))
	wait := time.Duration(cmp.Or(in.WaitSeconds, 10)) * time.Second
	err = s.on(ctx, in.Study, wait, func(ctx context.Context, src *Source) error {
		resp, err := fetch.Send(ctx, src.Service, fetch.Service.SuggestTrials, &fantasiav1.SuggestTrialsRequest{
			Parent: "studies/" + in.Study, ClientId: client, Count: int32(cmp.Or(in.Count, 1)),
			Wait: durationpb.New(wait), //nolint:gosec // the schema bounds it
		})
		if err != nil {
			return err
		}
		study, err := fetch.Send(ctx, src.Service, fetch.Service.GetStudy, &fantasiav1.GetStudyRequest{Name: "studies/" + in.Study})
		if err != nil {
			return err
		}
		out = askOutput{Trials: []asked{}, Client: client, Metrics: append(metricsOf(study.GetStudy()),
			view.Limited(study.GetStudy()).LimitMetrics()...), State: strings.ToLower(view.EnumName(resp.GetStudyState())), Note: resp.GetReason()}
		for _, t := range resp.GetTrials() {
			a := asked{Trial: int(t.GetNumber()), Parameters: view.FromTrial(t).Parameters, Why: why(t), Checkpoint: t.GetCheckpoint()}
			if n := len(t.GetAttempts()); n > 0 {
				a.Attempt = t.GetAttempts()[n-1].GetNumber()
			}
			out.Trials = append(out.Trials, a)
			s.holds.add(ctx, in.Study, hold{client: client, trial: t.GetNumber(), attempt: a.Attempt}, resp.GetLease().AsDuration())
		}
		if out.Note == "" {
			out.Note = noteOfAsk(out)
		}
		return nil
	})
	return out, err
}

// metricsOf are the metrics of a study's objectives.
func metricsOf(s *fantasiav1.Study) (names []string) {
	for _, o := range s.GetObjectives() {
		names = append(names, o.GetMetric())
	}
	if names == nil {
		names = []string{s.GetObjective().GetMetric()}
	}
	return names
}

func noteOfAsk(out askOutput) string {
	if len(out.Trials) > 0 {
		return "evaluate each trial, and tell " + strings.Join(out.Metrics, " and ") + " in metrics"
	}
	return "no trial is to be had now: tell the trials that you hold, then ask again"
}

// held returns how a trial is held: by the ask of this process that returned it, or by the
// client that the caller names.
func (s *Server) held(ctx context.Context, study string, trial int, client string) (hold, error) {
	h, ok := s.holds.find(ctx, study, int32(trial)) //nolint:gosec // the schema bounds it
	switch {
	case ok && (client == "" || client == h.client):
		return h, nil
	case client != "":
		return hold{client: client, trial: int32(trial)}, nil //nolint:gosec // the schema bounds it
	}
	return h, fmt.Errorf("trial %d of study %s was not returned by an ask of this process; ask for a trial first, or give client, as the "+
		"ask of an earlier process returned it", trial, study)
}

func (s *Server) report(ctx context.Context, in reportInput) (out reportOutput, err error) {
	h, err := s.held(ctx, in.Study, in.Trial, in.Client)
	if err != nil {
		return out, err
	}
	err = s.on(ctx, in.Study, 0, func(ctx context.Context, src *Source) error {
		resp, err := fetch.Send(ctx, src.Service, fetch.Service.AddMeasurement, &fantasiav1.AddMeasurementRequest{
			Name: view.TrialName(in.Study, in.Trial), ClientId: h.client, Attempt: h.attempt, Step: in.Step, Metrics: in.Metrics,
		})
		if err != nil {
			return err
		}
		out = reportOutput{Action: actions[resp.GetAction()], Reason: resp.GetReason(), Ignored: resp.GetIgnored()}
		switch resp.GetAction() {
		case fantasiav1.TrialAction_TRIAL_ACTION_PRUNE:
			out.Note = "stop the program, and tell with outcome pruned"
		case fantasiav1.TrialAction_TRIAL_ACTION_ABANDON:
			out.Note = "stop the program and forget the trial"
			s.holds.drop(ctx, in.Study, h.trial)
		default:
			out.Note = "go on"
		}
		return nil
	})
	return out, err
}

func (s *Server) tell(ctx context.Context, in tellInput) (out tellOutput, err error) {
	h, err := s.held(ctx, in.Study, in.Trial, in.Client)
	if err != nil {
		return out, err
	}
	var point *structpb.Struct
	if in.Parameters != nil {
		if point, err = structpb.NewStruct(in.Parameters); err != nil {
			return out, fmt.Errorf("parameters: %w; want a number, a text or a boolean for each", err)
		}
	}
	err = s.on(ctx, in.Study, 0, func(ctx context.Context, src *Source) error {
		t, err := tellTo(ctx, src, &in, h, point)
		if err != nil {
			return err
		}
		s.holds.drop(ctx, in.Study, h.trial)
		out.Trial = view.FromTrial(t)
		if err := fetch.MarkOne(ctx, src.Service, "studies/"+in.Study, &out.Trial); err != nil {
			return err
		}
		out.Note = "ask for the next trial"
		if t.GetState() == fantasiav1.TrialState_TRIAL_STATE_PENDING {
			out.Note = "the trial will be given out again; ask for the next one"
		}
		return nil
	})
	return out, err
}

// tellTo makes the call that ends a trial.
func tellTo(ctx context.Context, src *Source, in *tellInput, h hold, point *structpb.Struct) (*fantasiav1.Trial, error) {
	name := view.TrialName(in.Study, in.Trial)
	switch outcome := cmp.Or(in.Outcome, "completed"); outcome {
	case "failed", "infeasible":
		resp, err := fetch.Send(ctx, src.Service, fetch.Service.FailTrial, &fantasiav1.FailTrialRequest{
			Name: name, ClientId: h.client, Attempt: h.attempt, Infeasible: outcome == "infeasible", Reason: in.Reason, Message: in.Message,
			Parameters: point,
		})
		return resp.GetTrial(), err
	case "released":
		resp, err := fetch.Send(ctx, src.Service, fetch.Service.ReleaseTrial, &fantasiav1.ReleaseTrialRequest{Name: name, ClientId: h.client,
			Attempt: h.attempt, Reason: in.Reason})
		return resp.GetTrial(), err
	default:
		got, err := fetch.Send(ctx, src.Service, fetch.Service.GetStudy, &fantasiav1.GetStudyRequest{Name: "studies/" + in.Study})
		if err != nil {
			return nil, err
		}
		pruned := outcome == "pruned"
		values, err := valuesOf(metricsOf(got.GetStudy()), in.Metrics, pruned)
		if err != nil {
			return nil, err
		}
		resp, err := fetch.Send(ctx, src.Service, fetch.Service.CompleteTrial, &fantasiav1.CompleteTrialRequest{
			Name: name, ClientId: h.client, Attempt: h.attempt, Values: values, Metrics: in.Metrics, Pruned: pruned, Parameters: point,
		})
		return resp.GetTrial(), err
	}
}

// valuesOf picks the objectives' values. A pruned trial may have none.
func valuesOf(objectives []string, metrics map[string]float64, pruned bool) (values []float64, err error) {
	var missing []error
	for _, name := range objectives {
		v, ok := metrics[name]
		if !ok {
			missing = append(missing, fmt.Errorf("metrics has no %q, which is an objective of the study; want its final value, or outcome failed "+
				"or infeasible", name))
		}
		values = append(values, v)
	}
	if pruned && len(missing) == len(objectives) {
		return nil, nil
	}
	return values, errors.Join(missing...)
}
