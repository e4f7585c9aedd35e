package migrate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	yaml "go.yaml.in/yaml/v4"

	"github.com/fantasia-hpo/fantasia/internal/exchange/katib"
	"github.com/fantasia-hpo/fantasia/study"
)

// experiment holds the used parts of Katib's Experiment, kubeflow.org/v1beta1
// (https://www.kubeflow.org/docs/components/katib/user-guides/hp-tuning/configure-experiment/).
type experiment struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string `yaml:"kind"`
	Metadata   struct {
		Name      string `yaml:"name"`
		Namespace string `yaml:"namespace"`
	} `yaml:"metadata"`
	Spec experimentSpec `yaml:"spec"`
}

type experimentSpec struct {
	Objective struct {
		Type       string           `yaml:"type"`
		Goal       *float64         `yaml:"goal"`
		Metric     string           `yaml:"objectiveMetricName"`
		Additional []string         `yaml:"additionalMetricNames"`
		Strategies []metricStrategy `yaml:"metricStrategies"`
	} `yaml:"objective"`
	Algorithm struct {
		Name     string      `yaml:"algorithmName"`
		Settings []nameValue `yaml:"algorithmSettings"`
	} `yaml:"algorithm"`
	EarlyStopping *struct {
		Name     string      `yaml:"algorithmName"`
		Settings []nameValue `yaml:"algorithmSettings"`
	} `yaml:"earlyStopping"`
	Parallel     *int               `yaml:"parallelTrialCount"`
	Max          *int               `yaml:"maxTrialCount"`
	MaxFailed    *int               `yaml:"maxFailedTrialCount"`
	ResumePolicy string             `yaml:"resumePolicy"`
	Parameters   []katib.Parameter  `yaml:"parameters"`
	NAS          *yaml.Node         `yaml:"nasConfig"`
	Collector    *collectorSpec     `yaml:"metricsCollectorSpec"`
	Template     katibTrialTemplate `yaml:"trialTemplate"`
}

type metricStrategy struct {
	Name  string `yaml:"name"`
	Value string `yaml:"value"`
}

type nameValue struct {
	Name  string `yaml:"name"`
	Value string `yaml:"value"`
}

type collectorSpec struct {
	Collector struct {
		Kind string `yaml:"kind"`
	} `yaml:"collector"`
	Source struct {
		Filter struct {
			Formats []string `yaml:"metricsFormat"`
		} `yaml:"filter"`
		File struct {
			Path   string `yaml:"path"`
			Format string `yaml:"format"`
		} `yaml:"fileSystemPath"`
	} `yaml:"source"`
}

// katibAlgorithms are Katib's algorithms with a counterpart; all others become the
// default, which learns from results as they do.
var katibAlgorithms = map[string]string{
	"random": "random", "sobol": "sobol", "grid": "grid",
	"tpe": "tpe", "multivariate-tpe": "tpe", "cmaes": "cmaes",
}

// KatibOptions configure Katib.
type KatibOptions struct {
	// Job puts the trial's Job into the study, instead of its command. Without it the
	// trial's resource is the Result's Template.
	Job bool
}

