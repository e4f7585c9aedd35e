package migrate

import (
	"errors"
	"fmt"
	"strings"

	yaml "go.yaml.in/yaml/v4"

	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/jobshape"
)

// templateField is where an Experiment has the trial's resource.
const templateField = "spec.trialTemplate.trialSpec"

// katibConditions are the conditions with which Katib tells how a Job, or a job of the training operator, ended, unless
// an Experiment has its own (pkg/apis/controller/experiments/v1beta1/experiment_defaults.go
// of Katib). A study's Jobs end by the same conditions.
var katibConditions = map[string]bool{
	"": true,
	`status.conditions.#(type=="Complete")#|#(status=="True")#`:  true,
	`status.conditions.#(type=="Succeeded")#|#(status=="True")#`: true,
	`status.conditions.#(type=="Failed")#|#(status=="True")#`:    true,
}

// job puts the trial's resource into the study, as the template of its Jobs.
func (t *katibTrialTemplate) job(r *Result, s *study.Spec) error {
	version, kind := value(field(&t.Spec, "apiVersion")), value(field(&t.Spec, "kind"))
	j := &study.Job{Container: t.Container}
	switch group, _, _ := strings.Cut(version, "/"); {
	case version == "batch/v1" && kind == "Job":
	case version == "" || kind == "" || group == "batch":
		return fmt.Errorf("%w: %s: apiVersion %q, kind %q: want a Job of batch/v1, or another kind with pod templates", ErrSource, templateField,
			version, kind)
	default:
		j.APIVersion, j.Kind = version, kind
	}
	if err := t.jobMetadata(r, j); err != nil {
		return err
	}
	for i := 0; i+1 < len(t.Spec.Content); i += 2 {
		if key := t.Spec.Content[i].Value; key != "apiVersion" && key != "kind" && key != "metadata" && key != "spec" && key != "status" {
			return fmt.Errorf("%w: %s.%s: is not a field of a %s; want metadata and spec", ErrSource, templateField, key, kind)
		}
	}
	spec := field(&t.Spec, "spec")
	if spec == nil || spec.Kind != yaml.MappingNode {
		return fmt.Errorf("%w: %s.spec is missing: want the spec of a %s, with its pod templates", ErrSource, templateField, kind)
	}
	if key := wordInKey(spec); key != "" {
		return fmt.Errorf("%w: %s: the key %q: parameters can only be in values", ErrSource, templateField, key)
	}
	if err := spec.Decode(&j.Spec); err != nil {
		return fmt.Errorf("%w: %s.spec: %w", ErrSource, templateField, err)
	}
	withoutNulls(j.Spec)
	if !j.IsJob() {
		if err := t.otherKind(r, j, spec); err != nil {
			return err
		}
	}
	if err := jobshape.Check(j); err != nil {
		return fmt.Errorf("%w: %w", ErrSource, inExperiment(err))
	}
	s.Trial.Job = j
	for _, c := range []struct{ field, text string }{{"successCondition", t.Success}, {"failureCondition", t.Failure}} {
		if !katibConditions[c.text] {
			r.note("%s was left out: a study's Job ends by its conditions Complete or Succeeded, and Failed, not by %s", c.field, c.text)
		}
	}
	r.note("the study brings its Job, so it runs only as a resource of Kubernetes: kubectl apply it in a namespace whose studies may bring " +
		"Jobs, and set spec.pool to a pool that creates Jobs (docs/operate/studies-on-kubernetes.md)")
	return nil
}

// otherKind checks what is known of a kind besides Job, and says what the operator must do.
func (t *katibTrialTemplate) otherKind(r *Result, j *study.Job, spec *yaml.Node) error {
	templates := jobshape.PodTemplates(j.Spec, "spec")
	if len(templates) == 0 {
		return fmt.Errorf("%w: %s: a study cannot bring a %s, which has no pod template that could be checked: leave --job out, and give the "+
			"template to kubeworker", ErrSource, templateField, j.Kind)
	}
	if t.Container != "" && find(spec, t.Container) == nil {
		return fmt.Errorf("%w: spec.trialTemplate.primaryContainerName: %q is not the name of a container", ErrSource, t.Container)
	}
	r.note("the operator must allow the kind %s of %s in studies.kinds, with the pod templates %s and the one that reports "+
		"(docs/operate/studies-on-kubernetes.md)", j.Kind, j.APIVersion, strings.Join(templates, ", "))
	return nil
}

// jobMetadata takes the labels and annotations of the trial's resource.
func (t *katibTrialTemplate) jobMetadata(r *Result, j *study.Job) error {
	metadata := field(&t.Spec, "metadata")
	if metadata == nil {
		return nil
	}
	for i := 0; i+1 < len(metadata.Content); i += 2 {
		name, from := metadata.Content[i].Value, metadata.Content[i+1]
		var into *map[string]string
		switch name {
		case "labels":
			into = &j.Metadata.Labels
		case "annotations":
			into = &j.Metadata.Annotations
		case "namespace":
			r.note("metadata.namespace %s was left out: a study's Jobs run in the study's namespace", from.Value)
			continue
		case "name", "generateName":
			r.note("metadata.%s %s was left out: each Job gets a name of its own", name, from.Value)
			continue
		case "creationTimestamp":
			continue
		default:
			return fmt.Errorf("%w: %s.metadata.%s has no counterpart: a study's Job may only have labels and annotations", ErrSource,
				templateField, name)
		}
		if key := wordInKey(from); key != "" {
			return fmt.Errorf("%w: %s.metadata.%s: the key %q: parameters can only be in values", ErrSource, templateField, name, key)
		}
		if err := from.Decode(into); err != nil {
			return fmt.Errorf("%w: %s.metadata.%s: %w", ErrSource, templateField, name, err)
		}
	}
	return nil
}

// wordInKey returns a key of a mapping that contains a ${word}, which only values may.
func wordInKey(n *yaml.Node) string {
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 && strings.Contains(child.Value, "${") {
			return child.Value
		}
		if key := wordInKey(child); key != "" {
			return key
		}
	}
	return ""
}

// withoutNulls removes fields that are null, which Kubernetes takes as absent.
func withoutNulls(v any) {
	switch v := v.(type) {
	case map[string]any:
		for key, element := range v {
			if element == nil {
				delete(v, key)
			}
			withoutNulls(element)
		}
	case []any:
		for _, element := range v {
			withoutNulls(element)
		}
	}
}

// inExperiment names the fields of problems with a study's Job as the Experiment does.
func inExperiment(err error) error {
	problems, ok := errors.AsType[*study.Problems](err)
	if !ok {
		return err
	}
	named := &study.Problems{}
	for _, p := range problems.List {
		p.Path = templateField + strings.TrimPrefix(p.Path, "spec.trial.job")
		if p.Path == templateField+".container" {
			p.Path = "spec.trialTemplate.primaryContainerName"
		}
		named.List = append(named.List, p)
	}
	return named
}
