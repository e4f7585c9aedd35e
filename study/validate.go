package study

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// The defaults of a study file, beside DefaultAlgorithm and the scale of a
// parameter.
const (
	DefaultTake        = TakeLast
	DefaultPool        = "default"
	DefaultParallelism = 1
	DefaultMode        = ModeProcess
	DefaultGrace       = Duration(30 * time.Second)
	// DefaultWait and DefaultFallbackAfter are Algorithm.Wait and FallbackAfter: worth
	// it for programs that answer at once, and nothing beside those that train.
	DefaultWait          = Duration(250 * time.Millisecond)
	DefaultFallbackAfter = Duration(5 * time.Second)
	// DefaultRetriesLost is how often a lost attempt is replaced; one that ran
	// into its timeout or failed is not, by default.
	DefaultRetriesLost = 2
)

// Bounds on what a study may ask for.
const (
	maxLabel       = 63
	maxParallelism = 100_000
	maxRetries     = 1000
	maxTrials      = 1_000_000
	maxWait        = Duration(time.Hour) // of Algorithm.Wait and FallbackAfter
)

// complete fills the defaults in and reports all that is wrong with the study.
func (s *Study) complete(r *report, o *options) {
	if s.APIVersion != APIVersion {
		r.add("apiVersion", "%s: write %s", given(s.APIVersion), APIVersion)
	}
	if s.Kind != Kind {
		r.add("kind", "%s: write %s", given(s.Kind), Kind)
	}
	if !isLabel(s.Metadata.Name) {
		r.add("metadata.name", "%s: a name is lower-case letters, digits and dashes, at most %d, with no dash at its ends",
			given(s.Metadata.Name), maxLabel)
	}
	spec := &s.Spec
	spec.Objective.complete(r)
	compileSpace(r, "spec.", spec)
	spec.Algorithm.complete(r, o)
	spec.Budget.check(r)
	if spec.Parallelism == 0 && r.places["spec.parallelism"] == (place{}) {
		spec.Parallelism = DefaultParallelism
	}
	checkRange(r, "spec.parallelism", spec.Parallelism, 1, maxParallelism)
	if spec.Pool == "" {
		spec.Pool = DefaultPool
	}
	if len(spec.Pool) > maxLabel || strings.ContainsFunc(spec.Pool, func(c rune) bool {
		return !isLetter(c) && !isDigit(c) && c != '-' && c != '_'
	}) {
		r.add("spec.pool", "%q: a pool is letters, digits, dashes and underscores, at most %d", spec.Pool, maxLabel)
	}
	spec.Trial.complete(r, spec.Objective.Metric)
	spec.Trial.checkCommand(r, spec.Parameters)
}

// given says in a message what is there instead of what is wanted.
func given(text string) string {
	if text == "" {
		return "is missing"
	}
	return fmt.Sprintf("%q is not accepted", text)
}

// isLabel reports whether the text is a DNS label (RFC 1123).
func isLabel(text string) bool {
	return text != "" && len(text) <= maxLabel && text[0] != '-' && text[len(text)-1] != '-' &&
		!strings.ContainsFunc(text, func(c rune) bool { return (c < 'a' || c > 'z') && !isDigit(c) && c != '-' })
}

// checkRange reports a number outside of what is accepted.
func checkRange(r *report, path string, value, low, high int) {
	if value < low || value > high {
		r.add(path, "%d is not accepted; want a whole number from %d to %d", value, low, high)
	}
}

