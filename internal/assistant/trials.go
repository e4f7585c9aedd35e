package assistant

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/internal/base/each"
	"github.com/fantasia-hpo/fantasia/internal/exchange/fetch"
)

// maxSteps bounds the points of a curve in an answer.
const maxSteps = 100

type trialsInput struct {
	Study     string            `json:"study" jsonschema:"the name of the study, or its id"`
	States    []string          `json:"states,omitempty" jsonschema:"only trials in one of these states"`
	Labels    map[string]string `json:"labels,omitempty" jsonschema:"only trials with all of these labels"`
	Limit     int               `json:"limit,omitempty" jsonschema:"the most trials to return (default 50)"`
	PageToken string            `json:"pageToken,omitempty" jsonschema:"nextPageToken of the answer before, for the trials after it"`
}

type trialsOutput struct {
	Trials        []view.Trial `json:"trials"`
	NextPageToken string       `json:"nextPageToken,omitempty"`
}

type trialInput struct {
	Study string `json:"study" jsonschema:"the name of the study, or its id"`
	Trial int    `json:"trial" jsonschema:"the number of the trial, from 1"`
}

type trialOutput struct {
	shownTrial
	// Why says why the point was suggested.
	Why string `json:"why,omitempty"`
}

// bestPoint is a point to use, and why.
type bestPoint struct {
	Trial      int             `json:"trial"`
	Value      *float64        `json:"value,omitempty"`
	Mean       *float64        `json:"mean,omitempty"`
	SD         *float64        `json:"sd,omitempty"`
	Parameters view.Parameters `json:"parameters"`
	// Why says why this point, and Suggested why it was tried.
	Why       string `json:"why"`
	Suggested string `json:"suggested,omitempty"`
}

type bestOutput struct {
	// Best and Recommended are absent while there is none.
	Best        *bestPoint `json:"best,omitempty"`
	Recommended *bestPoint `json:"recommended,omitempty"`
	// Note says which one to use.
	Note string `json:"note"`
}

type frontOutput struct {
	Objectives []string       `json:"objectives"`
	Trials     []view.Optimal `json:"trials"`
}

// trialTools adds the tools that read trials.
func (s *Server) trialTools() {
	add(s, tool[trialsInput]("list_trials", "List trials",
		"Lists the trials of a study by number, a page at a time: points, values, metrics, the limits that they are outside of, states, "+
			"failures and times.", reads,
		func(p map[string]*jsonschema.Schema) {
			between(p["limit"], 1, 500)
			oneOf(p["states"].Items, fetch.TrialStates()...)
			longest(p["pageToken"], 256)
		}), s.listTrials)
	add(s, tool[trialInput]("get_trial", "Show a trial",
		fmt.Sprintf("Shows one trial: its point, why it was suggested, how it ended, and what it reported at each step (at most %d steps of a "+
			"metric).", maxSteps), reads, boundedTrial), s.getTrial)
	add(s, tool[studyInput]("best", "Best and recommended point",
		"Returns the point to use, with reasons: the trial with the best value, and the evaluated point that the model expects to be best, "+
			"which is better if evaluations are noisy. For a study with several objectives, call optimal_trials.", reads, nil), s.best)
	add(s, tool[studyInput]("optimal_trials", "Front of several objectives",
		"Returns the front: the completed trials that no other one dominates, the best in the first objective first. Of a study with one "+
			"objective, these are the trials with the best value.", reads, nil), s.optimal)
}

func boundedTrial(p map[string]*jsonschema.Schema) { between(p["trial"], 1, 999_999_999) }

func (s *Server) listTrials(ctx context.Context, in trialsInput) (out trialsOutput, err error) {
	q := &fantasiav1.ListTrialsRequest{Parent: "studies/" + in.Study, PageSize: int32(cmp.Or(in.Limit, 50)), PageToken: in.PageToken,
		Labels: in.Labels} //nolint:gosec // the schema bounds it
	for _, name := range in.States {
		q.States = append(q.States, fetch.TrialState(name))
	}
	err = s.on(ctx, in.Study, 0, func(ctx context.Context, src *Source) error {
		page, err := fetch.Send(ctx, src.Service, fetch.Service.ListTrials, q)
		if err != nil {
			return err
		}
		out = trialsOutput{Trials: each.Of(page.GetTrials(), view.FromTrial), NextPageToken: page.GetNextPageToken()}
		_, err = fetch.Mark(ctx, src.Service, q.GetParent(), out.Trials)
		return err
	})
	return out, err
}

func (s *Server) getTrial(ctx context.Context, in trialInput) (out trialOutput, err error) {
	err = s.on(ctx, in.Study, 0, func(ctx context.Context, src *Source) error {
		name := view.TrialName(in.Study, in.Trial)
		resp, err := fetch.Send(ctx, src.Service, fetch.Service.GetTrial, &fantasiav1.GetTrialRequest{Name: name})
		if err != nil {
			return err
		}
		out = trialOutput{shownTrial: view.FromTrial(resp.GetTrial()), Why: why(resp.GetTrial())}
		if err := fetch.MarkOne(ctx, src.Service, "studies/"+in.Study, &out.shownTrial); err != nil {
			return err
		}
		curves, err := fetch.Measurements(ctx, src.Service, name)
		for i := range curves {
			curves[i] = thinned(curves[i])
		}
		out.Measurements = curves
		return err
	})
	return out, err
}

