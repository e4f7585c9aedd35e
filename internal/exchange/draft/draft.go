// Package draft writes a first study file for a program from the command line by which a person
// starts it.
package draft

import (
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/fantasia-hpo/fantasia/internal/base/each"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/worker/report"
)

// Command is a program with the settings that were found among its arguments.
type Command struct {
	// Argv is the command of a study file.
	Argv []string
	// Settings are in the order of the arguments.
	Settings []Setting
}

// Setting is a named argument.
type Setting struct {
	Name, Value string
	// Line is the setting as a parameter of a study file; empty if it should stay as it is.
	Line string
	// Comment says for people what was guessed.
	Comment string
}

var (
	// named is an argument such as --lr=0.1, -C=3 or Hydra's model.lr=0.1.
	named = regexp.MustCompile(`^(-{0,2})([A-Za-z_][A-Za-z0-9_.-]*)=(.*)$`)
	flag  = regexp.MustCompile(`^--?([A-Za-z_][A-Za-z0-9_.-]*)$`)
	// These say how long, where and how a program runs, so that another value makes no better program.
	kept = regexp.MustCompile(
		`(?i)^((n|num|max)[_.-]?)?(epochs?|steps?|iters?|iterations?|seeds?|random[_.-]?state|ports?|gpus?|devices?|workers?|threads?|jobs?|rank|local[_.-]?rank|verbose|verbosity|version|log[_.-]?interval|save[_.-]?every)$`)
)

// Read finds the settings in a program's command line.
func Read(argv []string) Command {
	c := Command{Argv: slices.Clone(argv)}
	for i := 1; i < len(argv); i++ {
		c.Argv[i] = strings.ReplaceAll(argv[i], "${", "$${")
		name, value, at := "", "", i
		if m := named.FindStringSubmatch(argv[i]); m != nil {
			name, value = m[2], m[3]
		} else if m := flag.FindStringSubmatch(argv[i]); m != nil && i+1 < len(argv) && !flag.MatchString(argv[i+1]) &&
			!strings.Contains(argv[i+1], "=") {
			name, value, at = m[1], argv[i+1], i+1
		}
		if name == "" || value == "" || slices.ContainsFunc(c.Settings, func(s Setting) bool { return s.Name == name }) {
			continue
		}
		s := setting(name, value)
		if s.Line != "" {
			before := argv[at][:len(argv[at])-len(value)]
			c.Argv[at] = strings.ReplaceAll(before, "${", "$${") + "${" + name + "}"
		} else {
			c.Argv[at] = strings.ReplaceAll(argv[at], "${", "$${")
		}
		c.Settings = append(c.Settings, s)
		i = at
	}
	return c
}

// Tuned returns the settings that are parameters.
func (c Command) Tuned() []Setting {
	return slices.DeleteFunc(slices.Clone(c.Settings), func(s Setting) bool { return s.Line == "" })
}

// setting guesses a range from the one value that is known.
func setting(name, value string) Setting {
	s := Setting{Name: name, Value: value}
	head := "{name: " + quoted(name) + ", type: "
	v, err := strconv.ParseFloat(value, 64)
	switch {
	case err == nil && kept.MatchString(name):
		s.Comment = "stays as it is"
	case value == "true" || value == "false":
		s.Line, s.Comment = head+"bool}", "it was "+value
	case value == "True" || value == "False": // Python's
		s.Line, s.Comment = head+`categorical, values: ["True", "False"]}`, "it was "+value
	case err != nil && (len(name) == 1 || !word.MatchString(value)):
		s.Comment = "stays as it is"
	case err != nil:
		s.Comment = "a word, which stays as it is. To tune it, list its choices: " + head + "categorical, values: [" + quoted(value) + ", …]}"
	case math.IsNaN(v) || math.IsInf(v, 0) || math.Abs(v) > 1e15:
		s.Comment = "stays as it is"
	case isInt(value) && v < 0:
		s.Comment = "a negative whole number often stands for something special, so it stays as it is"
	default:
		s.Line, s.Comment = head+bounds(v, isInt(value))+"}", "it was "+value
	}
	return s
}

func isInt(text string) bool {
	_, err := strconv.ParseInt(text, 10, 64)
	return err == nil
}

