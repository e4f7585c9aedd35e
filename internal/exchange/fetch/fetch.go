// Package fetch reads studies, their trials and their curves through the API, whole lists at a
// time. The command line and the server of the Model Context Protocol use it.
package fetch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/api/fantasia/v1/fantasiav1connect"
	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/internal/base/each"
	"github.com/fantasia-hpo/fantasia/internal/show/diagnosis"
	"github.com/fantasia-hpo/fantasia/internal/show/htmlreport"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/numeric/indices"
	"github.com/fantasia-hpo/fantasia/study"
	studyfile "github.com/fantasia-hpo/fantasia/study/file"
)

// Service is a client of the API.
type Service = fantasiav1connect.StudyServiceClient

// Within calls f with a client of the API and a context that bounds f's calls.
type Within func(f func(context.Context, Service) error) error

// PageSize is the number of results in a page.
const PageSize = 500

// Send makes one call, such as Service.GetStudy. It returns nil with an error.
func Send[Q, A any](ctx context.Context, c Service, call func(Service, context.Context, *connect.Request[Q]) (*connect.Response[A],
	error), q *Q) (*A, error) {
	resp, err := call(c, ctx, connect.NewRequest(q))
	if err != nil {
		return nil, err
	}
	return resp.Msg, nil
}

// EveryPage fetches all pages of a list; each page gives the token of the next.
func EveryPage(fetch func(token string) (next string, err error)) error {
	for token := ""; ; {
		next, err := fetch(token)
		if err != nil || next == "" {
			return err
		}
		token = next
	}
}

// Trials fetches all pages of a list of trials.
func Trials(ctx context.Context, c Service, q *fantasiav1.ListTrialsRequest) (list []*fantasiav1.Trial, err error) {
	q.PageSize = PageSize
	err = EveryPage(func(token string) (string, error) {
		q.PageToken = token
		page, err := Send(ctx, c, Service.ListTrials, q)
		list = append(list, page.GetTrials()...)
		return page.GetNextPageToken(), err
	})
	return list, err
}

// Mark sets which of their study's limits trials are outside of, and returns the metrics that their values are
// of. parent is the study's resource name.
func Mark(ctx context.Context, c Service, parent string, trials []view.Trial) (objectives []string, err error) {
	found, err := Send(ctx, c, Service.GetStudy, &fantasiav1.GetStudyRequest{Name: parent})
	if err != nil {
		return nil, err
	}
	spec := view.Limited(found.GetStudy())
	for i := range trials {
		trials[i].Mark(spec)
	}
	return study.MetricNames(spec.Objectives()), nil
}

// MarkOne is Mark for a single trial.
func MarkOne(ctx context.Context, c Service, parent string, t *view.Trial) error {
	one := []view.Trial{*t}
	_, err := Mark(ctx, c, parent, one)
	*t = one[0]
	return err
}

// Front fetches the front of a study with several objectives; nil if it has one.
func Front(ctx context.Context, c Service, s *fantasiav1.Study) ([]view.Optimal, error) {
	if len(s.GetObjectives()) == 0 {
		return nil, nil
	}
	var trials []*fantasiav1.Trial
	err := EveryPage(func(token string) (string, error) {
		page, err := Send(ctx, c, Service.ListOptimalTrials, &fantasiav1.ListOptimalTrialsRequest{Parent: s.GetName(), PageSize: PageSize,
			PageToken: token})
		trials = append(trials, page.GetTrials()...)
		return page.GetNextPageToken(), err
	})
	return view.FromFront(s, trials), err
}

// Measurements fetches all that a trial's program reported. A server that does not know the
// request keeps none.
func Measurements(ctx context.Context, c Service, trial string) ([]view.Curve, error) {
	var all []*fantasiav1.Measurement
	err := EveryPage(func(token string) (string, error) {
		page, err := Send(ctx, c, Service.ListMeasurements, &fantasiav1.ListMeasurementsRequest{Parent: trial, PageToken: token})
		if connect.CodeOf(err) == connect.CodeUnimplemented {
			return "", nil
		}
		all = append(all, page.GetMeasurements()...)
		return page.GetNextPageToken(), err
	})
	return view.FromMeasurements(all), err
}