// Katib converts an Experiment to a study. Its error wraps ErrSource and names the
// field, its value and what would be accepted.
func Katib(source []byte, o KatibOptions) (*Result, error) {
	var e experiment
	if err := yaml.Unmarshal(source, &e); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSource, err)
	}
	if version := strings.TrimPrefix(e.APIVersion, "kubeflow.org/"); e.Kind == "Experiment" && strings.HasPrefix(version, "v1alpha") {
		return nil, fmt.Errorf("%w: apiVersion %q has the trial's resource as a text, in trialTemplate.goTemplate; want kubeflow.org/v1beta1: "+
			"write the resource as trialTemplate.trialSpec, list each parameter in trialTemplate.trialParameters as {name: NAME, reference: "+
			"PARAMETER}, and write ${trialParameters.NAME} where the text has {{.Value}}, and ${trialSpec.Name} where it has {{.Trial}}",
			ErrSource, e.APIVersion)
	}
	if e.Kind != "Experiment" || !strings.HasPrefix(e.APIVersion, "kubeflow.org/") {
		return nil, fmt.Errorf("%w: apiVersion %q, kind %q: want an Experiment of kubeflow.org/v1beta1", ErrSource, e.APIVersion, e.Kind)
	}
	if e.Spec.NAS != nil {
		return nil, fmt.Errorf("%w: spec.nasConfig: searches of architectures have no counterpart; want spec.parameters", ErrSource)
	}
	r := &Result{}
	s := &study.Study{APIVersion: study.APIVersion, Kind: study.Kind, Metadata: study.Metadata{Name: label(e.Metadata.Name)}}
	if s.Metadata.Name != e.Metadata.Name {
		r.note("the experiment %q is called %s here: a study's name is lower-case letters, digits and dashes", e.Metadata.Name, s.Metadata.Name)
	}
	if n := e.Metadata.Namespace; n != "" {
		r.note("metadata.namespace %s was left out: create the study there with kubectl --namespace %s apply; on a server without namespaces "+
			"it has no meaning", n, n)
	}
	if err := e.Spec.objective(r, &s.Spec); err != nil {
		return nil, err
	}
	var err error
	if s.Spec.Parameters, err = parameters(r, e.Spec.Parameters); err != nil {
		return nil, err
	}
	e.Spec.algorithm(r, &s.Spec)
	if err := e.Spec.earlyStopping(r, &s.Spec); err != nil {
		return nil, err
	}
	e.Spec.budget(r, &s.Spec)
	e.Spec.Template.namespace = e.Metadata.Namespace
	e.Spec.tailFile(r) // BEFORE the program is read
	if err := e.Spec.program(r, &s.Spec, o.Job); err != nil {
		return nil, err
	}
	if err := e.Spec.metrics(r, &s.Spec); err != nil {
		return nil, err
	}
	return r, r.render(s)
}

func (e *experimentSpec) objective(r *Result, s *study.Spec) error {
	o := e.Objective
	s.Objective = study.Objective{Metric: o.Metric, Direction: study.Direction(o.Type), Goal: o.Goal, Take: study.TakeBest}
	if s.Objective.Direction != study.Minimize && s.Objective.Direction != study.Maximize {
		return fmt.Errorf("%w: spec.objective.type %q: want minimize or maximize", ErrSource, o.Type)
	}
	if o.Metric == "" {
		return fmt.Errorf("%w: spec.objective.objectiveMetricName is missing", ErrSource)
	}
	// Katib's default strategy is the extreme that the objective is after.
	for _, strategy := range o.Strategies {
		switch {
		case strategy.Name != o.Metric:
		case strategy.Value == "latest":
			s.Objective.Take = study.TakeLast
		case (strategy.Value == "min") != (s.Objective.Direction == study.Minimize):
			r.note("metricStrategies: %q of a metric to %s has no counterpart: the best report counts", strategy.Value, o.Type)
		}
	}
	return nil
}

func (e *experimentSpec) algorithm(r *Result, s *study.Spec) {
	name := e.Algorithm.Name
	s.Algorithm.Name = katibAlgorithms[name]
	switch {
	case name == "grid":
		r.note("algorithm grid goes through the space in order here too, with the last parameter changing fastest; a double without a step " +
			"has 10 values, min and max among them (settings: points), and finer grids follow")
	case name == "hyperband":
		e.hyperband(r, s)
	case name == "pbt":
		r.note("algorithm %s became the default, which runs every trial to its end unless spec.earlyStopping names a rule", name)
	case s.Algorithm.Name == "tpe" || s.Algorithm.Name == "cmaes":
		r.note("algorithm %s is %s here too; without spec.algorithm the study uses the default, which mostly needs fewer trials", name,
			s.Algorithm.Name)
	case s.Algorithm.Name == "":
		r.note("algorithm %s became the default", name)
	}
	for _, setting := range e.Algorithm.Settings {
		if name == "hyperband" && slices.Contains([]string{"r_l", "eta", "resource_name"}, setting.Name) {
			continue
		}
		seed, err := strconv.ParseUint(setting.Value, 10, 64)
		if setting.Name == "random_state" && err == nil {
			s.Algorithm.Seed = seed
			continue
		}
		r.note("algorithmSettings: %s=%s was left out", setting.Name, setting.Value)
	}
}

// katibMedianStop are the settings of Katib's medianstop: its defaults
// (https://www.kubeflow.org/docs/components/katib/user-guides/early-stopping/) and their
// names here.
var katibMedianStop = map[string]struct {
	name    string
	initial int
}{
	"min_trials_required": {"minCompleted", 3},
	"start_step":          {"minSteps", 4},
}