// thinned returns an even share of a curve's points, and always the last one.
func thinned(c view.Curve) view.Curve {
	n := len(c.Steps)
	if n <= maxSteps {
		return c
	}
	few := view.Curve{Metric: c.Metric}
	for k := range maxSteps {
		i := k * (n - 1) / (maxSteps - 1)
		few.Steps, few.Values = append(few.Steps, c.Steps[i]), append(few.Values, c.Values[i])
	}
	return few
}

// why says why a point was suggested.
func why(t *fantasiav1.Trial) string {
	parts := []string{map[fantasiav1.Source]string{
		fantasiav1.Source_SOURCE_INITIAL: "an initial point of the study file", fantasiav1.Source_SOURCE_DESIGN: "a point of the initial design",
		fantasiav1.Source_SOURCE_RANDOM: "drawn at random", fantasiav1.Source_SOURCE_MODEL: "chosen by the model",
		fantasiav1.Source_SOURCE_FALLBACK:  "a point of a Sobol sequence, because the optimiser had not answered in time",
		fantasiav1.Source_SOURCE_REQUESTED: "somebody asked for it",
		fantasiav1.Source_SOURCE_ADDED:     "evaluated elsewhere and added", fantasiav1.Source_SOURCE_PROMOTED: "a trial at the level below " +
			"was " +
			"among the best",
	}[t.GetSource()]}
	r := t.GetReasons()
	if r.GetNote() != "" && r.GetNote() != parts[0] {
		parts = append(parts, r.GetNote())
	}
	if r != nil && r.Mean != nil {
		parts = append(parts, "expected "+view.Expected(r.GetMean(), r.GetSd()))
	}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "; ")
}

func (s *Server) best(ctx context.Context, in studyInput) (out bestOutput, err error) {
	err = s.on(ctx, in.Study, 0, func(ctx context.Context, src *Source) error {
		resp, err := fetch.Send(ctx, src.Service, fetch.Service.GetStudy, &fantasiav1.GetStudyRequest{Name: "studies/" + in.Study})
		if err != nil {
			return err
		}
		got := resp.GetStudy()
		v, metric := view.FromStudy(got), got.GetObjective().GetMetric()
		if len(got.GetObjectives()) > 0 {
			out.Note = "the study has several objectives, so no single point is best: call optimal_trials"
			return nil
		}
		word := map[fantasiav1.Direction]string{fantasiav1.Direction_DIRECTION_MINIMIZE: "lowest",
			fantasiav1.Direction_DIRECTION_MAXIMIZE: "highest"}[got.GetObjective().GetDirection()]
		if b := v.Best; b != nil {
			out.Best = &bestPoint{Trial: b.Trial, Value: &b.Value, Parameters: b.Parameters,
				Why: fmt.Sprintf("the %s %s of %d completed trials, %s", word, metric, v.Trials.Completed, view.Number(b.Value))}
			if out.Best.Suggested, err = s.suggested(ctx, src, in.Study, b.Trial); err != nil {
				return err
			}
		}
		if r := v.Recommended; r != nil {
			out.Recommended = &bestPoint{Trial: r.Trial, Mean: &r.Mean, SD: &r.SD, Parameters: r.Parameters,
				Why: fmt.Sprintf("of the evaluated points, the model expects the %s %s here: %s", word, metric, view.Expected(r.Mean, r.SD))}
			if out.Recommended.Suggested, err = s.suggested(ctx, src, in.Study, r.Trial); err != nil {
				return err
			}
		}
		out.Note = advice(&v)
		return nil
	})
	return out, err
}

// suggested says why a trial's point was tried.
func (s *Server) suggested(ctx context.Context, src *Source, study string, trial int) (string, error) {
	resp, err := fetch.Send(ctx, src.Service, fetch.Service.GetTrial, &fantasiav1.GetTrialRequest{Name: view.TrialName(study, trial)})
	return why(resp.GetTrial()), err
}

// advice says which of the points to use.
func advice(v *view.Study) string {
	switch {
	case v.Best == nil:
		return "no trial has completed yet"
	case v.Recommended == nil:
		return "use the best point: there is no model yet, or the algorithm has none. If evaluations are noisy, evaluate it again before you " +
			"rely on its value"
	case v.Recommended.Trial == v.Best.Trial:
		return "use this point: it is both the best one seen and the one that the model expects to be best"
	}
	return "use the recommended point if evaluations are noisy, because the best value is then partly luck; otherwise use the best one"
}

func (s *Server) optimal(ctx context.Context, in studyInput) (out frontOutput, err error) {
	err = s.on(ctx, in.Study, 0, func(ctx context.Context, src *Source) error {
		got, front, err := getStudy(ctx, src, in.Study)
		if err != nil {
			return err
		}
		out = frontOutput{Trials: front}
		for _, o := range got.GetObjectives() {
			out.Objectives = append(out.Objectives, objective(o))
		}
		if front != nil {
			return nil
		}
		out.Objectives = []string{objective(got.GetObjective())}
		page, err := fetch.Send(ctx, src.Service, fetch.Service.ListOptimalTrials,
			&fantasiav1.ListOptimalTrialsRequest{Parent: "studies/" + in.Study, PageSize: fetch.PageSize})
		out.Trials = each.Of(page.GetTrials(), func(t *fantasiav1.Trial) view.Optimal {
			return view.Optimal{Trial: int(t.GetNumber()), Values: t.GetValues(), Parameters: t.GetParameters().AsMap()}
		})
		return err
	})
	return out, err
}

func objective(o *fantasiav1.Objective) string {
	return strings.ToLower(view.EnumName(o.GetDirection())) + " " + o.GetMetric()
}
