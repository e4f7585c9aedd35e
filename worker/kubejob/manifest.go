package kubejob

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/worker/evaluation"
)

// manifest is the resource of an attempt, without an owner.
func (r *Runner) manifest(job evaluation.Job) (*unstructured.Unstructured, error) {
	a := job.Assignment
	if a.Run.Mode == study.ModeStream {
		return nil, errors.New("the study's trial.mode is stream, which Jobs cannot be: a Job evaluates one trial")
	}
	if m := a.Run.Metrics; m != nil && m.File != "" && r.options.Sidecar == "" {
		return nil, errors.New("the study's trial.metrics.file needs the sidecar to be read: start the worker with --sidecar IMAGE")
	}
	object, err := r.template.render(a.ParameterOrder, a.Parameters, words(job))
	if err != nil {
		return nil, err
	}
	if err := r.complete(object, a, job); err != nil {
		return nil, fmt.Errorf("template: %w", err)
	}
	return object, nil
}

// complete adds to a manifest what makes it the attempt's.
func (r *Runner) complete(object *unstructured.Unstructured, a *messaging.Assignment, job evaluation.Job) error {
	job.Assignment = a
	grace, timeout := graceOf(a), time.Duration(a.Run.Timeout)
	if r.template.kind.GroupKind() == jobKind {
		spec := child(object.Object, "spec")
		if err := once(spec); err != nil {
			return err
		}
		bound(spec, timeout, grace, r.options.TTL)
	}
	variables, err := variablesOf(job)
	if err != nil {
		return err
	}
	i := injection{container: r.options.Container, labels: labels(a, r.options.Worker), variables: variables, grace: grace}
	if r.options.Sidecar != "" {
		if i.sidecar, err = newSidecar(r.options.Sidecar, r.options.SidecarPolicy, a); err != nil {
			return err
		}
		i.variables = append(i.variables, i.sidecar.variables()...)
	}
	if err := i.apply(object.Object); err != nil {
		return err
	}
	object.SetName(JobName(a))
	object.SetGenerateName("")
	object.SetNamespace(r.namespace)
	return remember(object, a)
}

// variablesOf is the program's environment, as package command makes it for a
// child: what a pod cannot know of a worker's disk is left out.
func variablesOf(job evaluation.Job) ([]variable, error) {
	a := job.Assignment
	parameters, err := study.Environment(a.ParameterOrder, a.Parameters)
	if err != nil {
		return nil, err
	}
	variables := []variable{{"PYTHONUNBUFFERED", "1"}}
	for _, entry := range parameters {
		name, value, _ := strings.Cut(entry, "=")
		variables = append(variables, variable{name, escape(value)})
	}
	for _, v := range facts(job) {
		variables = append(variables, variable{v.name, escape(v.value)})
	}
	if t := job.Trace; t.Traceparent != "" {
		variables = append(variables, variable{"TRACEPARENT", t.Traceparent})
		if t.Tracestate != "" {
			variables = append(variables, variable{"TRACESTATE", escape(t.Tracestate)})
		}
	}
	return variables, nil
}

// facts are what the program learns of its attempt besides the parameters.
func facts(job evaluation.Job) []variable {
	a := job.Assignment
	v := []variable{
		{"FANTASIA_STUDY", a.StudyName},
		{"FANTASIA_TRIAL", strconv.Itoa(a.Trial)},
		{"FANTASIA_ATTEMPT", strconv.Itoa(a.Attempt)},
		{"FANTASIA_SLOT", strconv.Itoa(job.Slot)},
		{"FANTASIA_SEED", strconv.FormatUint(a.Seed, 10)},
	}
	if a.Checkpoint != "" {
		v = append(v, variable{"FANTASIA_CHECKPOINT", a.Checkpoint})
	}
	return v
}

// words are the facts, for ${words} in the template.
func words(job evaluation.Job) map[string]string {
	w := map[string]string{"FANTASIA_CHECKPOINT": ""}
	for _, v := range facts(job) {
		w[v.name] = v.value
	}
	return w
}

// remember writes the assignment to the resource, but for what a study's own
// command would need.
func remember(object *unstructured.Unstructured, a *messaging.Assignment) error {
	kept := *a
	kept.Run.Command, kept.Run.Env, kept.Run.Workdir = nil, nil, ""
	data, err := json.Marshal(stored{Assignment: &kept, Traceparent: a.Traceparent, Tracestate: a.Tracestate})
	if err != nil {
		return fmt.Errorf("write the assignment: %w", err)
	}
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[AnnotationAssignment] = string(data)
	object.SetAnnotations(annotations)
	return nil
}

// stored is an assignment in an annotation.
type stored struct {
	Assignment  *messaging.Assignment `json:"assignment"`
	Traceparent string                `json:"traceparent,omitempty"`
	Tracestate  string                `json:"tracestate,omitempty"`
}

// assignmentOf reads what remember has written.
func assignmentOf(object *unstructured.Unstructured) (*messaging.Assignment, error) {
	var s stored
	if err := json.Unmarshal([]byte(object.GetAnnotations()[AnnotationAssignment]), &s); err != nil {
		return nil, fmt.Errorf("annotation %s: %w", AnnotationAssignment, err)
	}
	a := s.Assignment
	if a == nil || JobName(a) != object.GetName() {
		return nil, fmt.Errorf("annotation %s is not of this resource", AnnotationAssignment)
	}
	a.TraceContext = messaging.TraceContext{Traceparent: s.Traceparent, Tracestate: s.Tracestate}
	return a, nil
}

// escape keeps the cluster from expanding $(NAME) in a value, and $$.
func escape(value string) string { return strings.ReplaceAll(value, "$", "$$") }