// bounds returns the type and the range of a number. A float up to 0.1 is taken for a rate, which may be a
// hundred times less or more; one up to 1 for a share, which may be anything from 0 to 1. Any other float
// may be ten times less or more, and an integer four times. Zero and negative numbers have ranges of their own.
func bounds(v float64, whole bool) string {
	const logarithmic = ", scale: log"
	switch {
	case whole && v == 0:
		return "int, min: 0, max: 10"
	case whole:
		return fmt.Sprintf("int, min: %d, max: %d", int64(max(1, v/4)), int64(v*4)) + logarithmic
	case v == 0:
		return "float, min: 0, max: 1"
	case v < 0:
		return fmt.Sprintf("float, min: %s, max: 0", float(2*v))
	case v <= 0.1:
		return fmt.Sprintf("float, min: %s, max: %s", float(v/100), float(min(1, v*100))) + logarithmic
	case v < 1:
		return "float, min: 0, max: 1"
	default:
		return fmt.Sprintf("float, min: %s, max: %s", float(v/10), float(v*10)) + logarithmic
	}
}

// float writes a number with at most three digits.
func float(v float64) string { return strconv.FormatFloat(v, 'g', 3, 64) }

// quoted writes a text as a scalar of YAML's flow style.
func quoted(text string) string {
	if _, boolean := study.BooleanWord(text); boolean || !word.MatchString(text) ||
		slices.Contains([]string{"true", "false", "null", "nan", "inf"}, strings.ToLower(text)) {
		return strconv.Quote(text)
	}
	return text
}

var word = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*$`)

// Study are the other parts of a study file.
type Study struct {
	Name       string
	Objectives []study.Objective
	// Pattern reads the metrics from the output; empty if the program reports them.
	Pattern string
	Trials  int
	// Workdir is where the program runs, relative to the study file.
	Workdir string
}

// File returns the study file. Its first trial has the settings as they are.
func (c Command) File(s Study) []byte {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("# Ranges are guesses from the values of one command line: look at each of them.")
	line("apiVersion: fantasia.dev/v1\nkind: Study\nmetadata: {name: %s}\nspec:", quoted(s.Name))
	aim := func(o study.Objective) string {
		return fmt.Sprintf("{metric: %s, direction: %s}", quoted(o.Metric), o.Direction)
	}
	if len(s.Objectives) == 1 {
		line("  objective: %s", aim(s.Objectives[0]))
	} else {
		line("  objectives:")
		for _, o := range s.Objectives {
			line("    - %s", aim(o))
		}
	}
	line("  parameters:")
	var first []string
	for _, p := range c.Settings {
		if p.Line == "" {
			line("    # %s=%s: %s", p.Name, p.Value, p.Comment)
			continue
		}
		line("    - %s # %s", p.Line, p.Comment)
		value := p.Value
		if value == "True" || value == "False" {
			value = strconv.Quote(value)
		}
		first = append(first, quoted(p.Name)+": "+value)
	}
	line("  initial: [{%s}] # the first trial: the settings as they were", strings.Join(first, ", "))
	line("  budget: {maxTrials: %d}\n  trial:", s.Trials)
	line("    command: [%s]", each.Join(c.Argv, ", ", quoted))
	if s.Workdir != "" && s.Workdir != "." {
		line("    workdir: %s", quoted(s.Workdir))
	}
	if s.Pattern != "" {
		line("    %s", report.Setting(s.Pattern))
	}
	return []byte(b.String())
}

// Name returns a name for a study of a command line: that of its script or program.
func Name(argv []string) string {
	name := filepath.Base(argv[0])
	for _, a := range argv[1:] {
		if ext := filepath.Ext(a); ext != "" && !strings.HasPrefix(a, "-") && !strings.Contains(a, "=") && scripts.MatchString(ext) {
			name = strings.TrimSuffix(filepath.Base(a), ext)
			break
		}
	}
	name = strings.Trim(unnamed.ReplaceAllString(strings.ToLower(name), "-"), "-")
	if name == "" {
		return "study"
	}
	return strings.TrimRight(name[:min(len(name), 63)], "-")
}

var (
	scripts = regexp.MustCompile(`^\.(py|sh|R|r|jl|js|ts|rb|pl|lua|m|jar)$`)
	unnamed = regexp.MustCompile(`[^a-z0-9]+`)
)

// Metrics returns what looks like metrics in a program's output: names before numbers, each once.
func Metrics(output string) []string {
	var names []string
	for _, m := range metric.FindAllStringSubmatch(output, -1) {
		if !slices.Contains(names, m[1]) && len(names) < 20 {
			names = append(names, m[1])
		}
	}
	return names
}

var metric = regexp.MustCompile(`([A-Za-z][\w/.-]*)["']?\s*[:=]\s*[-+]?(?:\d|nan|inf)`)
