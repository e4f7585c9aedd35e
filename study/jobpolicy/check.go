package jobpolicy

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/jobshape"
)

// reserved is the prefix of the labels and annotations that only a worker sets: by them
// it finds its Jobs.
const reserved = "fantasia.dev/"

// Check returns a *study.Problems if the studies of a namespace may not bring the
// template. Texts with ${words} are checked as they are written, so a word cannot stand
// for something that must be allowed.
func (p Policies) Check(namespace string, j *study.Job) error {
	manifest, err := jobshape.Manifest(j)
	if err != nil {
		return err
	}
	return p.CheckFilled(namespace, j, manifest)
}

// CheckFilled is Check for a manifest that a worker has made of a template.
func (p Policies) CheckFilled(namespace string, j *study.Job, manifest []byte) error {
	if _, ok := p[namespace]; !ok || j.IsJob() {
		return p.CheckManifest(namespace, manifest)
	}
	k, err := p.KindOf(namespace, j)
	if err != nil {
		return err
	}
	return p.CheckKind(namespace, k, manifest)
}

// CheckManifest is Check for the manifest of a Job, in JSON: a template's, or one that
// a worker has filled in.
func (p Policies) CheckManifest(namespace string, manifest []byte) error {
	f := &findings{}
	own, ok := p[namespace]
	if !ok {
		f.add("", "namespace %s may not bring Job templates: ask the operator of Fantasia, or use a pool's template", namespace)
		return f.err()
	}
	job, err := jobshape.ReadJob(manifest)
	if !f.shaped(err) {
		return f.err()
	}
	f.jobFields(&job.Spec)
	f.metadata(".metadata", &job.ObjectMeta)
	f.metadata(".spec.template.metadata", &job.Spec.Template.ObjectMeta)
	f.podFields(namespace, own, ".spec.template.spec", &job.Spec.Template.Spec)
	f.podSecurity(namespace, own.level(), ".spec.template", &job.Spec.Template)
	return f.err()
}

// jobFields refuses the fields of a Job that give it other pods, or to another
// controller.
func (f *findings) jobFields(spec *batchv1.JobSpec) {
	for _, field := range []struct {
		name string
		set  bool
	}{
		{"selector", spec.Selector != nil}, {"manualSelector", spec.ManualSelector != nil}, {"managedBy", spec.ManagedBy != nil},
		{"backoffLimitPerIndex", spec.BackoffLimitPerIndex != nil}, {"maxFailedIndexes", spec.MaxFailedIndexes != nil},
	} {
		f.addIf(field.set, ".spec."+field.name, "is not accepted: leave it out")
	}
}

// metadata refuses everything but labels and annotations with names of the users' own.
func (f *findings) metadata(field string, m *metav1.ObjectMeta) {
	f.addIf(!plain(m), field, "may only have labels and annotations")
	for _, part := range []struct {
		field string
		texts map[string]string
	}{{field + ".labels", m.Labels}, {field + ".annotations", m.Annotations}} {
		for _, name := range slices.Sorted(maps.Keys(part.texts)) {
			f.addIf(strings.HasPrefix(name, reserved), part.field, "%q is not accepted: names that begin with %s are reserved for workers", name,
				reserved)
		}
	}
}

// podFields checks what the Pod Security Standards do not.
func (f *findings) podFields(namespace string, own Policy, pod string, spec *corev1.PodSpec) {
	account := cmp.Or(spec.ServiceAccountName, spec.DeprecatedServiceAccount, defaultAccount)
	if old := spec.DeprecatedServiceAccount; old != "" && old != account {
		f.add(pod+".serviceAccount", "is %q, but serviceAccountName is %q: leave serviceAccount out", old, account)
	}
	f.addIf(!allows(own.accounts(), account), pod+".serviceAccountName",
		"the Jobs of namespace %s may not run as service account %q; they may run as %s", namespace, account, listed(own.accounts()))
	if class := spec.PriorityClassName; class != "" && !allows(own.PriorityClasses, class) {
		f.add(pod+".priorityClassName", "the Jobs of namespace %s may not have priority class %q; they may have %s", namespace, class,
			listed(own.PriorityClasses))
	}
	f.addIf(spec.Priority != nil, pod+".priority", "is not accepted: leave it out")
	f.addIf(spec.NodeName != "", pod+".nodeName", "%q is not accepted: use nodeSelector or affinity, which the scheduler respects",
		spec.NodeName)
	f.addIf(len(spec.EphemeralContainers) > 0, pod+".ephemeralContainers", "is not accepted: leave it out")
}

// standards evaluates the Pod Security Standards.
var standards = sync.OnceValues(func() (policy.Evaluator, error) {
	return policy.NewEvaluator(policy.DefaultChecks(), nil)
})

// podSecurity checks a pod against a Pod Security Standard, in its latest version.
func (f *findings) podSecurity(namespace string, level api.Level, at string, pod *corev1.PodTemplateSpec) {
	evaluator, err := standards()
	if err != nil {
		f.add(at, "the Pod Security Standards cannot be checked: %v", err)
		return
	}
	for _, result := range evaluator.EvaluatePod(api.LevelVersion{Level: level, Version: api.LatestVersion()}, &pod.ObjectMeta, &pod.Spec) {
		if result.Allowed {
			continue
		}
		why := result.ForbiddenReason
		if result.ForbiddenDetail != "" {
			why += " (" + result.ForbiddenDetail + ")"
		}
		f.add(at, "%s: the Jobs of namespace %s must meet the Pod Security Standard %q", why, namespace, level)
	}
}