func (e *experimentSpec) earlyStopping(r *Result, s *study.Spec) error {
	if e.EarlyStopping == nil {
		return nil
	}
	if s.EarlyStopping != nil {
		r.note("earlyStopping %s was left out: %s stops trials here", e.EarlyStopping.Name, s.EarlyStopping.Name)
		return nil
	}
	if e.EarlyStopping.Name != "medianstop" {
		r.note("earlyStopping %s was left out, so every trial runs to its end; spec.earlyStopping has rules such as median and asha",
			e.EarlyStopping.Name)
		return nil
	}
	settings := map[string]any{}
	for _, own := range katibMedianStop {
		settings[own.name] = own.initial
	}
	for _, setting := range e.EarlyStopping.Settings {
		own, known := katibMedianStop[setting.Name]
		if !known {
			r.note("earlyStopping.algorithmSettings: %s=%s was left out", setting.Name, setting.Value)
			continue
		}
		v, err := strconv.Atoi(setting.Value)
		if err != nil || v < 0 {
			return fmt.Errorf("%w: spec.earlyStopping.algorithmSettings: %s %q: want an integer of at least 0", ErrSource, setting.Name,
				setting.Value)
		}
		settings[own.name] = v
	}
	s.EarlyStopping = &study.EarlyStopping{Name: "median", Settings: settings}
	r.note("medianstop became median, which moreover stops no trial in the first and last part of its steps, and none of the best three")
	return nil
}

func (e *experimentSpec) budget(r *Result, s *study.Spec) {
	s.Budget.MaxTrials, s.Parallelism = katib.MaxTrials, katib.Parallelism
	if e.Max != nil {
		s.Budget.MaxTrials = *e.Max
	} else {
		r.note("maxTrialCount was not given: the study ends after %d trials", katib.MaxTrials)
	}
	if e.Parallel != nil {
		s.Parallelism = *e.Parallel
	}
	if e.MaxFailed != nil {
		// Katib fails with the first failed trial beyond this number.
		s.Budget.MaxFailedTrials = *e.MaxFailed + 1
	}
}

func parameters(r *Result, from []katib.Parameter) ([]study.Parameter, error) {
	if len(from) == 0 {
		return nil, fmt.Errorf("%w: spec.parameters is empty", ErrSource)
	}
	made := make([]study.Parameter, len(from))
	for i := range from {
		var err error
		if made[i], err = from[i].Study(r.note); err != nil {
			return nil, fmt.Errorf("%w: spec.parameters[%d] (%s): %w", ErrSource, i, from[i].Name, err)
		}
		if made[i].Name = ParameterName(from[i].Name); made[i].Name != from[i].Name {
			r.renamed(from[i].Name, made[i].Name)
		}
	}
	return made, nil
}

// maxBrackets is the largest number of brackets of asha.
const maxBrackets = 16

// hyperband makes Katib's hyperband: points at random, each with all of the resource, of which asha stops
// the worse ones early, in as many brackets as Hyperband has (Li et al., JMLR 2018, algorithm 1).
// Katib's settings are the name of the parameter that is the resource, its maximum r_l, and eta
// (pkg/suggestion/v1beta1/hyperband of Katib).
func (e *experimentSpec) hyperband(r *Result, s *study.Spec) {
	settings := map[string]string{}
	for _, setting := range e.Algorithm.Settings {
		settings[setting.Name] = setting.Value
	}
	s.Algorithm.Name = "random"
	eta, err := strconv.Atoi(settings["eta"])
	if err != nil || eta < 2 {
		eta = 3 // Katib's default
	}
	most, err := strconv.ParseFloat(settings["r_l"], 64)
	if err != nil || most < 1 || most != float64(int64(most)) {
		r.note("algorithm hyperband became random: r_l is %q, and asha in its place needs a whole number of at least 1", settings["r_l"])
		return
	}
	brackets := 1
	for steps := int64(eta); steps <= int64(most) && brackets < maxBrackets; steps *= int64(eta) {
		brackets++
	}
	s.EarlyStopping = &study.EarlyStopping{Name: "asha", Settings: map[string]any{
		"reduction": eta, "brackets": brackets, "maxSteps": int(most), "minCompleted": 0, "minProgress": 0,
	}}
	name := ParameterName(settings["resource_name"])
	for i := range s.Parameters {
		if s.Parameters[i].Name == name {
			s.Parameters[i] = study.Parameter{Name: name, Type: study.Fixed, Value: most}
		}
	}
	r.note("algorithm hyperband became random with asha in %d brackets: each trial begins with %s=%v, and the worse ones are stopped at "+
		"reports 1, %d, %d and so on. "+
		"This needs one report for each step of %s. Trials are compared as they report, not in rounds", brackets, name, most, eta, eta*eta, name)
}
