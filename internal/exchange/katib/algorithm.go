package katib

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	katibv1beta1 "github.com/fantasia-hpo/fantasia/api/katib/v1beta1"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/registry"
	"github.com/fantasia-hpo/fantasia/optimizer/setting"
)

// Algorithm is the algorithmName with which an Experiment asks for the default optimiser,
// and before a dash and a name, for another.
const Algorithm = "fantasia"

// The settings of an Experiment that are none of the optimiser's.
const (
	settingAlgorithm = "algorithm"
	settingSeed      = "random_state" // as Katib's own algorithms call it
)

// algorithm is the optimiser of an experiment.
type algorithm struct {
	optimizer optimizer.Optimizer
	seed      uint64
	seeded    bool // by a setting
}

func parseAlgorithm(spec *katibv1beta1.AlgorithmSpec) (algorithm, error) {
	var a algorithm
	given := map[string]string{}
	for _, s := range spec.GetAlgorithmSettings() {
		if _, again := given[s.GetName()]; again {
			return a, fmt.Errorf("spec.algorithm.algorithmSettings: %s is set twice; want it once", s.GetName())
		}
		given[s.GetName()] = s.GetValue()
	}
	entry, err := find(spec.GetAlgorithmName(), given)
	if err != nil {
		return a, err
	}
	if text, ok := given[settingSeed]; ok {
		delete(given, settingSeed)
		if a.seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			return a, fmt.Errorf("spec.algorithm.algorithmSettings: %s %q is not accepted; want a whole number from 0 to 2^64-1", settingSeed, text)
		}
		a.seeded = true
	}
	settings := make(map[string]any, len(given))
	for name, text := range given {
		settings[name] = value(entry.Settings, name, text)
	}
	if a.optimizer, err = registry.New(entry.Name, settings); err != nil {
		return a, fmt.Errorf("spec.algorithm.algorithmSettings: %s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return a, nil
}

// find returns the optimiser that an Experiment names. It takes the setting that names one
// out of those given.
func find(name string, given map[string]string) (registry.Entry, error) {
	field, wanted := "algorithmName", strings.TrimPrefix(name, Algorithm+"-")
	if name == Algorithm {
		wanted = registry.Default
		if text, ok := given[settingAlgorithm]; ok {
			field, name, wanted = "algorithmSettings: "+settingAlgorithm, text, text
			delete(given, settingAlgorithm)
		}
	}
	if entry, err := registry.Find(wanted); err == nil {
		return entry, nil
	}
	want := strings.Join(registry.Names(), ", ")
	if field == "algorithmName" {
		want = fmt.Sprintf("%s, or %[1]s- and one of %s", Algorithm, want)
	}
	return registry.Entry{}, fmt.Errorf("spec.algorithm.%s %q is not accepted; want %s", field, name, want)
}

// value converts a setting, which Katib has as text, to the type that the optimiser wants.
// Where it has none, the optimiser refuses the text.
func value(set setting.Set, name, text string) any {
	i := slices.IndexFunc(set, func(s setting.Setting) bool { return s.Name == name })
	if i < 0 {
		return text
	}
	switch set[i].Default.(type) {
	case int, float64:
		if v, err := strconv.ParseFloat(text, 64); err == nil {
			return v
		}
	case bool:
		if text == "true" || text == "false" {
			return text == "true"
		}
	}
	return text
}