func (o *Objective) complete(r *report) {
	const path = "spec.objective"
	if o.Metric == "" {
		r.add(path+".metric", "is missing: name the metric that the program reports")
	} else if len(o.Metric) > maxNameLength || strings.ContainsFunc(o.Metric, func(c rune) bool { return c <= ' ' || c == 0x7f }) {
		r.add(path+".metric", "%q: a metric's name has no spaces and at most %d bytes", o.Metric, maxNameLength)
	}
	switch o.Direction {
	case Minimize, Maximize:
	case "":
		r.add(path+".direction", "is missing: minimize or maximize")
	default:
		r.add(path+".direction", "%q is no direction%s: minimize or maximize", o.Direction,
			didYouMean(string(o.Direction), []string{"minimize", "maximize"}))
	}
	switch o.Take {
	case TakeLast, TakeBest:
	case "":
		o.Take = DefaultTake
	default:
		r.add(path+".take", "%q is not accepted; want last or best", o.Take)
	}
	if o.Goal != nil && (math.IsNaN(*o.Goal) || math.IsInf(*o.Goal, 0)) {
		r.add(path+".goal", "%v is not finite: write a finite number", *o.Goal)
	}
}

func (a *Algorithm) complete(r *report, o *options) {
	const path = "spec.algorithm"
	if a.Name == "" {
		a.Name = o.algorithm
	}
	waits(r, path+".wait", &a.Wait, DefaultWait)
	waits(r, path+".fallbackAfter", &a.FallbackAfter, DefaultFallbackAfter)
	if o.algorithms == nil {
		return
	}
	check, ok := o.algorithms[a.Name]
	if !ok {
		known := slices.Sorted(maps.Keys(o.algorithms))
		r.add(path+".name", "%q is no algorithm%s: %s", a.Name, didYouMean(a.Name, known), strings.Join(known, ", "))
		return
	}
	if check == nil {
		return
	}
	for _, err := range unjoin(check(a.Settings)) {
		var setting *SettingError
		if errors.As(err, &setting) {
			r.add(path+".settings"+quoteKey(setting.Name), "%s", setting.message())
		} else {
			r.add(path+".settings", "%s", err)
		}
	}
}

// waits fills the default of a wait in, and checks it.
func waits(r *report, path string, d **Duration, normal Duration) {
	if *d == nil {
		*d = &normal
	}
	if **d < 0 || **d > maxWait {
		r.add(path, "%s is not accepted: a duration from 0s to %s", **d, maxWait)
	}
}

// unjoin is the errors that errors.Join put together, also where one error wraps
// them all; none for nil.
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

func (b *Budget) check(r *report) {
	const path = "spec.budget"
	if b.MaxTrials == 0 && r.places[path+".maxTrials"] == (place{}) {
		r.add(path+".maxTrials", "is missing: how many trials to run")
	} else {
		checkRange(r, path+".maxTrials", b.MaxTrials, 1, maxTrials)
	}
	checkRange(r, path+".maxFailedTrials", b.MaxFailedTrials, 0, maxTrials)
	if b.MaxDuration < 0 {
		r.add(path+".maxDuration", "%s is negative: write how long the study may take", b.MaxDuration)
	}
}

// complete checks all of the trial but its command's parameters.
func (t *Trial) complete(r *report, metric string) {
	const path = "spec.trial"
	switch t.Mode {
	case ModeProcess, ModeStream:
	case "":
		t.Mode = DefaultMode
	default:
		r.add(path+".mode", "%q is no mode%s: process or stream", t.Mode, didYouMean(string(t.Mode), []string{"process", "stream"}))
	}
	if t.Metrics != nil {
		t.Metrics.check(r, metric)
		if t.Mode == ModeStream && t.Metrics.File != "" {
			r.add(path+".metrics.file", "%q is read when a program ends, which in mode stream it does not after a trial: use a pattern, or reports",
				t.Metrics.File)
		}
	}
	checkEnv(r, path+".env", t.Env)
	if strings.ContainsRune(t.Workdir, 0) {
		r.add(path+".workdir", "%q holds a NUL character", t.Workdir)
	}
	if t.Timeout < 0 {
		r.add(path+".timeout", "%s is negative: write how long an attempt may take", t.Timeout)
	}
	if t.Grace == 0 && r.places[path+".grace"] == (place{}) {
		t.Grace = DefaultGrace
	}
	if t.Grace <= 0 {
		r.add(path+".grace", "%s is not positive: write how long a program has to end by itself", t.Grace)
	}
	for _, kind := range []struct {
		name    string
		retries **int
		normal  int
	}{{"lost", &t.Retries.Lost, DefaultRetriesLost}, {"timeout", &t.Retries.Timeout, 0}, {"failed", &t.Retries.Failed, 0}} {
		if *kind.retries == nil {
			*kind.retries = &kind.normal
		}
		checkRange(r, path+".retries."+kind.name, **kind.retries, 0, maxRetries)
	}
}

