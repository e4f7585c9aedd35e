package evaluation

import (
	"strings"

	"github.com/fantasia-hpo/fantasia/messaging"
)

// Reported is the ending that a program has reported itself: that the point is
// infeasible, that it wants to be run again, or that it has failed, with why,
// which may be empty. Of several the first counts; nil where all are nil.
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

// Bounded is the beginning of a text, at most n bytes of valid UTF-8.
func Bounded(text string, n int) string {
	if len(text) > n {
		text = text[:n]
	}
	return strings.ToValidUTF8(text, "")
}
