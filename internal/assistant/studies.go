package assistant

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/internal/app/inject"
	"github.com/fantasia-hpo/fantasia/internal/exchange/fetch"
	"github.com/fantasia-hpo/fantasia/internal/show/display"
	"github.com/fantasia-hpo/fantasia/study"
	studyfile "github.com/fantasia-hpo/fantasia/study/file"
)

const fileHelp = `A study file is YAML or JSON, for example:
apiVersion: fantasia.dev/v1
kind: Study
metadata: {name: digits}
spec:
  objective: {metric: loss, direction: minimize}
  parameters:
    - {name: lr, type: float, min: 1e-5, max: 1e-1, scale: log}
    - {name: layers, type: int, min: 1, max: 6}
    - {name: kernel, type: categorical, values: [rbf, linear]}
  budget: {maxTrials: 40}
  parallelism: 2
Without spec.trial.command you evaluate the trials yourself with ask and tell; with it, workers do.`

type fileInput struct {
	StudyFile string `json:"studyFile" jsonschema:"the text of the study file, YAML or JSON"`
}

func boundedFile(p map[string]*jsonschema.Schema) { longest(p["studyFile"], studyfile.MaxSize) }

// problem is what is wrong with a study file.
type problem struct {
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Path    string `json:"path,omitempty"`
	Message string `json:"message"`
}

type checkOutput struct {
	Valid    bool      `json:"valid"`
	Problems []problem `json:"problems"`
	// Study and what follows are set if the file is valid.
	Study       string   `json:"study,omitempty"`
	Objectives  string   `json:"objectives,omitempty"`
	Parameters  []string `json:"parameters,omitempty"`
	MaxTrials   int      `json:"maxTrials,omitempty"`
	Parallelism int      `json:"parallelism,omitempty"`
	Algorithm   string   `json:"algorithm,omitempty"`
	// EvaluatedBy says who evaluates the trials.
	EvaluatedBy string `json:"evaluatedBy,omitempty"`
}

type studyInput struct {
	Study string `json:"study" jsonschema:"the name of the study, or its id"`
}

// A field named as one that it embeds would hide it from the schema, so these have other names.
type (
	shownStudy = view.Study
	shownTrial = view.Trial
)

// studyOutput is a study with what it searches.
type studyOutput struct {
	shownStudy
	Reason      string `json:"reason,omitempty"`
	Objectives  string `json:"objectives"`
	MaxTrials   int    `json:"maxTrials"`
	Parallelism int    `json:"parallelism"`
	Algorithm   string `json:"algorithm"`
	EvaluatedBy string `json:"evaluatedBy,omitempty"`
	// StudyFile is the study's file as JSON, if it was asked for.
	StudyFile map[string]any `json:"studyFile,omitempty"`
}

type getInput struct {
	Study string `json:"study" jsonschema:"the name of the study, or its id"`
	File  bool   `json:"file,omitempty" jsonschema:"also return the study file"`
}

type listInput struct {
	Labels map[string]string `json:"labels,omitempty" jsonschema:"only studies with all of these labels"`
	Limit  int               `json:"limit,omitempty" jsonschema:"the most studies to return (default 100)"`
}

type listOutput struct {
	Studies []view.Study `json:"studies"`
	// More says that there are others.
	More bool `json:"more"`
}

type stopInput struct {
	Study  string `json:"study" jsonschema:"the name of the study, or its id"`
	Reason string `json:"reason,omitempty" jsonschema:"why, which is kept with the study"`
}

// studyTools adds the tools about whole studies.
func (s *Server) studyTools() {
	add(s, tool[fileInput]("check_study", "Check a study file",
		"Checks a study file without creating anything. Returns every problem with its line, column and field, and what would be accepted. "+
			"Check before create_study.\n"+fileHelp, reads, boundedFile), s.check)
	add(s, tool[fileInput]("create_study", "Create a study",
		"Creates a study from a study file and starts it. If the file is wrong, the error lists every problem with its line and column. Its "+
			"name must not be in use.\n"+fileHelp, adds, boundedFile), s.create)
	add(s, tool[listInput]("list_studies", "List studies",
		"Lists the studies with their state, the numbers of their trials, and their best and recommended points.", reads,
		func(p map[string]*jsonschema.Schema) { between(p["limit"], 1, 500) }), s.list)
	add(s, tool[getInput]("get_study", "Show a study",
		"Shows how far a study has come: its state and the reason for it, the numbers of its trials, its best and recommended points or its "+
			"front, and its settings.", reads, nil), s.get)
	add(s, tool[stopInput]("stop_study", "Stop a study",
		"Ends a study for good. Its running trials are cancelled; its results are kept. Stopping a study that has ended changes nothing.", ends,
		func(p map[string]*jsonschema.Schema) { longest(p["reason"], 256) }), s.stop)
}