// check checks how metrics are read, and that the objective's is among them.
func (m *Metrics) check(r *report, metric string) {
	const path = "spec.trial.metrics"
	switch {
	case (m.Pattern == "") == (m.File == ""):
		r.add(path, "must have one of pattern and file: leave metrics out if the program reports them itself")
	case m.File != "" && !filepath.IsLocal(m.File):
		r.add(path+".file", "%q: write a path inside of the trial's directory, such as metrics.json", m.File)
	case m.Pattern != "":
		pattern, err := regexp.Compile(m.Pattern)
		if err != nil {
			r.add(path+".pattern", "%q is no regular expression (RE2): %s", m.Pattern, err)
		} else if metric != "" && pattern.SubexpIndex(metric) < 0 {
			r.add(path+".pattern", "%q has no group named %q, the objective's metric: write (?P<%s>…) around its number",
				m.Pattern, metric, metric)
		}
	}
}

// checkEnv checks the names and values of environment variables.
func checkEnv(r *report, path string, env map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		at := path + quoteKey(name)
		switch {
		case name == "" || isDigit(rune(name[0])) || strings.ContainsFunc(name, func(c rune) bool {
			return !isLetter(c) && !isDigit(c) && c != '_'
		}):
			r.addKey(at, "%q is no name of a variable: letters, digits and underscores, with no digit first", name)
		case strings.HasPrefix(name, "FANTASIA_"):
			r.addKey(at, "%q is reserved, as every name that starts with FANTASIA_: choose another", name)
		case strings.ContainsRune(env[name], 0):
			r.add(at, "the value holds a NUL character")
		}
	}
}

// checkCommand checks each element of the command.
func (t *Trial) checkCommand(r *report, params []Parameter) {
	const path = "spec.trial.command"
	if len(t.Command) == 0 {
		r.add(path, "is empty: give the program and its arguments, as in [python, train.py, \"${args}\"]")
		return
	}
	if t.Command[0] == "" {
		r.add(path+"[0]", "is empty: give the program's name or path")
	}
	for i, element := range t.Command {
		at := fmt.Sprintf("%s[%d]", path, i)
		if strings.ContainsRune(element, 0) {
			r.add(at, "%q holds a NUL character", element)
		}
		pieces, err := splitElement(element)
		if err != nil {
			r.add(at, "%s", err)
		}
		for _, piece := range pieces {
			if piece.word != "" && t.Mode == ModeStream {
				r.add(at, "${%s} is in a command of mode stream, whose program gets each trial's parameters as a line of input: leave it out", piece.word)
				break
			}
			checkWord(r, at, piece.word, params)
		}
	}
}

// checkWord checks that a ${word} is known. A parameter whose name could not be
// read may be any.
func checkWord(r *report, path, word string, params []Parameter) {
	if word == "" || word == wordArgs || word == wordOverrides || word == wordFile {
		return
	}
	var names []string
	for _, p := range params {
		switch {
		case p.Name == "":
			return
		case p.Name != word:
			names = append(names, p.Name)
		case len(p.When) > 0:
			r.add(path, "${%s} names a conditional parameter, which has no value in some trials: use ${args} or ${overrides}", word)
			return
		default:
			return
		}
	}
	r.add(path, "${%s} names no parameter%s: %s, or args, overrides, file", word, didYouMean(word, names), strings.Join(names, ", "))
}
