package migrate

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	yaml "go.yaml.in/yaml/v4"

	"github.com/fantasia-hpo/fantasia/internal/base/each"
	"github.com/fantasia-hpo/fantasia/study"
)

// katibTrialTemplate describes how to run a trial.
type katibTrialTemplate struct {
	Container  string              `yaml:"primaryContainerName"`
	PodLabels  map[string]string   `yaml:"primaryPodLabels"`
	Success    string              `yaml:"successCondition"`
	Failure    string              `yaml:"failureCondition"`
	Parameters []templateParameter `yaml:"trialParameters"`
	Spec       yaml.Node           `yaml:"trialSpec"`
	ConfigMap  *yaml.Node          `yaml:"configMap"`

	namespace string // of the experiment
}

type templateParameter struct {
	Name      string `yaml:"name"`
	Reference string `yaml:"reference"`
}

// reference matches a ${…} of a trial template; metadata matches a reference to the
// trial itself, such as ${trialSpec.Labels[custom-key]}.
var (
	reference = regexp.MustCompile(`\$\{trialParameters\.([^}]+)\}`)
	metadata  = regexp.MustCompile(`^\$\{trialSpec\.(\w+)(?:\[([^\]]+)\])?\}$`)
)

// program converts the trial's template: the command of its container for the study,
// and the whole template for Jobs; or, if inline, the whole template for the study.
func (e *experimentSpec) program(r *Result, s *study.Spec, inline bool) error {
	t := &e.Template
	if t.Spec.Kind == 0 {
		if t.ConfigMap != nil {
			return fmt.Errorf("%w: spec.trialTemplate.configMap: the template is in the cluster; want it as trialSpec", ErrSource)
		}
		return fmt.Errorf("%w: spec.trialTemplate.trialSpec is missing", ErrSource)
	}
	words, err := t.words(s, inline)
	if err != nil {
		return err
	}
	t.restarts(r, s, inline)
	if err := substitute(&t.Spec, words); err != nil {
		return err
	}
	r.Container = t.Container
	if len(t.PodLabels) > 0 {
		r.note("primaryPodLabels was left out: kubeworker reads the pod whose container is %q", t.Container)
	}
	if inline {
		return t.job(r, s)
	}
	container := find(&t.Spec, t.Container)
	s.Trial.Command = append(texts(field(container, "command")), texts(field(container, "args"))...)
	if len(s.Trial.Command) == 0 {
		s.Trial.Command = []string{"program", "${args}"}
		r.note("the container %q names no command, its image does: kubeworker runs it; for other workers give spec.trial.command", t.Container)
	}
	for i, part := range s.Trial.Command {
		if strings.Contains(part, "${FANTASIA_") {
			s.Trial.Command[i] = strings.ReplaceAll(part, "${FANTASIA_STUDY}-${FANTASIA_TRIAL}", "trial")
			r.note("the command has the trial's name in it, which only kubeworker knows: elsewhere it is the word trial")
		}
	}
	for _, c := range []struct{ field, flag, text string }{{"successCondition", "--success", t.Success},
		{"failureCondition", "--failure", t.Failure}} {
		if c.text != "" {
			r.note("%s is in another language here: where kubeworker does not know the kind, give it %s in CEL for %s", c.field, c.flag, c.text)
		}
	}
	r.Template, err = encode(&t.Spec)
	return err
}

