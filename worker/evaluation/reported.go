package evaluation

import (
	"os"
	"strings"

	"github.com/fantasia-hpo/fantasia/messaging"
)

// Reported returns the ending that a program reported itself: the point is infeasible,
// it wants to be run again, or it has failed. The reason may be empty. The first one
// set counts; the result is nil if all are nil.
func Reported(infeasible, retry, failed *string) *Ending {
	switch {
	case infeasible != nil:
		return said(messaging.OutcomeInfeasible, messaging.ReasonInfeasible, "infeasible", *infeasible)
	case retry != nil:
		return said(messaging.OutcomeHandedBack, messaging.ReasonRetry, "the program asked for a retry", *retry)
	case failed != nil:
		return said(messaging.OutcomeFailed, messaging.ReasonReported, "the program reported an error", *failed)
	default:
		return nil
	}
}

func said(outcome messaging.Outcome, reason, what, why string) *Ending {
	if why != "" {
		what += ": " + why
	}
	return &Ending{Outcome: outcome, Failure: &messaging.Failure{Reason: reason, Message: what}}
}

// Bounded returns the beginning of a text, at most n bytes of valid UTF-8.
func Bounded(text string, n int) string {
	if len(text) > n {
		text = text[:n]
	}
	return strings.ToValidUTF8(text, "")
}

// HasFiles reports whether anything is in a directory, which need not exist.
func HasFiles(dir string) bool {
	d, err := os.Open(dir)
	if err != nil {
		return false
	}
	defer func() { _ = d.Close() }() // only read
	names, _ := d.Readdirnames(1)    // no names with an error
	return len(names) > 0
}
