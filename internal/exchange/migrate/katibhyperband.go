package migrate

import (
	"strconv"

	"github.com/fantasia-hpo/fantasia/study"
)

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
