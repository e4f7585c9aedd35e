package file

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/criteria"
	"github.com/fantasia-hpo/fantasia/study/internal/check"
	"github.com/fantasia-hpo/fantasia/study/space/celspace"
)

// The limits on the values of a study.
const (
	maxParallelism = 100_000
	maxRetries     = 1000
	maxTrials      = 1_000_000
	maxWait        = study.Duration(time.Hour) // of Algorithm.Wait and FallbackAfter
)

// complete sets the defaults and reports all problems of the study.
func complete(s *study.Study, found *check.Problems, o *options) {
	found.AddIf(s.APIVersion != study.APIVersion, "apiVersion", "%s: write %s", given(s.APIVersion), study.APIVersion)
	found.AddIf(s.Kind != study.Kind, "kind", "%s: write %s", given(s.Kind), study.Kind)
	if !study.IsName(s.Metadata.Name) {
		found.Add("metadata.name", "%s: a name is lower-case letters, digits and dashes, at most %d, with no dash at its ends",
			given(s.Metadata.Name), study.MaxLabel)
	}
	for _, p := range slices.Concat(study.CheckLabels("metadata.labels", s.Metadata.Labels), study.CheckNote("spec.note", s.Spec.Note),
		study.CheckAttributes("spec.attributes", s.Spec.Attributes)) {
		found.Add(p.Path, "%s", p.Message)
	}
	spec := &s.Spec
	criteria.Complete(spec, found)
	celspace.Compile(found, "spec.", spec)
	found.AddIf(spec.LearnParameters && !spec.ByClients(), "spec.learnParameters",
		"is only for studies whose trials clients of the API evaluate: leave out spec.trial.command and spec.trial.job")
	completeAlgorithm(spec, found, o)
	criteria.Limits(spec, found)
	criteria.Cost(spec, found)
	criteria.StopWhen(spec, found)
	criteria.LearnFrom(spec, found)
	completeEarlyStopping(spec, found, o)
	checkBudget(&spec.Budget, found)
	if spec.Parallelism == 0 && found.Places["spec.parallelism"] == (check.Place{}) {
		spec.Parallelism = study.DefaultParallelism
		if spec.ByClients() {
			spec.Parallelism = study.DefaultClientParallelism
		}
	}
	checkRange(found, "spec.parallelism", spec.Parallelism, 1, maxParallelism)
	spec.Pool = cmp.Or(spec.Pool, study.DefaultPool)
	if len(spec.Pool) > study.MaxLabel || strings.ContainsFunc(spec.Pool, func(c rune) bool {
		return !check.IsLetter(c) && !check.IsDigit(c) && c != '-' && c != '_'
	}) {
		found.Add("spec.pool", "%q: a pool is letters, digits, dashes and underscores, at most %d", spec.Pool, study.MaxLabel)
	}
	switch {
	case spec.Trial.Job != nil:
		completeTrial(spec, found)
		checkJob(&spec.Trial, found, spec.Parameters)
	case len(spec.Trial.Command) == 0 && found.Places["spec.trial.command"] == (check.Place{}):
		checkNoCommand(&spec.Trial, found)
	default:
		completeTrial(spec, found)
		checkCommand(&spec.Trial, found, spec.Parameters)
	}
	completeRetries(&spec.Trial.Retries, found)
}

// checkNoCommand checks the trial of a study whose trials clients ask for. It accepts
// the defaults that Kubernetes fills in.
func checkNoCommand(t *study.TrialTemplate, found *check.Problems) {
	for _, field := range []struct {
		name string
		set  bool
	}{
		{"mode", t.Mode != "" && t.Mode != study.DefaultMode}, {"metrics", t.Metrics != nil}, {"workdir", t.Workdir != ""},
		{"env", len(t.Env) > 0},
		{"timeout", t.Timeout != 0}, {"grace", t.Grace != 0 && t.Grace != study.DefaultGrace},
	} {
		found.AddIf(field.set, "spec.trial."+field.name, "needs a command or a Job: add spec.trial.command, or leave %s out, so that clients of "+
			"the API ask for the trials", field.name)
	}
}

// given describes a missing or an unacceptable text for a message.
func given(text string) string {
	if text == "" {
		return "is missing"
	}
	return fmt.Sprintf("%q is not accepted", text)
}

// checkRange reports a number outside its range.
func checkRange(found *check.Problems, path string, value, low, high int) {
	found.AddIf(value < low || value > high, path, "%d is not accepted; want a whole number from %d to %d", value, low, high)
}

