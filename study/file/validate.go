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
func complete(s *study.Study, r *check.Report, o *options) {
	r.AddIf(s.APIVersion != study.APIVersion, "apiVersion", "%s: write %s", given(s.APIVersion), study.APIVersion)
	r.AddIf(s.Kind != study.Kind, "kind", "%s: write %s", given(s.Kind), study.Kind)
	if !study.IsName(s.Metadata.Name) {
		r.Add("metadata.name", "%s: a name is lower-case letters, digits and dashes, at most %d, with no dash at its ends",
			given(s.Metadata.Name), study.MaxLabel)
	}
	for _, p := range slices.Concat(study.CheckLabels("metadata.labels", s.Metadata.Labels), study.CheckNote("spec.note", s.Spec.Note),
		study.CheckAttributes("spec.attributes", s.Spec.Attributes)) {
		r.Add(p.Path, "%s", p.Message)
	}
	spec := &s.Spec
	criteria.Complete(spec, r)
	celspace.Compile(r, "spec.", spec)
	r.AddIf(spec.LearnParameters && !spec.ByClients(), "spec.learnParameters",
		"is only for studies whose trials clients of the API evaluate: leave out spec.trial.command and spec.trial.job")
	completeAlgorithm(spec, r, o)
	criteria.Limits(spec, r)
	criteria.Cost(spec, r)
	criteria.StopWhen(spec, r)
	criteria.LearnFrom(spec, r)
	completeEarlyStopping(spec, r, o)
	checkBudget(&spec.Budget, r)
	if spec.Parallelism == 0 && r.Places["spec.parallelism"] == (check.Place{}) {
		spec.Parallelism = study.DefaultParallelism
		if spec.ByClients() {
			spec.Parallelism = study.DefaultClientParallelism
		}
	}
	checkRange(r, "spec.parallelism", spec.Parallelism, 1, maxParallelism)
	spec.Pool = cmp.Or(spec.Pool, study.DefaultPool)
	if len(spec.Pool) > study.MaxLabel || strings.ContainsFunc(spec.Pool, func(c rune) bool {
		return !check.IsLetter(c) && !check.IsDigit(c) && c != '-' && c != '_'
	}) {
		r.Add("spec.pool", "%q: a pool is letters, digits, dashes and underscores, at most %d", spec.Pool, study.MaxLabel)
	}
	switch {
	case spec.Trial.Job != nil:
		completeTrial(spec, r)
		checkJob(&spec.Trial, r, spec.Parameters)
	case len(spec.Trial.Command) == 0 && r.Places["spec.trial.command"] == (check.Place{}):
		checkNoCommand(&spec.Trial, r)
	default:
		completeTrial(spec, r)
		checkCommand(&spec.Trial, r, spec.Parameters)
	}
	completeRetries(&spec.Trial.Retries, r)
}

