package kubejob

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// variable is a container's environment variable: with a value, or with the value of a
// field of its pod.
type variable struct{ name, value, field string }

// entry returns the variable as a container's env has it.
func (v variable) entry() map[string]any {
	if v.field != "" {
		return map[string]any{"name": v.name, "valueFrom": map[string]any{"fieldRef": map[string]any{"fieldPath": v.field}}}
	}
	return map[string]any{"name": v.name, "value": v.value}
}

// jobKind is the kind whose fields are known here.
var jobKind = schema.GroupKind{Group: "batch", Kind: "Job"}

// podTemplates finds every pod template in a manifest (any mapping with
// spec.containers), in the order of their paths. A Pod is one itself.
func podTemplates(object map[string]any) []map[string]any {
	if spec, ok := object["spec"].(map[string]any); ok {
		if _, ok := spec["containers"].([]any); ok {
			return []map[string]any{object}
		}
	}
	var found []map[string]any
	for _, key := range slices.Sorted(maps.Keys(object)) {
		switch v := object[key].(type) {
		case map[string]any:
			found = append(found, podTemplates(v)...)
		case []any:
			for _, element := range v {
				if m, ok := element.(map[string]any); ok {
					found = append(found, podTemplates(m)...)
				}
			}
		}
	}
	return found
}

// child returns the mapping of that name, creating it if necessary.
func child(m map[string]any, name string) map[string]any {
	c, ok := m[name].(map[string]any)
	if !ok {
		c = map[string]any{}
		m[name] = c
	}
	return c
}

// absent sets a field unless the template sets it.
func absent(m map[string]any, name string, value any) {
	if _, ok := m[name]; !ok {
		m[name] = value
	}
}

// containerOf returns the pod template's container of that name, the first for an empty
// name, or nil.
func containerOf(pod map[string]any, name string) map[string]any {
	list, _ := child(pod, "spec")["containers"].([]any)
	for _, element := range list {
		c, ok := element.(map[string]any)
		if ok && (name == "" || c["name"] == name) {
			return c
		}
	}
	return nil
}

// setEnvironment puts the variables before the container's own, which may refer to them
// as $(NAME). The container's own values take precedence.
func setEnvironment(container map[string]any, variables []variable) {
	own, _ := container["env"].([]any)
	known := map[any]bool{}
	for _, element := range own {
		if v, ok := element.(map[string]any); ok {
			known[v["name"]] = true
		}
	}
	env := make([]any, 0, len(variables)+len(own))
	for _, v := range variables {
		if !known[v.name] {
			env = append(env, v.entry())
		}
	}
	container["env"] = append(env, own...)
}

// setLabels adds labels to a resource or a pod template.
func setLabels(object map[string]any, labels map[string]string) {
	m := child(child(object, "metadata"), "labels")
	for name, value := range labels {
		m[name] = value
	}
}

// once makes a Job run its pods once, as an attempt requires; retries are up to the
// study. An evicted pod fails the Job at once, with a reason.
func once(spec map[string]any) error {
	if n, ok := spec["backoffLimit"]; ok && n != int64(0) {
		return fmt.Errorf("spec.backoffLimit is %v, must be 0 or left out: an attempt runs once, the study's retries say "+
			"how often a trial does", n)
	}
	spec["backoffLimit"] = int64(0)
	pod := child(child(spec, "template"), "spec")
	if p, ok := pod["restartPolicy"]; ok && p != "Never" {
		return fmt.Errorf("spec.template.spec.restartPolicy is %v, must be Never or left out: an attempt runs once, the "+
			"study's retries say how often a trial does", p)
	}
	pod["restartPolicy"] = "Never"
	absent(spec, "podFailurePolicy", map[string]any{"rules": []any{map[string]any{
		"action": "FailJob", "onPodConditions": []any{map[string]any{"type": "DisruptionTarget", "status": "True"}},
	}}})
	return nil
}

// deadlineMargin is the time after which the cluster ends a Job that the worker should
// have ended, in case the worker is gone.
const deadlineMargin = time.Minute

// bound sets a Job's deadline, and the time that its remains are kept. The deadline counts from
// the Job's own start, so it leaves time for a node to be found and for the image to be pulled.
func (o *Options) bound(spec map[string]any, timeout, grace time.Duration) {
	if timeout > 0 {
		absent(spec, "activeDeadlineSeconds", seconds(timeout+grace+2*o.StartTimeout+deadlineMargin))
	}
	absent(spec, "ttlSecondsAfterFinished", seconds(o.TTL))
}

// seconds rounds up to seconds.
func seconds(d time.Duration) int64 { return int64(math.Ceil(d.Seconds())) }

// injection is what an attempt adds to its template.
type injection struct {
	container string
	reporter  string // as plan.reporter
	labels    map[string]string
	variables []variable
	grace     time.Duration
	sidecar   *sidecar
}

// apply adds the injection to the manifest and all of its pod templates. Only the
// chosen containers get the variables.
func (i injection) apply(object map[string]any) error {
	setLabels(object, i.labels)
	pods := podTemplates(object)
	chosen := 0
	reporter, err := podTemplateAt(object, i.reporter)
	if err != nil {
		return err
	}
	if reporter != nil {
		if containerOf(reporter, i.container) == nil {
			return fmt.Errorf("reporter %s: the pod template has no container %q", i.reporter, i.container)
		}
		setLabels(reporter, map[string]string{LabelReports: "true"})
	}
	for _, pod := range pods {
		setLabels(pod, i.labels)
		absent(child(pod, "spec"), "terminationGracePeriodSeconds", seconds(i.grace))
		c := containerOf(pod, i.container)
		if c == nil {
			continue
		}
		chosen++
		if i.sidecar != nil && (reporter == nil || reports(pod)) {
			if err := i.sidecar.apply(pod, c); err != nil {
				return err
			}
		}
		setEnvironment(c, i.variables)
	}
	if len(pods) > 0 && chosen == 0 {
		if i.container == "" {
			return errors.New("no pod template has a container")
		}
		return fmt.Errorf("no pod template has a container %q", i.container)
	}
	return nil
}

// reports reports whether a pod template was chosen as the reporter.
func reports(pod map[string]any) bool {
	labels, _ := child(pod, "metadata")["labels"].(map[string]any)
	return labels[LabelReports] == "true"
}

// podTemplateAt returns the pod template at a path, nil for an empty one. The error says which part is
// missing.
func podTemplateAt(object map[string]any, path string) (map[string]any, error) {
	if path == "" {
		return nil, nil
	}
	var value any = object
	parts := strings.Split(path, ".")
	for n, part := range parts {
		switch v := value.(type) {
		case map[string]any:
			value = v[part]
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(v) {
				return nil, fmt.Errorf("reporter %s: %s is a list of %d; want an index below it, counted from 0", path,
					strings.Join(parts[:n], "."), len(v))
			}
			value = v[i]
		default:
			value = nil
		}
		if value == nil {
			return nil, fmt.Errorf("reporter %s: the template has no %s", path, strings.Join(parts[:n+1], "."))
		}
	}
	pod, ok := value.(map[string]any)
	if found := podTemplates(pod); !ok || len(found) != 1 || !reflect.DeepEqual(found[0], pod) {
		return nil, fmt.Errorf("reporter %s: it is no pod template; want the path of a mapping with spec.containers", path)
	}
	return pod, nil
}