func completeAlgorithm(spec *study.Spec, found *check.Problems, o *options) {
	const path = "spec.algorithm"
	a := &spec.Algorithm
	if a.Name == "" {
		a.Name = o.algorithm
	}
	completeWait(found, path+".wait", &a.Wait, study.DefaultWait)
	completeWait(found, path+".fallbackAfter", &a.FallbackAfter, study.DefaultFallbackAfter)
	if o.algorithms == nil {
		return
	}
	settings, ok := o.algorithms[a.Name]
	if !ok {
		known := slices.Sorted(maps.Keys(o.algorithms))
		found.Add(path+".name", "%q is not an algorithm%s: %s", a.Name, check.DidYouMean(a.Name, known), strings.Join(known, ", "))
		return
	}
	o.criteria.Check(spec, found)
	if settings != nil {
		reportSettings(found, path, settings(a.Settings))
	}
}

// reportSettings reports the problems with the settings of the field at path.
func reportSettings(found *check.Problems, path string, wrong error) {
	for _, err := range unjoin(wrong) {
		if setting, ok := errors.AsType[*SettingError](err); ok {
			found.Add(path+".settings"+check.Key(setting.Name), "%s", setting.message())
		} else {
			found.Add(path+".settings", "%s", err)
		}
	}
}

// completeWait sets the default of a wait and checks it.
func completeWait(found *check.Problems, path string, d **study.Duration, normal study.Duration) {
	if *d == nil {
		*d = &normal
	}
	found.AddIf(**d < 0 || **d > maxWait, path, "%s is not accepted; want a duration from 0s to %s", **d, maxWait)
}

// unjoin returns the errors that errors.Join joined, also if a single error wraps them;
// none for nil.
func unjoin(err error) []error {
	if err == nil {
		return nil
	}
	for e := err; e != nil; e = errors.Unwrap(e) {
		if joined, ok := e.(interface{ Unwrap() []error }); ok {
			var all []error
			for _, one := range joined.Unwrap() {
				all = append(all, unjoin(one)...)
			}
			return all
		}
	}
	return []error{err}
}

func checkBudget(b *study.Budget, found *check.Problems) {
	const path = "spec.budget"
	switch unset := b.MaxTrials == 0 && found.Places[path+".maxTrials"] == (check.Place{}); {
	case unset && b.MaxDuration == 0 && b.MaxCost == 0 && found.Places[path+".maxCost"] == (check.Place{}):
		found.Add(path+".maxTrials", "is missing: how many trials to run, or how long in maxDuration, or for how much in maxCost")
	case !unset:
		checkRange(found, path+".maxTrials", b.MaxTrials, 1, maxTrials)
	}
	checkRange(found, path+".maxFailedTrials", b.MaxFailedTrials, 0, maxTrials)
	found.AddIf(b.MaxDuration < 0, path+".maxDuration", "%s is negative: write how long the study may take", b.MaxDuration)
}

// completeTrial checks the trial, except for its command's parameters.
func completeTrial(spec *study.Spec, found *check.Problems) {
	const path = "spec.trial"
	t := &spec.Trial
	switch t.Mode {
	case study.ModeProcess, study.ModeStream:
	case "":
		t.Mode = study.DefaultMode
	default:
		found.Add(path+".mode", "%q is not a mode%s: process or stream", t.Mode, check.DidYouMean(string(t.Mode), []string{"process", "stream"}))
	}
	if t.Metrics != nil {
		checkMetrics(t.Metrics, found, spec)
		if t.Mode == study.ModeStream && t.Metrics.File != "" {
			found.Add(path+".metrics.file",
				"%q is read when a program ends, which in mode stream it does not after a trial: use a pattern, or reports",
				t.Metrics.File)
		}
		if t.Mode == study.ModeStream && t.Metrics.Events != "" {
			found.Add(path+".metrics.events",
				"%q has the events of one trial, but in mode stream a program evaluates many: use a pattern, or reports",
				t.Metrics.Events)
		}
	}
	checkEnv(found, path+".env", t.Env)
	found.AddIf(strings.ContainsRune(t.Workdir, 0), path+".workdir", "%q holds a NUL character", t.Workdir)
	found.AddIf(t.Timeout < 0, path+".timeout", "%s is negative: write how long an attempt may take", t.Timeout)
	if t.Grace == 0 && found.Places[path+".grace"] == (check.Place{}) {
		t.Grace = study.DefaultGrace
	}
	found.AddIf(t.Grace <= 0, path+".grace", "%s is not positive: write how long a program has to end by itself", t.Grace)
}

// completeRetries sets the defaults of the retries and checks them.
func completeRetries(retries *study.Retries, found *check.Problems) {
	for _, kind := range []struct {
		name    string
		retries **int
		normal  int
	}{{"lost", &retries.Lost, study.DefaultRetriesLost}, {"timeout", &retries.Timeout, 0}, {"failed", &retries.Failed, 0}} {
		if *kind.retries == nil {
			*kind.retries = &kind.normal
		}
		checkRange(found, "spec.trial.retries."+kind.name, **kind.retries, 0, maxRetries)
	}
}

