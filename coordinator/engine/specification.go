package engine

import (
	"fmt"
	"strings"

	"github.com/fantasia-hpo/fantasia/coordinator/pruner"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space"
)

// specification is what the engine was given: the study, and how the caller wants it led. The
// parts of the engine share it, and only read it: set alone changes it, for an Update. space is
// always that of the study's parameters, at version Space of the record.
type specification struct {
	record.Study
	space    *space.Space
	earlier  []optimizer.Earlier // what the study learns from
	ids      IDs
	settings Settings
	*switches
}

// set replaces the study. It compiles the space only if its version is another one, since a
// compiled space is compared by address by those who keep it. On an error nothing has changed.
func (s *specification) set(spec record.Study) error {
	if s.space == nil || spec.Space != s.Space {
		compiled, err := s.settings.Space(&spec.Definition)
		if err != nil {
			return fmt.Errorf("study %s (%s): %w", spec.Definition.Metadata.Name, spec.ID, err)
		}
		s.space = compiled
	}
	s.Study = spec
	if s.earlier == nil {
		s.earlier = optimizer.EarlierOf(&spec.Definition.Spec) // no update changes it
	}
	return nil
}

// byClients reports whether clients of the API evaluate the study's trials: see clients.
func (s *specification) byClients() bool { return s.Definition.Spec.ByClients() }

// direction is that of the first objective.
func (s *specification) direction() study.Direction {
	return s.Definition.Spec.FirstObjective().Direction
}

// parallelism bounds the open trials that have been handed out. It is at least 1.
func (s *specification) parallelism() int { return max(1, s.Definition.Spec.Parallelism) }

// retries returns how many attempts may end in a state and outcome before their trial
// fails.
func (s *specification) retries(state study.AttemptState, kind messaging.Outcome) int {
	r := s.Definition.Spec.Trial.Retries
	limit, fallback := r.Failed, 0
	switch {
	case state == study.AttemptLost:
		limit, fallback = r.Lost, study.DefaultRetriesLost
	case kind == messaging.OutcomeTimeout:
		limit = r.Timeout
	}
	if limit == nil {
		return fallback
	}
	return *limit
}

// unlimited returns the error of an evaluation without the metric of one of the study's limits;
// nil if it has all. A value that is not finite is a value outside of the limit.
func (s *specification) unlimited(metrics map[string]float64) error {
	for _, metric := range s.Definition.Spec.LimitMetrics() {
		if _, ok := metrics[metric]; !ok {
			return invalidf("metrics has no %q, which a limit of the study bounds", metric)
		}
	}
	return nil
}

// current reports whether a request was made for the space as it is now. The points of an answer
// to an earlier one may lie outside of it.
func (s *specification) current(ask *Ask) bool {
	return ask.Space == s.Space || !s.on(safetySpace)
}

// attemptID names an attempt to its worker and in the streams.
func (s *specification) attemptID(t *trial, a *record.Attempt) messaging.AttemptID {
	return messaging.AttemptID{Study: s.ID, Trial: t.rec.Number, Attempt: a.Number, Nonce: a.Nonce}
}

// pointOf returns a user's or a client's point in the form in which records hold it, with numbers
// of their parameters' types.
func (s *specification) pointOf(raw study.Point) (study.Point, error) {
	point, err := s.space.Normalize(raw)
	if err == nil {
		err = s.space.Check(point)
	}
	if err != nil {
		return nil, invalidf("parameters: %v", err)
	}
	return point, nil
}

// samePoint reports whether two points are the same evaluation: their values have the same key.
func (s *specification) samePoint(a, b study.Point) bool { return s.space.Key(a) == s.space.Key(b) }

// blindToSome says that the optimiser needs only some of the latest observations: it ignores
// results, and must not be kept from repeating a point. A space can be finite, and yet have too
// many points to be countable.
func (s *specification) blindToSome() bool {
	if stop := s.Definition.Spec.EarlyStopping; stop != nil && stop.Name == pruner.Model {
		return false // the model needs them
	}
	return s.settings.Blind && !optimizer.NewEncoding(s.space.Searched()).Discrete()
}

// ending describes how a trial has ended.
func (s *specification) ending(t *trial) string {
	text := fmt.Sprintf("trial %d has ended: %s", t.rec.Number, strings.ToUpper(string(t.rec.State)))
	if len(t.rec.Values) > 0 {
		for i, o := range s.Definition.Spec.Objectives() {
			text += fmt.Sprintf("%s %s %v", []string{" with", ","}[min(i, 1)], o.Metric, t.rec.Values[i])
		}
	}
	if a := t.rec.Last(); a != nil && a.Failure != nil {
		text += ": " + a.Failure.Reason
	}
	return text
}
