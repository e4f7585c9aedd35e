package command

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/worker/evaluation"
	"github.com/fantasia-hpo/fantasia/worker/report"
)

// missing describes what was seen instead of an objective's metric.
func (s *session) missing(metric string, c *capture) string {
	seen := s.output(c)
	if reported := s.reports.Seen(); reported != "" {
		seen = "saw " + reported
	} else {
		seen += report.Advice(c.stdout.lastWords()+"\n"+c.stderr.lastWords(), study.MetricNames(s.task.Assignment.Objectives())...)
	}
	log := c.stderr.path
	said, _ := c.stdout.counts()
	if complained, _ := c.stderr.counts(); complained == 0 && said > 0 {
		log = c.stdout.path
	}
	return fmt.Sprintf("no %q; %s; see %s", metric, seen, log)
}

// output describes how much a program has written besides reports.
func (s *session) output(c *capture) string {
	stdout, lines := c.stdout.counts()
	stderr, more := c.stderr.counts()
	if stdout+stderr == 0 {
		return "the program wrote nothing"
	}
	what := "no report"
	if s.pattern != nil {
		what = "no match of metrics.pattern"
	}
	if lines+more <= 1 {
		return fmt.Sprintf("saw %s in one line (%d bytes) of output", what, stdout+stderr)
	}
	return fmt.Sprintf("saw %s in %d lines (%d bytes) of output", what, lines+more, stdout+stderr)
}

// withWords adds the program's last output to a message, as far as it fits.
func withWords(message string, c *capture) string {
	message = evaluation.Bounded(message, messaging.MaxMessage/2)
	words := c.lastWords()
	if words == "" {
		return message
	}
	const head = "\nIts last output:\n"
	if space := messaging.MaxMessage - len(message) - len(head); len(words) > space {
		words = strings.ToValidUTF8(words[len(words)-space:], "")
	}
	return message + head + words
}

// quoteArgs formats an argv for people, shortened if it is long.
func quoteArgs(argv []string) string {
	quoted := make([]string, len(argv))
	for i, arg := range argv {
		quoted[i] = arg
		if arg == "" || strings.ContainsAny(arg, " \t\n\"'\\$`") {
			quoted[i] = strconv.Quote(arg)
		}
	}
	return evaluation.Bounded(strings.Join(quoted, " "), 512)
}
