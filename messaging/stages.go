package messaging

import "time"

// The phases of an evaluation in a Job of Kubernetes, in order. They are the names of spans, and values in metrics and
// in the API.
const (
	PhaseAdmit    = "admit"    // until the cluster has admitted the Job and made its pod
	PhaseSchedule = "schedule" // until the pod has a node
	PhasePrepare  = "prepare"  // until the pod's network, volumes and initContainers are ready
	PhaseStart    = "start"    // until the program runs: its image is pulled
	PhaseRun      = "run"      // until the program has ended: its own time
	PhaseFinish   = "finish"   // until the worker has its output and its result
)

// Stages are when an attempt passed each stage, by the clock of whoever did it. A stage that it did not pass, or of
// which nothing is known, is zero.
type Stages struct {
	// Created is when its pod was made, Scheduled when the pod had a node, and Prepared when the node had everything
	// but the program's container.
	Created   time.Time `json:"created,omitzero"`
	Scheduled time.Time `json:"scheduled,omitzero"`
	Prepared  time.Time `json:"prepared,omitzero"`
	// Started is when the program started, and Ended when it had ended.
	Started time.Time `json:"started,omitzero"`
	Ended   time.Time `json:"ended,omitzero"`
}

// Phase is a part of an evaluation.
type Phase struct {
	Name       string
	Start, End time.Time
}

// Phases cuts an evaluation from started to ended into its phases. Each begins where the one before ends, and the last
// one ends with the evaluation: the clocks of a cluster and of a worker differ. The time of a stage of which nothing is
// known belongs to the phase after it. Phases returns nil for a nil s, and for an evaluation that has not ended.
func (s *Stages) Phases(started, ended time.Time) []Phase {
	if s == nil || started.IsZero() || ended.Before(started) {
		return nil
	}
	stages := []Phase{
		{Name: PhaseAdmit, End: s.Created}, {Name: PhaseSchedule, End: s.Scheduled}, {Name: PhasePrepare, End: s.Prepared},
		{Name: PhaseStart, End: s.Started}, {Name: PhaseRun, End: s.Ended}, {Name: PhaseFinish, End: ended},
	}
	last := 0 // the first phase that did not end by itself
	for i, p := range stages[:len(stages)-1] {
		if !p.End.IsZero() {
			last = i + 1
		}
	}
	stages[last].End = ended
	var phases []Phase
	at := started
	for _, p := range stages[:last+1] {
		if p.End.IsZero() {
			continue
		}
		p.Start, p.End = at, clamp(p.End, at, ended)
		phases, at = append(phases, p), p.End
	}
	return phases
}

// clamp returns the time of [low, high] that is nearest to t.
func clamp(t, low, high time.Time) time.Time {
	switch {
	case t.Before(low):
		return low
	case t.After(high):
		return high
	}
	return t
}
