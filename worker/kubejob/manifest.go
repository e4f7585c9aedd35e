package kubejob

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/worker/evaluation"
	"github.com/fantasia-hpo/fantasia/worker/kubejob/jobsidecar"
)

// manifest returns the resource of an attempt, without an owner.
func (p *plan) manifest(task evaluation.Task) (*unstructured.Unstructured, error) {
	a := task.Assignment
	if m := a.Run.Metrics; m != nil && m.File+m.Events != "" && p.options.Sidecar == "" {
		return nil, errors.New("trial.metrics.file and trial.metrics.events need the sidecar: start the worker with --sidecar IMAGE")
	}
	object, err := p.template.render(a.ParameterOrder, a.Parameters, words(task))
	if err != nil {
		return nil, err
	}
	if err := p.permitted(object); err != nil {
		return nil, err
	}
	if err := p.complete(object, a, task); err != nil {
		return nil, fmt.Errorf("template: %w", err)
	}
	return object, nil
}

// complete adds the attempt's parts to a manifest.
func (p *plan) complete(object *unstructured.Unstructured, a *messaging.Assignment, task evaluation.Task) error {
	task.Assignment = a
	grace, timeout := a.Run.GracePeriod(), time.Duration(a.Run.Timeout)
	if p.kind.GroupKind() == jobKind {
		spec := child(object.Object, "spec")
		if err := once(spec); err != nil {
			return err
		}
		p.options.bound(spec, timeout, grace)
	}
	variables, err := variablesOf(task)
	if err != nil {
		return err
	}
	text, err := jobsidecar.Encode(a, task.Slot, traceOf(task))
	if err != nil {
		return err
	}
	variables = append(variables, exporter(p.options.Environ, p.namespace)...)
	i := injection{container: p.container, reporter: p.reporter, labels: labels(a, p.options.Worker), variables: variables, grace: grace}
	if p.options.Sidecar != "" {
		lean := *a
		lean.Run.Job = nil // a variable is shorter than an annotation can be
		attempt, err := jobsidecar.Encode(&lean, task.Slot, traceOf(task))
		if err != nil {
			return err
		}
		i.sidecar = &sidecar{image: p.options.Sidecar, policy: p.options.SidecarPolicy, attempt: attempt}
		if m := a.Run.Metrics; m != nil {
			i.sidecar.events = m.Events
		}
		i.variables = append(i.variables, i.sidecar.variables()...)
	}
	if err := i.apply(object.Object); err != nil {
		return err
	}
	p.identify(object, JobName(a))
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[AnnotationAttempt] = text
	object.SetAnnotations(annotations)
	return nil
}

// identify sets the resource's name and namespace.
func (p *plan) identify(object *unstructured.Unstructured, name string) {
	object.SetName(name)
	object.SetGenerateName("")
	object.SetNamespace(p.namespace)
}

// traceOf returns the trace context for the program.
func traceOf(task evaluation.Task) messaging.TraceContext {
	if task.Trace.Traceparent != "" {
		return task.Trace
	}
	return task.Assignment.TraceContext
}

// variablesOf returns the program's environment as package command sets it for a child,
// without variables about a worker's disk, which a pod does not have.
func variablesOf(task evaluation.Task) ([]variable, error) {
	a := task.Assignment
	parameters, err := study.Environment(a.ParameterOrder, a.Parameters)
	if err != nil {
		return nil, err
	}
	variables := []variable{{name: "PYTHONUNBUFFERED", value: "1"}}
	for _, entry := range parameters {
		name, value, _ := strings.Cut(entry, "=")
		variables = append(variables, variable{name: name, value: escape(value)})
	}
	for _, v := range facts(task) {
		variables = append(variables, variable{name: v.name, value: escape(v.value)})
	}
	if t := task.Trace; t.Traceparent != "" {
		variables = append(variables, variable{name: "TRACEPARENT", value: t.Traceparent})
		if t.Tracestate != "" {
			variables = append(variables, variable{name: "TRACESTATE", value: escape(t.Tracestate)})
		}
	}
	return variables, nil
}

// facts returns what the program is told about its attempt besides the parameters.
func facts(task evaluation.Task) []variable {
	a := task.Assignment
	v := []variable{
		{name: "FANTASIA_STUDY", value: a.StudyName},
		{name: "FANTASIA_TRIAL", value: strconv.Itoa(a.Trial)},
		{name: "FANTASIA_ATTEMPT", value: strconv.Itoa(a.Attempt)},
		{name: "FANTASIA_SLOT", value: strconv.Itoa(task.Slot)},
		{name: "FANTASIA_SEED", value: strconv.FormatUint(a.Seed, 10)},
		{name: "FANTASIA_CHECKPOINT_KEY", value: a.CheckpointKey()},
	}
	if a.Checkpoint != "" {
		v = append(v, variable{name: "FANTASIA_CHECKPOINT", value: a.Checkpoint})
	}
	return v
}

// words returns the facts, for ${words} in the template and the owner.
// FANTASIA_RESOURCE is the name of the study's resource: a resource's study is called
// NAMESPACE.NAME.
func words(task evaluation.Task) map[string]string {
	w := map[string]string{"FANTASIA_CHECKPOINT": "", "FANTASIA_RESOURCE": task.Assignment.StudyName}
	if _, name, ok := strings.Cut(task.Assignment.StudyName, "."); ok {
		w["FANTASIA_RESOURCE"] = name
	}
	for _, v := range facts(task) {
		w[v.name] = v.value
	}
	return w
}

// assignmentOf returns the attempt of a resource.
func assignmentOf(object *unstructured.Unstructured) (*messaging.Assignment, error) {
	attempt, err := jobsidecar.ParseAttempt(object.GetAnnotations()[AnnotationAttempt])
	if err != nil {
		return nil, fmt.Errorf("annotation %s: %w", AnnotationAttempt, err)
	}
	a := attempt.Assignment
	if JobName(a) != object.GetName() {
		return nil, fmt.Errorf("annotation %s is not of this resource", AnnotationAttempt)
	}
	a.TraceContext = messaging.TraceContext{Traceparent: attempt.Traceparent, Tracestate: attempt.Tracestate}
	return a, nil
}

// escape prevents the cluster from expanding $(NAME) and $$ in a value.
func escape(value string) string { return strings.ReplaceAll(value, "$", "$$") }
