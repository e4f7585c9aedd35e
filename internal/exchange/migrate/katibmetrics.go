package migrate

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/fantasia-hpo/fantasia/study"
)

// katibFormat is the default format of Katib's collectors: a name, an equals sign, a
// number.
const katibFormat = `([\w|-]+)\s*=\s*([+-]?\d*(\.\d+)?([EeDd][+-]?\d+)?)`

// jsonFormat is the equivalent for a line of JSON.
const jsonFormat = `"([\w|-]+)"\s*:\s*"?([+-]?\d*(?:\.\d+)?(?:[EeDd][+-]?\d+)?)`

// diverged matches what Katib's formats do not: a value that is NaN or infinite, as C, Python, Java,
// R and Fortran print it. It comes first, since Katib's own formats also match nothing.
const diverged = `[+-]?(?i:nan|inf(?:inity)?)\b(?:\(\w*\))?|[+-]?1\.#\w+|\bNA\b|`

// katibEvents is where Katib looks for event files without a path
// (pkg/apis/controller/common/v1beta1/common_types.go of Katib).
const katibEvents = "/var/log/katib/tfevent/"

// metrics converts the metrics collector's settings to a pattern.
func (e *experimentSpec) metrics(r *Result, s *study.Spec) error {
	format := katibFormat
	if c := e.Collector; c != nil {
		switch kind := c.Collector.Kind; kind {
		case "", "StdOut":
		case "File":
			if c.Source.File.Format == "JSON" {
				format = jsonFormat
			}
		case "TensorFlowEvent":
			e.events(r, s)
			return nil
		case "None", "Push":
			r.note("metricsCollectorSpec %s: the program reports its metrics itself: see docs/tune/attach.md for how", kind)
			return nil
		default:
			return fmt.Errorf("%w: spec.metricsCollectorSpec.collector.kind %q: want StdOut, File, TensorFlowEvent, None or Push; a program that "+
				"prints its metrics needs no collector", ErrSource, kind)
		}
		if formats := c.Source.Filter.Formats; len(formats) > 0 {
			format = formats[0]
			if len(formats) > 1 {
				r.note("metricsFormat: only the first of %d was taken", len(formats))
			}
		}
	}
	var patterns []string
	for _, metric := range append([]string{e.Objective.Metric}, e.Objective.Additional...) {
		group := study.GroupName(metric)
		if group != metric {
			r.note("metric %s is called %s here", metric, group)
		}
		one, err := metricPattern(format, metric, group)
		if err != nil {
			return err
		}
		patterns = append(patterns, one)
	}
	s.Objective.Metric = study.GroupName(e.Objective.Metric)
	s.Trial.Metrics = &study.Metrics{Pattern: strings.Join(patterns, "|")}
	return nil
}

// events reads the event files of a TensorFlowEvent collector.
func (e *experimentSpec) events(r *Result, s *study.Spec) {
	folder := path.Clean(cmp.Or(e.Collector.Source.File.Path, katibEvents))
	s.Trial.Metrics = &study.Metrics{Events: folder}
	r.note("event files are read in %s by the sidecar, which shares that folder, empty at first, with the program: start kubeworker with "+
		"--sidecar, or set kubejob.sidecar of the chart's pool. "+
		"Where there are no containers, have the program write below $FANTASIA_TRIAL_DIR, and name that folder in spec.trial.metrics.events",
		folder)
	r.note("a metric is the whole tag of a scalar, as in TensorBoard, where Katib takes each tag that begins with its name")
}

// metricPattern converts a format, whose first group is any metric's name and whose
// second is its value, to a pattern for one metric.
func metricPattern(format, metric, group string) (string, error) {
	spans := groups(format)
	if len(spans) < 2 || spans[1][0] < spans[0][1] {
		return "", fmt.Errorf("%w: metricsFormat %q: want two groups, a metric's name and its value", ErrSource, format)
	}
	name, value := spans[0], spans[1]
	lead := cmp.Or(format[:name[0]], `(?:^|[^\w-])`) // loss must not match in val-loss
	pattern := lead + regexp.QuoteMeta(metric) + format[name[1]:value[0]] + "(?P<" + group + ">" + diverged + format[value[0]+1:value[1]] +
		format[value[1]:]
	if _, err := regexp.Compile(pattern); err != nil {
		return "", fmt.Errorf("%w: metricsFormat %q: %w", ErrSource, format, err)
	}
	return pattern, nil
}

// groups returns the outer capturing groups of a regular expression: the positions of
// their opening parentheses and after their closing ones.
func groups(expr string) [][2]int {
	var spans [][2]int
	var open []int // places of open parentheses
	outer, class := -1, false
	for i := 0; i < len(expr); i++ {
		switch c := expr[i]; {
		case c == '\\':
			i++
		case class:
			class = c != ']'
		case c == '[':
			class = true
			if strings.HasPrefix(expr[i+1:], "]") || strings.HasPrefix(expr[i+1:], "^]") {
				i += 1 + strings.IndexByte(expr[i+1:], ']') // a bracket that is in the class
			}
		case c == '(':
			capturing := i+1 >= len(expr) || expr[i+1] != '?'
			if outer < 0 && capturing {
				outer = len(open)
			}
			open = append(open, i)
		case c == ')' && len(open) > 0:
			last := len(open) - 1
			if last == outer {
				spans = append(spans, [2]int{open[last], i + 1})
				outer = -1
			}
			open = open[:last]
		}
	}
	return spans
}