// StudyAndTrials fetches a study, whose resource name is given, and its trials.
func StudyAndTrials(within Within, name string) (*study.Study, []view.Trial, error) {
	var file string
	var trials []view.Trial
	err := within(func(ctx context.Context, c Service) error {
		resp, err := Send(ctx, c, Service.GetStudy, &fantasiav1.GetStudyRequest{Name: name})
		if err != nil {
			return err
		}
		file = resp.GetStudy().GetStudyFile()
		listed, err := Trials(ctx, c, &fantasiav1.ListTrialsRequest{Parent: name})
		trials = each.Of(listed, view.FromTrial)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	// Any algorithm is accepted, because the server may know others.
	s, err := studyfile.Parse([]byte(file))
	if err != nil {
		return nil, nil, fmt.Errorf("read the study file: %w", err)
	}
	for i := range trials {
		trials[i].Mark(&s.Spec)
	}
	return s, trials, nil
}

const (
	// probes is how many ended trials without a curve show that a study has none.
	probes = 3
	// curvesAtOnce is how many curves are asked for within the time of one call.
	curvesAtOnce = 100
)

// AddCurves asks for what the programs of ended trials reported, and adds it to the trials. name
// is the study's, without "studies/". It gives up if none of the first ones reported the metric
// more than once.
func AddCurves(within Within, name string, trials []view.Trial, metric string) error {
	asked, found := 0, false
	for part := range slices.Chunk(trials, curvesAtOnce) {
		err := within(func(ctx context.Context, c Service) (err error) {
			for i := range part {
				t := &part[i]
				if t.Times.Ended.IsZero() || asked >= probes && !found {
					continue
				}
				if t.Measurements, err = Measurements(ctx, c, view.TrialName(name, t.Trial)); err != nil {
					return err
				}
				asked++
				found = found || slices.ContainsFunc(t.Measurements, func(c view.Curve) bool { return c.Metric == metric && len(c.Steps) > 1 })
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Source fetches what a report needs besides the study: the trials, and the curves that it shows.
// name is the study's, without "studies/", v the study as it was fetched, and reason why it is
// in its state.
func Source(within Within, name string, v view.Study, reason string) (*htmlreport.Source, error) {
	src, trials, err := source(within, name, v, reason)
	if err != nil {
		return nil, err
	}
	chosen := htmlreport.ForCurves(src.Trials, src.View.Best)
	some := indices.Pick(trials, chosen)
	if err := AddCurves(within, name, some, diagnosis.StoppingMetric(&src.Study.Spec)); err != nil {
		return nil, err
	}
	for k, i := range chosen {
		trials[i].Measurements = some[k].Measurements
	}
	return src, nil
}

// mostPromising is of how many trials at most Promising reads the study: it is asked for beside other things, and has to be quick.
const mostPromising = 2000

// Promising returns the stopped trial of a study that a model of curves expects to end better than any has, by more than a standard
// deviation; nil if there is none, and for a study that has stopped none or has very many trials. name is the study's, without
// "studies/".
func Promising(ctx context.Context, within Within, name string, v view.Study) (*diagnosis.Unfinished, error) {
	if v.Trials.Pruned == 0 || v.Trials.Ended() > mostPromising {
		return nil, nil
	}
	src, err := Source(within, name, v, "")
	if err != nil {
		return nil, err
	}
	found, err := diagnosis.Promising(ctx, src.Study, src.Trials)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

// BareSource is Source without the curves.
func BareSource(within Within, name string, v view.Study, reason string) (*htmlreport.Source, error) {
	src, _, err := source(within, name, v, reason)
	return src, err
}

// source returns also the trials of the source, to which curves can be added.
func source(within Within, name string, v view.Study, reason string) (*htmlreport.Source, []view.Trial, error) {
	s, trials, err := StudyAndTrials(within, "studies/"+name)
	if err != nil {
		return nil, nil, err
	}
	return &htmlreport.Source{Now: time.Now(), View: v, Reason: reason, Study: s, Trials: view.List(trials)}, trials, nil
}

// Diagnose fetches a study, whose name is given without "studies/", and says what its trials
// tell about it.
func Diagnose(ctx context.Context, within Within, name string) (*study.Study, *diagnosis.Diagnosis, error) {
	s, trials, err := StudyAndTrials(within, "studies/"+name)
	if err != nil {
		return nil, nil, err
	}
	problem, took, err := diagnosis.Problem(s, view.List(trials))
	if err != nil {
		return nil, nil, fmt.Errorf("study %q: %w", s.Metadata.Name, err)
	}
	found, _, tooLittle := diagnosis.Examine(ctx, s, problem, took)
	if tooLittle != nil && !errors.Is(tooLittle, diagnosis.ErrTooLittle) {
		return nil, nil, tooLittle
	}
	if err := AddCurves(within, name, trials, diagnosis.StoppingMetric(&s.Spec)); err != nil {
		return nil, nil, err
	}
	if tooLittle != nil { // where most trials are stopped early, few complete
		j, err := diagnosis.Judge(ctx, s, view.List(trials))
		if err != nil || j == nil || s.Spec.EarlyStopping == nil {
			return nil, nil, tooLittle
		}
		found = &diagnosis.Diagnosis{Study: s.Metadata.Name, Algorithm: s.Spec.Algorithm.Name, Findings: []diagnosis.Finding{}, Judged: j}
		for _, o := range problem.Observations {
			if o.Outcome == optimizer.OutcomeCompleted {
				found.Completed++
			}
		}
		found.LeftOut = len(problem.Observations) - found.Completed
		return s, found, nil
	}
	if found.EarlyStopping, err = diagnosis.Replays(s, view.List(trials)); err != nil {
		return nil, nil, err
	}
	found.Judged, err = diagnosis.Judge(ctx, s, view.List(trials))
	return s, found, err
}

// Violations returns what is wrong with a study file, one problem a line.
func Violations(err *connect.Error) (lines []string) {
	for _, detail := range err.Details() {
		value, err := detail.Value()
		if err != nil {
			continue // another version's detail; its message says the same
		}
		if bad, ok := value.(*errdetails.BadRequest); ok {
			for _, v := range bad.GetFieldViolations() {
				lines = append(lines, v.GetDescription())
			}
		}
	}
	return lines
}

// TrialStates returns the states of trials as people write them.
func TrialStates() []string {
	var names []string
	for n := int32(1); fantasiav1.TrialState_name[n] != ""; n++ {
		names = append(names, strings.ToLower(view.EnumName(fantasiav1.TrialState(n))))
	}
	return names
}

// TrialState returns a state that TrialStates names.
func TrialState(name string) fantasiav1.TrialState {
	return fantasiav1.TrialState(fantasiav1.TrialState_value["TRIAL_STATE_"+strings.ToUpper(name)])
}