// checkMetrics checks how metrics are read, and that they include those of the objectives and
// limits.
func checkMetrics(m *study.Metrics, found *check.Problems, spec *study.Spec) {
	const path = "spec.trial.metrics"
	switch {
	case howMany(m.Pattern != "", m.File != "", m.Events != "") != 1:
		found.Add(path, "must have one of pattern, file and events: leave metrics out if the program reports them itself")
	case m.File != "" && !filepath.IsLocal(m.File):
		found.Add(path+".file", "%q: write a path inside of the trial's directory, such as metrics.json", m.File)
	case m.Events != "" && !folder(m.Events):
		found.Add(path+".events",
			"%q: write a folder inside of the trial's directory, such as logs, or for Jobs an absolute path in the container",
			m.Events)
	case m.Pattern != "":
		if _, err := regexp.Compile(m.Pattern); err != nil {
			found.Add(path+".pattern", "%q is not a regular expression (RE2): %s", m.Pattern, err)
		}
		role := "the objective's metric"
		if len(spec.Several) > 0 {
			role = "the metric of an objective"
		}
		for _, metric := range study.MetricNames(spec.Objectives()) {
			checkGroup(found, m.Pattern, metric, role)
		}
		for _, metric := range spec.LimitMetrics() {
			checkGroup(found, m.Pattern, metric, "the metric of a limit")
		}
		if spec.Cost != nil {
			checkGroup(found, m.Pattern, spec.Cost.Metric, "the metric of the cost")
		}
	}
}

// howMany returns how many conditions hold.
func howMany(conditions ...bool) (n int) {
	for _, holds := range conditions {
		if holds {
			n++
		}
	}
	return n
}

// folder reports whether a path can be that of metrics.events.
func folder(name string) bool {
	if path.IsAbs(name) {
		return path.Clean(name) == name && name != "/"
	}
	return filepath.IsLocal(name) && filepath.Clean(name) != "."
}

// checkGroup checks that a pattern has a group for a metric; role says which one it
// is.
func checkGroup(found *check.Problems, pattern, metric, role string) {
	group := study.GroupName(metric)
	if p, err := regexp.Compile(pattern); err == nil && metric != "" && p.SubexpIndex(group) < 0 {
		found.Add("spec.trial.metrics.pattern", "%q has no group named %q, %s: write (?P<%s>…) around its number",
			pattern, group, role, group)
	}
}

// checkEnv checks the names and values of environment variables.
func checkEnv(found *check.Problems, path string, env map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		at := path + check.Key(name)
		switch {
		case name == "" || check.IsDigit(rune(name[0])) || strings.ContainsFunc(name, func(c rune) bool {
			return !check.IsLetter(c) && !check.IsDigit(c) && c != '_'
		}):
			found.AddKey(at, "%q is not a valid variable name: use letters, digits and underscores, and no digit first", name)
		case strings.HasPrefix(name, "FANTASIA_"):
			found.AddKey(at, "%q is reserved, as every name that starts with FANTASIA_: choose another", name)
		case strings.ContainsRune(env[name], 0):
			found.Add(at, "the value holds a NUL character")
		}
	}
}

// checkCommand checks each element of the command.
func checkCommand(t *study.TrialTemplate, found *check.Problems, params []study.Parameter) {
	const path = "spec.trial.command"
	if len(t.Command) == 0 {
		found.Add(path, "is empty: give the program and its arguments, as in [python, train.py, \"${args}\"], or leave command out, so that "+
			"clients of the API ask for the trials")
		return
	}
	found.AddIf(t.Command[0] == "", path+"[0]", "is empty: give the program's name or path")
	for i, element := range t.Command {
		at := fmt.Sprintf("%s[%d]", path, i)
		found.AddIf(strings.ContainsRune(element, 0), at, "%q holds a NUL character", element)
		words, err := study.CommandWords(element)
		if err != nil {
			found.Add(at, "%s", err)
		}
		for _, word := range words {
			if t.Mode == study.ModeStream {
				found.Add(at, "${%s} is in a command of mode stream, whose program gets each trial's parameters as a line of input: leave it out", word)
				break
			}
			if !study.ReservedWord(word) {
				checkParameterWord(found, at, word, params, "args, overrides, file")
			}
		}
	}
}

// checkParameterWord checks that a ${word} is the name of a parameter, of which one whose name
// could not be parsed may have any; others are the words that would be accepted too.
func checkParameterWord(found *check.Problems, path, word string, params []study.Parameter, others string) {
	var names []string
	for _, p := range params {
		switch {
		case p.Name == "":
			return
		case p.Name != word:
			names = append(names, p.Name)
		case len(p.When) > 0:
			found.Add(path, "${%s} names a conditional parameter, which has no value in some trials: use ${args} or ${overrides}", word)
			return
		default:
			return
		}
	}
	found.Add(path, "${%s} names no parameter%s: %s, or %s", word, check.DidYouMean(word, names), strings.Join(names, ", "), others)
}
