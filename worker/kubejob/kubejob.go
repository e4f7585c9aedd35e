// Package kubejob evaluates each attempt by a resource of a Kubernetes cluster:
// a Job, or whatever else a template makes (a PyTorchJob, a RayJob, a JobSet).
//
// The program's command is never altered. Parameters reach it through the
// environment of its container and through ${words} in the template; reports are
// read from its log or, where that cannot be, from a native sidecar's, which
// shares a folder with it: see package jobsidecar. Nothing in the pod needs the
// cluster's API or a network, and the sidecar's termination message keeps what
// came of the reports even when the log has been rotated.
//
// Resources are named by study, trial and attempt, and carry the assignment. A
// worker that was restarted finds its own by their labels and goes on with them.
package kubejob

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/telemetry"
	"github.com/fantasia-hpo/fantasia/worker/evaluation"
)

// Options configure what a Runner creates, and where.
type Options struct {
	// Template is the manifest, in YAML.
	Template []byte
	// Container names the program's container; empty means the first of a pod.
	Container string
	// Success and Failure are CEL conditions over a resource (self) and its status;
	// empty means those of its kind.
	Success, Failure string
	// Namespace is the namespace of resources, unless the template sets it.
	Namespace string
	// Worker is the worker's name.
	Worker string
	// Owner is the owner of the created resources: TYPE.VERSION.GROUP/NAME in the same
	// namespace, such as deployments.v1.apps/fantasia-pool; empty for none. ${words}
	// are expanded.
	Owner string
	// Sidecar is the image of the sidecar for reports; empty for none.
	// SidecarPolicy is its imagePullPolicy.
	Sidecar, SidecarPolicy string
	// Environ is the worker's environment, whose OTEL_ variables tell programs where to
	// send their spans.
	Environ []string
	// Keep leaves resources running when the worker is told to end; its next process,
	// of the same name, continues with them. Otherwise they are handed back.
	Keep bool
	// TTL is the time that an ended Job is kept.
	TTL time.Duration
	// StartTimeout is the time that a pod may take to start.
	StartTimeout time.Duration
	// StateDir is the worker's own directory, where the programs' logs are kept as
	// package logfile finds them; empty keeps none.
	StateDir string
	// Client and Pods access the cluster; Mapper knows its kinds.
	Client dynamic.Interface
	Pods   kubernetes.Interface
	Mapper meta.RESTMapper
	// Logger may be nil.
	Logger *slog.Logger
}

// DefaultOptions lacks a template, a worker and the access to the cluster.
func DefaultOptions() Options {
	return Options{SidecarPolicy: "IfNotPresent", TTL: time.Hour, StartTimeout: 10 * time.Minute}
}

// Runner evaluates attempts for all slots of a worker. It is safe for concurrent use
// and MUST be closed.
type Runner struct {
	options          Options
	template         *template
	success, failure *condition
	namespace        string
	resource         schema.GroupVersionResource
	client           dynamic.ResourceInterface
	hub              *hub
	logs             *archive

	mu     sync.Mutex
	owners map[string]metav1.OwnerReference
}

var (
	_ evaluation.Keeper    = (*Runner)(nil)
	_ evaluation.Evaluator = (*evaluator)(nil)
)

// New checks the options, also against the cluster. It starts to watch the worker's
// resources and returns when it has listed them.
func New(ctx context.Context, o Options) (*Runner, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	r, err := newRunner(o)
	if err != nil {
		return nil, fmt.Errorf("kubejob: %w", err)
	}
	if r.logs, err = newArchive(o.StateDir, o.Logger); err != nil {
		return nil, fmt.Errorf("kubejob: %w", err)
	}
	if err := r.connect(ctx); err != nil {
		return nil, fmt.Errorf("kubejob: %w", err)
	}
	return r, nil
}

