package kubejob

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/jobpolicy"
	"github.com/fantasia-hpo/fantasia/study/jobshape"
	"github.com/fantasia-hpo/fantasia/telemetry"
	"github.com/fantasia-hpo/fantasia/worker/evaluation"
)

// studyOwner is the owner of the Jobs that a study brings: its resource.
const studyOwner = "studies.v1.fantasia.dev/${FANTASIA_RESOURCE}"

// site is a namespace in which a Runner creates resources of one kind. It is safe for
// concurrent use.
type site struct {
	*Runner
	namespace        string
	kind             schema.GroupVersionKind
	success, failure *jobpolicy.Condition
	// ownedBy is the owner of the resources, as Options.Owner is.
	ownedBy string
	// reporter is, for a kind that studies bring, the pod template whose program reports.
	reporter string
	resource schema.GroupVersionResource
	client   dynamic.ResourceInterface

	// opening holds the right to open the site; hub is nil until it is open.
	opening chan struct{}
	hub     *hub
}

// plan is how an attempt is evaluated: where, and by which template.
type plan struct {
	*site
	template *template
	// container is the program's; empty means the first of a pod.
	container string
	// reporter is the path of the only pod template whose program reports; empty for all.
	reporter string
	// brought is the template that the study brought, which policies limit; nil for the operator's.
	brought *study.Job
}

// team adds the sites of a namespace whose studies may bring Jobs: one for Jobs, and one for each
// other kind.
func (r *Runner) team(namespace string) error {
	jobs := jobpolicy.Kind{APIVersion: "batch/v1", Resource: "jobs"}
	if err := r.teamKind(namespace, "", "Job", jobs); err != nil {
		return err
	}
	kinds := r.options.StudyJobs[namespace].Kinds
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		if err := r.teamKind(namespace, name, name, kinds[name]); err != nil {
			return fmt.Errorf("%s.kinds.%s: %w", namespace, name, err)
		}
	}
	return nil
}

// teamKind adds the site of a kind; key is what studies call it.
func (r *Runner) teamKind(namespace, key, name string, k jobpolicy.Kind) error {
	version, err := schema.ParseGroupVersion(k.APIVersion)
	if err != nil {
		return err
	}
	s := &site{
		Runner: r, opening: make(chan struct{}, 1), namespace: namespace, kind: version.WithKind(name), ownedBy: studyOwner,
		resource: version.WithResource(k.Resource), reporter: k.Reporter,
	}
	if r.options.Client != nil {
		s.client = r.options.Client.Resource(s.resource).Namespace(namespace)
	}
	r.teams[team{namespace, key}] = s
	return s.conditions(k.Success, k.Failure)
}

// team is a namespace, and a kind that its studies may bring; empty for Jobs.
type team struct{ namespace, kind string }

// teamOf returns the namespace and the kind of a study's template.
func teamOf(namespace string, j *study.Job) team {
	if j.IsJob() {
		return team{namespace, ""}
	}
	return team{namespace, j.Kind}
}

// conditions compiles the conditions of success and failure; an empty one is that of the
// kind.
func (s *site) conditions(success, failure string) (err error) {
	normalSuccess, normalFailure := conditionsOf(s.kind.GroupKind())
	if s.success, err = jobpolicy.NewCondition(cmp.Or(success, normalSuccess)); err != nil {
		return fmt.Errorf("success: %w", err)
	}
	if s.failure, err = jobpolicy.NewCondition(cmp.Or(failure, normalFailure)); err != nil {
		return fmt.Errorf("failure: %w", err)
	}
	return nil
}

// connect looks up the kind, and starts to watch.
func (s *site) connect(ctx context.Context) error {
	mapping, err := s.options.Core.Mapping(ctx, s.kind)
	if err != nil {
		return fmt.Errorf("the cluster does not know %s: %w", s.kind, err)
	}
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		return fmt.Errorf("%s is not a namespaced resource", s.kind)
	}
	s.resource = mapping.Resource
	s.client = s.options.Client.Resource(s.resource).Namespace(s.namespace)
	return s.open(ctx)
}

// open starts to watch the namespace, unless it is watched already, and returns when it
// has been listed.
func (s *site) open(ctx context.Context) (err error) {
	select {
	case s.opening <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-s.opening }()
	if s.hub == nil {
		s.hub, err = newHub(ctx, s.options.Client, s.options.Core, s.resource, s.namespace, labelValue(s.options.Worker), s.options.Logger)
	}
	return err
}

// leave stops watching. Nobody may use the site any more.
func (s *site) leave() {
	if s.hub != nil {
		s.hub.close()
	}
}