// checkNoCommand checks the trial of a study whose trials clients ask for. It accepts
// the defaults that Kubernetes fills in.
func checkNoCommand(t *study.TrialTemplate, r *check.Report) {
	for _, field := range []struct {
		name string
		set  bool
	}{
		{"mode", t.Mode != "" && t.Mode != study.DefaultMode}, {"metrics", t.Metrics != nil}, {"workdir", t.Workdir != ""},
		{"env", len(t.Env) > 0},
		{"timeout", t.Timeout != 0}, {"grace", t.Grace != 0 && t.Grace != study.DefaultGrace},
	} {
		r.AddIf(field.set, "spec.trial."+field.name, "needs a command or a Job: add spec.trial.command, or leave %s out, so that clients of "+
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
func checkRange(r *check.Report, path string, value, low, high int) {
	r.AddIf(value < low || value > high, path, "%d is not accepted; want a whole number from %d to %d", value, low, high)
}

func completeAlgorithm(spec *study.Spec, r *check.Report, o *options) {
	const path = "spec.algorithm"
	a := &spec.Algorithm
	if a.Name == "" {
		a.Name = o.algorithm
	}
	completeWait(r, path+".wait", &a.Wait, study.DefaultWait)
	completeWait(r, path+".fallbackAfter", &a.FallbackAfter, study.DefaultFallbackAfter)
	if o.algorithms == nil {
		return
	}
	settings, ok := o.algorithms[a.Name]
	if !ok {
		known := slices.Sorted(maps.Keys(o.algorithms))
		r.Add(path+".name", "%q is not an algorithm%s: %s", a.Name, check.DidYouMean(a.Name, known), strings.Join(known, ", "))
		return
	}
	o.criteria.Check(spec, r)
	if settings != nil {
		reportSettings(r, path, settings(a.Settings))
	}
}

// reportSettings reports the problems with the settings of the field at path.
func reportSettings(r *check.Report, path string, problems error) {
	for _, err := range unjoin(problems) {
		if setting, ok := errors.AsType[*SettingError](err); ok {
			r.Add(path+".settings"+check.Key(setting.Name), "%s", setting.message())
		} else {
			r.Add(path+".settings", "%s", err)
		}
	}
}

// completeWait sets the default of a wait and checks it.
func completeWait(r *check.Report, path string, d **study.Duration, normal study.Duration) {
	if *d == nil {
		*d = &normal
	}
	r.AddIf(**d < 0 || **d > maxWait, path, "%s is not accepted; want a duration from 0s to %s", **d, maxWait)
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

func checkBudget(b *study.Budget, r *check.Report) {
	const path = "spec.budget"
	switch unset := b.MaxTrials == 0 && r.Places[path+".maxTrials"] == (check.Place{}); {
	case unset && b.MaxDuration == 0 && b.MaxCost == 0 && r.Places[path+".maxCost"] == (check.Place{}):
		r.Add(path+".maxTrials", "is missing: how many trials to run, or how long in maxDuration, or for how much in maxCost")
	case !unset:
		checkRange(r, path+".maxTrials", b.MaxTrials, 1, maxTrials)
	}
	checkRange(r, path+".maxFailedTrials", b.MaxFailedTrials, 0, maxTrials)
	r.AddIf(b.MaxDuration < 0, path+".maxDuration", "%s is negative: write how long the study may take", b.MaxDuration)
}

// completeTrial checks the trial, except for its command's parameters.
func completeTrial(spec *study.Spec, r *check.Report) {
	const path = "spec.trial"
	t := &spec.Trial
	switch t.Mode {
	case study.ModeProcess, study.ModeStream:
	case "":
		t.Mode = study.DefaultMode
	default:
		r.Add(path+".mode", "%q is not a mode%s: process or stream", t.Mode, check.DidYouMean(string(t.Mode), []string{"process", "stream"}))
	}
	if t.Metrics != nil {
		checkMetrics(t.Metrics, r, spec)
		if t.Mode == study.ModeStream && t.Metrics.File != "" {
			r.Add(path+".metrics.file", "%q is read when a program ends, which in mode stream it does not after a trial: use a pattern, or reports",
				t.Metrics.File)
		}
		if t.Mode == study.ModeStream && t.Metrics.Events != "" {
			r.Add(path+".metrics.events", "%q has the events of one trial, but in mode stream a program evaluates many: use a pattern, or reports",
				t.Metrics.Events)
		}
	}
	checkEnv(r, path+".env", t.Env)
	r.AddIf(strings.ContainsRune(t.Workdir, 0), path+".workdir", "%q holds a NUL character", t.Workdir)
	r.AddIf(t.Timeout < 0, path+".timeout", "%s is negative: write how long an attempt may take", t.Timeout)
	if t.Grace == 0 && r.Places[path+".grace"] == (check.Place{}) {
		t.Grace = study.DefaultGrace
	}
	r.AddIf(t.Grace <= 0, path+".grace", "%s is not positive: write how long a program has to end by itself", t.Grace)
}

// completeRetries sets the defaults of the retries and checks them.
func completeRetries(retries *study.Retries, r *check.Report) {
	for _, kind := range []struct {
		name    string
		retries **int
		normal  int
	}{{"lost", &retries.Lost, study.DefaultRetriesLost}, {"timeout", &retries.Timeout, 0}, {"failed", &retries.Failed, 0}} {
		if *kind.retries == nil {
			*kind.retries = &kind.normal
		}
		checkRange(r, "spec.trial.retries."+kind.name, **kind.retries, 0, maxRetries)
	}
}

// checkMetrics checks how metrics are read, and that they include those of the objectives and
// limits.
func checkMetrics(m *study.Metrics, r *check.Report, spec *study.Spec) {
	const path = "spec.trial.metrics"
	switch {
	case howMany(m.Pattern != "", m.File != "", m.Events != "") != 1:
		r.Add(path, "must have one of pattern, file and events: leave metrics out if the program reports them itself")
	case m.File != "" && !filepath.IsLocal(m.File):
		r.Add(path+".file", "%q: write a path inside of the trial's directory, such as metrics.json", m.File)
	case m.Events != "" && !folder(m.Events):
		r.Add(path+".events", "%q: write a folder inside of the trial's directory, such as logs, or for Jobs an absolute path in the container",
			m.Events)
	case m.Pattern != "":
		if _, err := regexp.Compile(m.Pattern); err != nil {
			r.Add(path+".pattern", "%q is not a regular expression (RE2): %s", m.Pattern, err)
		}
		role := "the objective's metric"
		if len(spec.Several) > 0 {
			role = "the metric of an objective"
		}
		for _, metric := range study.MetricNames(spec.Objectives()) {
			checkGroup(r, m.Pattern, metric, role)
		}
		for _, metric := range spec.LimitMetrics() {
			checkGroup(r, m.Pattern, metric, "the metric of a limit")
		}
		if spec.Cost != nil {
			checkGroup(r, m.Pattern, spec.Cost.Metric, "the metric of the cost")
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
func checkGroup(r *check.Report, pattern, metric, role string) {
	group := study.GroupName(metric)
	if p, err := regexp.Compile(pattern); err == nil && metric != "" && p.SubexpIndex(group) < 0 {
		r.Add("spec.trial.metrics.pattern", "%q has no group named %q, %s: write (?P<%s>…) around its number",
			pattern, group, role, group)
	}
}

// checkEnv checks the names and values of environment variables.
func checkEnv(r *check.Report, path string, env map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		at := path + check.Key(name)
		switch {
		case name == "" || check.IsDigit(rune(name[0])) || strings.ContainsFunc(name, func(c rune) bool {
			return !check.IsLetter(c) && !check.IsDigit(c) && c != '_'
		}):
			r.AddKey(at, "%q is not a valid variable name: use letters, digits and underscores, and no digit first", name)
		case strings.HasPrefix(name, "FANTASIA_"):
			r.AddKey(at, "%q is reserved, as every name that starts with FANTASIA_: choose another", name)
		case strings.ContainsRune(env[name], 0):
			r.Add(at, "the value holds a NUL character")
		}
	}
}

// checkCommand checks each element of the command.
func checkCommand(t *study.TrialTemplate, r *check.Report, params []study.Parameter) {
	const path = "spec.trial.command"
	if len(t.Command) == 0 {
		r.Add(path, "is empty: give the program and its arguments, as in [python, train.py, \"${args}\"], or leave command out, so that "+
			"clients of the API ask for the trials")
		return
	}
	r.AddIf(t.Command[0] == "", path+"[0]", "is empty: give the program's name or path")
	for i, element := range t.Command {
		at := fmt.Sprintf("%s[%d]", path, i)
		r.AddIf(strings.ContainsRune(element, 0), at, "%q holds a NUL character", element)
		words, err := study.CommandWords(element)
		if err != nil {
			r.Add(at, "%s", err)
		}
		for _, word := range words {
			if t.Mode == study.ModeStream {
				r.Add(at, "${%s} is in a command of mode stream, whose program gets each trial's parameters as a line of input: leave it out", word)
				break
			}
			if !study.ReservedWord(word) {
				checkParameterWord(r, at, word, params, "args, overrides, file")
			}
		}
	}
}

// checkParameterWord checks that a ${word} is the name of a parameter, of which one whose name
// could not be parsed may have any; others are the words that would be accepted too.
func checkParameterWord(r *check.Report, path, word string, params []study.Parameter, others string) {
	var names []string
	for _, p := range params {
		switch {
		case p.Name == "":
			return
		case p.Name != word:
			names = append(names, p.Name)
		case len(p.When) > 0:
			r.Add(path, "${%s} names a conditional parameter, which has no value in some trials: use ${args} or ${overrides}", word)
			return
		default:
			return
		}
	}
	r.Add(path, "${%s} names no parameter%s: %s, or %s", word, check.DidYouMean(word, names), strings.Join(names, ", "), others)
}