func (s *Server) check(_ context.Context, in fileInput) (checkOutput, error) {
	parsed, err := inject.ParseStudy("", []byte(in.StudyFile))
	out := checkOutput{Problems: []problem{}}
	if problems, ok := errors.AsType[*study.Problems](err); ok {
		for _, p := range problems.List {
			out.Problems = append(out.Problems, problem(p))
		}
		return out, nil
	}
	if err != nil {
		return out, err
	}
	spec := &parsed.Spec
	out.Valid, out.Study, out.Objectives, out.Parameters = true, parsed.Metadata.Name, view.Aims(spec.Objectives()),
		study.Names(spec.Parameters)
	out.MaxTrials, out.Parallelism, out.Algorithm, out.EvaluatedBy = spec.Budget.MaxTrials, spec.Parallelism, spec.Algorithm.Name,
		evaluatedBy(spec)
	return out, nil
}

// evaluatedBy says who evaluates the trials of a study.
func evaluatedBy(spec *study.Spec) string {
	if spec.ByClients() {
		return "you, with ask and tell"
	}
	return "workers of pool " + spec.Pool
}

func (s *Server) create(ctx context.Context, in fileInput) (out studyOutput, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	src, err := s.o.Place.Main(ctx)
	if err != nil {
		return out, err
	}
	defer src.Close()
	resp, err := fetch.Send(ctx, src.Service, fetch.Service.CreateStudy, &fantasiav1.CreateStudyRequest{StudyFile: in.StudyFile})
	if err != nil {
		return out, err
	}
	return ofStudy(src, resp.GetStudy(), nil, false)
}

func (s *Server) get(ctx context.Context, in getInput) (out studyOutput, err error) {
	err = s.on(ctx, in.Study, 0, func(ctx context.Context, src *Source) error {
		got, front, err := getStudy(ctx, src, in.Study)
		if err == nil {
			out, err = ofStudy(src, got, front, in.File)
		}
		return err
	})
	return out, err
}

// getStudy fetches a study and its front.
func getStudy(ctx context.Context, src *Source, name string) (*fantasiav1.Study, []view.Optimal, error) {
	resp, err := fetch.Send(ctx, src.Service, fetch.Service.GetStudy, &fantasiav1.GetStudyRequest{Name: "studies/" + name})
	if err != nil {
		return nil, nil, err
	}
	front, err := fetch.Front(ctx, src.Service, resp.GetStudy())
	return resp.GetStudy(), front, err
}

// viewOf shows a study of a source.
func viewOf(src *Source, got *fantasiav1.Study) view.Study {
	v := view.FromStudy(got)
	v.Directory = src.Directory
	if src.Idle && !v.State.Terminal() {
		v.State = display.Interrupted
	}
	return v
}

func ofStudy(src *Source, got *fantasiav1.Study, front []view.Optimal, file bool) (studyOutput, error) {
	out := studyOutput{
		shownStudy: viewOf(src, got), Reason: got.GetReason(), MaxTrials: int(got.GetMaxTrials()),
		Parallelism: int(got.GetParallelism()), Algorithm: got.GetAlgorithm(),
	}
	out.Front = front
	parsed, err := studyfile.Parse([]byte(got.GetStudyFile()))
	if err != nil { // of another version
		objective := got.GetObjective()
		out.Objectives = strings.ToLower(view.EnumName(objective.GetDirection())) + " " + objective.GetMetric()
	} else {
		out.Objectives, out.EvaluatedBy = view.Aims(parsed.Spec.Objectives()), evaluatedBy(&parsed.Spec)
	}
	if file {
		if err := json.Unmarshal([]byte(got.GetStudyFile()), &out.StudyFile); err != nil {
			return out, fmt.Errorf("read the study file: %w", err)
		}
	}
	return out, nil
}

func (s *Server) list(ctx context.Context, in listInput) (listOutput, error) {
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	limit := in.Limit
	if limit == 0 {
		limit = 100
	}
	out := listOutput{Studies: []view.Study{}}
	err := s.o.Place.All(ctx, func(src *Source) error {
		return fetch.EveryPage(func(token string) (string, error) {
			page, err := fetch.Send(ctx, src.Service, fetch.Service.ListStudies, &fantasiav1.ListStudiesRequest{PageSize: fetch.PageSize,
				PageToken: token, Labels: in.Labels})
			for _, got := range page.GetStudies() {
				if len(out.Studies) == limit {
					out.More = true
					return "", nil
				}
				out.Studies = append(out.Studies, viewOf(src, got))
			}
			return page.GetNextPageToken(), err
		})
	})
	return out, err
}

func (s *Server) stop(ctx context.Context, in stopInput) (out view.Study, err error) {
	err = s.on(ctx, in.Study, 0, func(ctx context.Context, src *Source) error {
		resp, err := fetch.Send(ctx, src.Service, fetch.Service.StopStudy, &fantasiav1.StopStudyRequest{Name: "studies/" + in.Study,
			Reason: in.Reason})
		if err == nil {
			out = viewOf(src, resp.GetStudy())
		}
		return err
	})
	return out, err
}