// words returns the replacement of each ${trialParameters.NAME}; inline says that the
// template will be the study's own.
func (t *katibTrialTemplate) words(s *study.Spec, inline bool) (map[string]string, error) {
	words := make(map[string]string, len(t.Parameters))
	for _, p := range t.Parameters {
		m := metadata.FindStringSubmatch(p.Reference)
		if m == nil {
			words[p.Name] = "${" + ParameterName(p.Reference) + "}"
			if !slices.Contains(study.Names(s.Parameters), ParameterName(p.Reference)) {
				return nil, fmt.Errorf("%w: spec.trialTemplate.trialParameters: %s refers to %q, which is not among spec.parameters", ErrSource,
					p.Name, p.Reference)
			}
			continue
		}
		switch m[1] {
		case "Name":
			words[p.Name] = "${FANTASIA_STUDY}-${FANTASIA_TRIAL}"
			if inline { // where a study is called NAMESPACE.NAME
				words[p.Name] = "${FANTASIA_RESOURCE}-${FANTASIA_TRIAL}"
			}
		case "Kind":
			words[p.Name] = literal(value(field(&t.Spec, "kind")))
		case "APIVersion":
			words[p.Name] = literal(value(field(&t.Spec, "apiVersion")))
		case "Namespace":
			// Katib's trials run in the experiment's namespace.
			words[p.Name] = literal(cmp.Or(t.namespace, value(field(field(&t.Spec, "metadata"), "namespace")), "default"))
		case "Labels", "Annotations":
			words[p.Name] = literal(value(field(field(field(&t.Spec, "metadata"), strings.ToLower(m[1])), m[2])))
		default:
			return nil, fmt.Errorf("%w: spec.trialTemplate.trialParameters: %s refers to %q: want Name, Namespace, Kind, APIVersion, Labels[…] "+
				"or Annotations[…]", ErrSource, p.Name, p.Reference)
		}
	}
	return words, nil
}

// restarts changes how often a Job repeats its program, where a study's own Job may not, and says
// so; elsewhere it says what stays.
func (t *katibTrialTemplate) restarts(r *Result, s *study.Spec, inline bool) {
	job := field(&t.Spec, "spec")
	pod := field(field(job, "template"), "spec")
	policy, limit := field(pod, "restartPolicy"), field(job, "backoffLimit")
	again, err := strconv.Atoi(value(limit))
	repeats := err == nil && again > 0
	switch {
	case !inline && value(policy) == "OnFailure":
		r.note("restartPolicy OnFailure stays in the template: a failed container starts again within its attempt, with the same parameters, " +
			"and its reports continue")
	case !inline && repeats:
		r.note("backoffLimit %d stays in the template: Kubernetes repeats a failed pod within its attempt; spec.trial.retries would count it",
			again)
	case inline:
		if value(policy) == "OnFailure" {
			policy.SetString("Never")
			r.note("restartPolicy OnFailure became Never: a study's Job runs its program once, and spec.trial.retries says how often a trial is " +
				"tried")
			again, repeats = max(again, 1), true
		}
		if repeats {
			if limit != nil {
				limit.Value = "0"
			}
			s.Trial.Retries = study.Retries{Failed: &again}
			r.note("a failed trial is tried %d more times by spec.trial.retries, in place of backoffLimit and restartPolicy", again)
		}
	}
}

// literal escapes a text for use in a template.
func literal(text string) string { return strings.ReplaceAll(text, "${", "$${") }

// substitute replaces references by words, and escapes other text that looks like a
// reference.
func substitute(n *yaml.Node, words map[string]string) error {
	if n.Kind == yaml.ScalarNode && strings.Contains(n.Value, "${") {
		var b strings.Builder
		rest := n.Value
		for _, m := range reference.FindAllStringSubmatchIndex(n.Value, -1) {
			at := m[0] - (len(n.Value) - len(rest))
			word, ok := words[n.Value[m[2]:m[3]]]
			if !ok {
				return fmt.Errorf("%w: spec.trialTemplate.trialSpec: %q: %s is not among trialParameters", ErrSource, n.Value, n.Value[m[0]:m[1]])
			}
			b.WriteString(literal(rest[:at]))
			b.WriteString(word)
			rest = n.Value[m[1]:]
		}
		n.Value = b.String() + literal(rest)
	}
	for _, child := range n.Content {
		if err := substitute(child, words); err != nil {
			return err
		}
	}
	return nil
}

// find returns the first mapping with that name and an image, or for an empty name the
// first with an image; nil if there is none.
func find(n *yaml.Node, name string) *yaml.Node {
	if n.Kind == yaml.MappingNode && field(n, "image") != nil && (name == "" || value(field(n, "name")) == name) {
		return n
	}
	for _, child := range n.Content {
		if found := find(child, name); found != nil {
			return found
		}
	}
	return nil
}

// field returns the value of a mapping's key, or nil.
func field(n *yaml.Node, key string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

func value(n *yaml.Node) string {
	if n == nil {
		return ""
	}
	return n.Value
}

// texts returns the elements of a list as strings.
func texts(n *yaml.Node) []string {
	if n == nil {
		return nil
	}
	return each.Of(n.Content, func(element *yaml.Node) string { return element.Value })
}