// openTeams opens the teams' namespaces in the background: one that does not exist, or
// that the worker may not see, must not keep it from its other work.
func (r *Runner) openTeams(ctx context.Context) {
	ctx, r.close = context.WithCancel(context.WithoutCancel(ctx))
	for _, s := range r.teams {
		r.background.Go(func() {
			if err := s.open(ctx); err != nil && ctx.Err() == nil {
				r.options.Logger.Warn("cannot watch a namespace whose studies may bring Jobs; retrying with its next trial",
					"namespace", s.namespace, telemetry.LogError, err)
			}
		})
	}
}

// sites returns all namespaces in which the worker creates resources.
func (r *Runner) sites() []*site {
	var all []*site
	if r.home != nil {
		all = append(all, r.home.site)
	}
	sorted := slices.SortedFunc(maps.Keys(r.teams), func(a, b team) int {
		return cmp.Or(strings.Compare(a.namespace, b.namespace), strings.Compare(a.kind, b.kind))
	})
	for _, t := range sorted {
		all = append(all, r.teams[t])
	}
	return all
}

// siteOf returns where an assignment's resource is created.
func (r *Runner) siteOf(a *messaging.Assignment) (*site, error) {
	if a.Run.Job == nil {
		if r.home == nil {
			return nil, fmt.Errorf("this worker has no template (--template): it only evaluates studies that bring a Job (spec.trial.job)")
		}
		return r.home.site, nil
	}
	namespace, ok := study.Namespace(a.StudyName)
	if !ok {
		return nil, fmt.Errorf("spec.trial.job: study %s is not a resource of Kubernetes, so it has no namespace to run a Job in", a.StudyName)
	}
	s := r.teams[teamOf(namespace, a.Run.Job)]
	if s == nil && !a.Run.Job.IsJob() && r.teams[team{namespace, ""}] != nil {
		return nil, fmt.Errorf("spec.trial.job.kind: this worker creates no %s that the studies of namespace %s bring "+
			"(--study-jobs)", a.Run.Job.Kind, namespace)
	}
	if s == nil {
		return nil, fmt.Errorf("spec.trial.job: this worker creates no Jobs that the studies of namespace %s bring (--study-jobs)", namespace)
	}
	return s, nil
}

// planOf returns how an assignment is evaluated.
func (r *Runner) planOf(a *messaging.Assignment) (*plan, error) {
	s, err := r.siteOf(a)
	if err != nil {
		return nil, err
	}
	if a.Run.Job == nil {
		return r.home, nil
	}
	manifest, err := jobshape.Manifest(a.Run.Job)
	if err != nil {
		return nil, err
	}
	t, err := parseTemplate(manifest)
	if err != nil {
		return nil, fmt.Errorf("spec.trial.job: %w", err)
	}
	return &plan{site: s, template: t, container: a.Run.Job.Container, reporter: s.reporter, brought: a.Run.Job}, nil
}

// permitted checks a manifest that a study brought, once its words are filled in.
func (p *plan) permitted(object *unstructured.Unstructured) error {
	if p.brought == nil {
		return nil
	}
	manifest, err := json.Marshal(object.Object)
	if err != nil {
		return fmt.Errorf("spec.trial.job cannot be written as JSON: %w", err)
	}
	return p.options.StudyJobs.CheckFilled(p.namespace, p.brought, manifest)
}

// begun returns the attempts whose resources in this namespace an earlier process of the
// worker created and did not conclude.
func (s *site) begun(ctx context.Context) ([]evaluation.Recovered, error) {
	list, err := s.client.List(ctx,
		metav1.ListOptions{LabelSelector: LabelWorker + "=" + labelValue(s.options.Worker) + ",!" + LabelConcluded})
	if (apierrors.IsForbidden(err) || apierrors.IsNotFound(err)) && s.ownedBy == studyOwner {
		s.options.Logger.Warn("cannot look for Jobs of an earlier process", "namespace", s.namespace, telemetry.LogError, err)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var found []evaluation.Recovered
	for i := range list.Items {
		object := &list.Items[i]
		if object.GetDeletionTimestamp() != nil {
			continue
		}
		if object.GetLabels()[LabelSlot] != "" { // nobody sends it trials any more
			s.discard(ctx, object.GetName())
			continue
		}
		a, err := assignmentOf(object)
		if err == nil {
			// Whoever may create Jobs in a namespace can write the annotation: it counts
			// for this namespace only.
			var of *site
			if of, err = s.siteOf(a); err == nil && of.namespace == s.namespace && of != s {
				continue // the other site of this namespace finds it
			} else if err == nil && of != s {
				err = fmt.Errorf("annotation %s is of namespace %s", AnnotationAttempt, of.namespace)
			}
		}
		if err != nil {
			s.options.Logger.Warn("cannot take over a resource", "namespace", s.namespace, "name", object.GetName(), telemetry.LogError, err)
			continue
		}
		found = append(found, evaluation.Recovered{Assignment: a, Started: object.GetCreationTimestamp().Time})
	}
	return found, nil
}