// newRunner checks what does not need a cluster.
func newRunner(o Options) (*Runner, error) {
	t, err := parseTemplate(o.Template)
	if err != nil {
		return nil, err
	}
	r := &Runner{options: o, template: t, namespace: o.Namespace, logs: &archive{log: o.Logger}, owners: map[string]metav1.OwnerReference{}}
	if t.names != "" {
		r.namespace = t.names
	}
	success, failure := conditionsOf(t.kind.GroupKind())
	if o.Success != "" {
		success = o.Success
	}
	if o.Failure != "" {
		failure = o.Failure
	}
	if r.success, err = compileCondition(success); err != nil {
		return nil, fmt.Errorf("success: %w", err)
	}
	if r.failure, err = compileCondition(failure); err != nil {
		return nil, fmt.Errorf("failure: %w", err)
	}
	if r.namespace == "" || o.Worker == "" {
		return nil, errors.New("a namespace and the worker's name are required")
	}
	// For any values, it must be possible to fill in the template.
	shape := t.shape.DeepCopy()
	if err := r.complete(shape, &messaging.Assignment{}, evaluation.Task{}); err != nil {
		return nil, fmt.Errorf("template: %w", err)
	}
	if len(podTemplates(shape.Object)) == 0 && len(t.texts) == 0 {
		return nil, fmt.Errorf("template: %s has no pod template and no ${words}: parameters could not reach it", t.kind.Kind)
	}
	return r, nil
}

// connect looks up the template's kind and the owner, and starts to watch.
func (r *Runner) connect(ctx context.Context) error {
	mapping, err := r.options.Mapper.RESTMapping(r.template.kind.GroupKind(), r.template.kind.Version)
	if err != nil {
		return fmt.Errorf("the cluster does not know %s: %w", r.template.kind, err)
	}
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		return fmt.Errorf("%s is not a namespaced resource", r.template.kind)
	}
	r.resource = mapping.Resource
	r.client = r.options.Client.Resource(r.resource).Namespace(r.namespace)
	r.hub, err = newHub(ctx, r.options.Client, r.options.Pods, r.resource, r.namespace, labelValue(r.options.Worker), r.options.Logger)
	return err
}

// Close stops watching.
func (r *Runner) Close() error {
	r.hub.close()
	return nil
}

// Evaluator returns the evaluator of a slot.
func (r *Runner) Evaluator(slot int) (evaluation.Evaluator, error) {
	return &evaluator{runner: r, slot: slot}, nil
}

// Recover returns the attempts whose resources an earlier process of this worker
// created and did not conclude.
func (r *Runner) Recover(ctx context.Context) ([]evaluation.Recovered, error) {
	list, err := r.client.List(ctx, metav1.ListOptions{LabelSelector: LabelWorker + "=" + labelValue(r.options.Worker) + ",!" + LabelConcluded})
	if err != nil {
		return nil, fmt.Errorf("kubejob: find the worker's %s: %w", r.resource.Resource, err)
	}
	var found []evaluation.Recovered
	for i := range list.Items {
		object := &list.Items[i]
		if object.GetDeletionTimestamp() != nil {
			continue
		}
		a, err := assignmentOf(object)
		if err != nil {
			r.options.Logger.Warn("cannot take over a resource", "name", object.GetName(), telemetry.LogError, err)
			continue
		}
		found = append(found, evaluation.Recovered{Assignment: a, Started: object.GetCreationTimestamp().Time})
	}
	return found, nil
}

// Settle records that an attempt's result is on the worker's disk. The cluster removes
// ended Jobs; Settle deletes resources of other kinds.
func (r *Runner) Settle(ctx context.Context, a *messaging.Assignment) error {
	var err error
	if r.template.kind.GroupKind() == jobKind {
		err = r.conclude(ctx, JobName(a))
	} else {
		err = r.remove(ctx, JobName(a), metav1.DeletePropagationBackground)
	}
	if err != nil {
		return fmt.Errorf("kubejob: settle %s: %w", JobName(a), err)
	}
	return nil
}

// evaluator is the evaluator of one slot.
type evaluator struct {
	runner *Runner
	slot   int
}

// Accept accepts all assignments: a study's own command is not run here.
func (e *evaluator) Accept(*messaging.Assignment) error { return nil }

// Close does nothing: nothing is kept between attempts.
func (e *evaluator) Close(context.Context) error { return nil }

func graceOf(a *messaging.Assignment) time.Duration {
	if a.Run.Grace == 0 {
		return time.Duration(study.DefaultGrace)
	}
	return time.Duration(a.Run.Grace)
}
