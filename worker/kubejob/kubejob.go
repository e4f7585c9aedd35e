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
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/jobpolicy"
	"github.com/fantasia-hpo/fantasia/worker/evaluation"
	"github.com/fantasia-hpo/fantasia/worker/kubejob/kubecore"
)

// Options configure what a Runner creates, and where.
type Options struct {
	// Template is the manifest, in YAML. If it is empty, only the Jobs that studies bring
	// are created.
	Template []byte
	// StudyJobs say which Jobs the studies of each namespace may bring, which are created
	// there; nil means none.
	StudyJobs jobpolicy.Policies
	// Container names the program's container; empty means the first of a pod.
	Container string
	// Reporter is the path of the template's pod template whose program reports, such as
	// spec.pytorchReplicaSpecs.Master.template; elements of lists are counted from 0. Empty
	// means every pod template that has the container.
	Reporter string
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
	// StartTimeout is the time that a pod may take to get a node, and then to start.
	StartTimeout time.Duration
	// QueueTimeout is the time that a resource may be suspended until its queue admits it.
	QueueTimeout time.Duration
	// StreamIdle is the time for which a Job whose program evaluates one trial after another
	// stays without a trial.
	StreamIdle time.Duration
	// FailMemoryKills fails an attempt if a process of the program's container was killed for
	// memory, also if the container ended successfully. Otherwise that is a warning.
	FailMemoryKills bool
	// StateDir is the worker's own directory, where the programs' logs are kept as
	// package logfile finds them; empty keeps none.
	StateDir string
	// Client and Core access the cluster.
	Client dynamic.Interface
	Core   *kubecore.Client
	// Attach connects the standard input of programs, for mode stream; nil if there is none.
	Attach Attach
	// Logger may be nil.
	Logger *slog.Logger
}

// DefaultOptions lacks a template or policies, a worker and the access to the cluster.
func DefaultOptions() Options {
	return Options{SidecarPolicy: "IfNotPresent", TTL: time.Hour, StartTimeout: 10 * time.Minute, QueueTimeout: 24 * time.Hour,
		StreamIdle: time.Minute}
}

// Runner evaluates attempts for all slots of a worker. It is safe for concurrent use
// and MUST be closed.
type Runner struct {
	options Options
	// home evaluates by the operator's template; nil without one. teams are the namespaces
	// whose studies may bring Jobs.
	home  *plan
	teams map[team]*site
	// background opens the teams' namespaces until close is called.
	background sync.WaitGroup
	close      context.CancelFunc

	mu     sync.Mutex
	owners map[string]metav1.OwnerReference
	ended  map[messaging.AttemptID]marks
}

var (
	_ evaluation.Keeper    = (*Runner)(nil)
	_ evaluation.Evaluator = (*evaluator)(nil)
)

// New checks the options, also against the cluster. It starts to watch the worker's
// resources and returns when it has listed them.
func New(ctx context.Context, o Options) (*Runner, error) {
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	r, err := newRunner(o)
	if err != nil {
		return nil, fmt.Errorf("kubejob: %w", err)
	}
	if r.home != nil {
		if err := r.home.connect(ctx); err != nil {
			return nil, fmt.Errorf("kubejob: %w", err)
		}
	}
	r.openTeams(ctx)
	return r, nil
}

// newRunner checks what does not need a cluster.
func newRunner(o Options) (*Runner, error) {
	if o.Worker == "" {
		return nil, errors.New("the worker's name is required")
	}
	if len(o.Template) == 0 && len(o.StudyJobs) == 0 {
		return nil, errors.New("a template, or namespaces whose studies may bring Jobs, are required")
	}
	r := &Runner{options: o, owners: map[string]metav1.OwnerReference{}, ended: map[messaging.AttemptID]marks{}, teams: map[team]*site{}}
	if len(o.Template) > 0 {
		if err := r.plans(); err != nil {
			return nil, err
		}
	}
	for _, namespace := range o.StudyJobs.Namespaces() {
		if err := r.team(namespace); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// plans sets how attempts are evaluated by the operator's template.
func (r *Runner) plans() error {
	o := &r.options
	t, err := parseTemplate(o.Template)
	if err != nil {
		return err
	}
	s := &site{Runner: r, opening: make(chan struct{}, 1), namespace: cmp.Or(t.names, o.Namespace), kind: t.kind, ownedBy: o.Owner}
	if s.namespace == "" {
		return errors.New("a namespace is required")
	}
	if err := s.conditions(o.Success, o.Failure); err != nil {
		return err
	}
	r.home = &plan{site: s, template: t, container: o.Container}
	r.home.reporter = o.Reporter
	// For any values, it must be possible to fill in the template.
	shape := t.shape.DeepCopy()
	if err := r.home.complete(shape, &messaging.Assignment{}, evaluation.Task{}); err != nil {
		return fmt.Errorf("template: %w", err)
	}
	if len(podTemplates(shape.Object)) == 0 && len(t.texts) == 0 {
		return fmt.Errorf("template: %s has no pod template and no ${words}: parameters could not reach it", t.kind.Kind)
	}
	return nil
}

// Close stops watching.
func (r *Runner) Close() error {
	r.close()
	r.background.Wait()
	for _, s := range r.sites() {
		s.leave()
	}
	return nil
}

// Evaluator returns the evaluator of a slot.
func (r *Runner) Evaluator(slot int) (evaluation.Evaluator, error) {
	return &evaluator{runner: r, slot: slot}, nil
}

// Recover returns the attempts whose resources an earlier process of this worker
// created and did not conclude. With an error, it returns those that it found.
func (r *Runner) Recover(ctx context.Context) ([]evaluation.Recovered, error) {
	var found []evaluation.Recovered
	var errs []error
	for _, s := range r.sites() {
		begun, err := s.begun(ctx)
		if err != nil {
			errs = append(errs, fmt.Errorf("kubejob: find the worker's %s in namespace %s: %w", s.resource.Resource, s.namespace, err))
		}
		found = append(found, begun...)
	}
	return found, errors.Join(errs...)
}

// MarkEnded records that an attempt's result is on the worker's disk. The cluster removes
// ended Jobs; MarkEnded deletes resources of other kinds.
func (r *Runner) MarkEnded(ctx context.Context, a *messaging.Assignment) error {
	s, err := r.siteOf(a)
	if s == nil || a.Run.Mode == study.ModeStream { // its Job stays, for other trials
		return err
	}
	if s.kind.GroupKind() == jobKind {
		if err = s.mark(ctx, JobName(a), LabelConcluded); err == nil {
			err = r.met(ctx, a.AttemptID, func(m *marks) { m.job, m.site = JobName(a), s })
		}
	} else {
		err = s.remove(ctx, JobName(a), metav1.DeletePropagationBackground)
	}
	if err != nil {
		return fmt.Errorf("kubejob: mark %s as ended: %w", JobName(a), err)
	}
	return nil
}

// MarkStored records that the leader has stored an attempt's result. The Job of a failed one may then be deleted to make
// room for another.
func (r *Runner) MarkStored(ctx context.Context, id messaging.AttemptID) error {
	return r.met(ctx, id, func(m *marks) { m.stored = true })
}

// marks are what is known of an attempt that has ended: its Job has the label that says so, and the leader has its result.
type marks struct {
	job    string
	site   *site
	stored bool
}

// met changes the marks of an attempt. With the second, which may be either, the Job of a failed attempt is labelled.
func (r *Runner) met(ctx context.Context, id messaging.AttemptID, change func(*marks)) error {
	r.mu.Lock()
	m := r.ended[id]
	change(&m)
	both := m.stored && m.site != nil
	if len(r.ended) >= maxOwners { // of attempts without a Job of their own
		clear(r.ended)
	}
	if both {
		delete(r.ended, id)
	} else {
		r.ended[id] = m
	}
	r.mu.Unlock()
	if !both {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	object, err := m.site.client.Get(ctx, m.job, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && !m.site.failure.Holds(object.Object) {
		return nil
	}
	if err == nil {
		err = m.site.mark(ctx, m.job, LabelStored)
	}
	if err != nil {
		return fmt.Errorf("kubejob: mark %s as stored: %w", m.job, err)
	}
	return nil
}

// evaluator is the evaluator of one slot.
type evaluator struct {
	runner *Runner
	slot   int

	// mu guards the slot's Job that stays between trials; nil without one. Whoever evaluates
	// holds it, and so does the clean-up of a Job that is idle, which idle starts.
	mu     sync.Mutex
	stream *stream
	idle   *time.Timer
}

// Accept returns why this worker creates no resources for the study: it has no template,
// or the study's namespace may not bring Jobs. A study's own command is not run here.
func (e *evaluator) Accept(a *messaging.Assignment) error {
	s, err := e.runner.siteOf(a)
	if err == nil && a.Run.Mode == study.ModeStream && s.kind.GroupKind() != jobKind {
		return fmt.Errorf("spec.trial.mode: stream needs a template of kind Job, not %s", s.kind.Kind)
	}
	return err
}
