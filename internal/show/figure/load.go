package figure

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/optimizer"
)

// Duration formats a duration with about two digits of precision.
func Duration(d time.Duration) string {
	switch {
	case d <= 0:
		return "–"
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	case d < time.Hour:
		return fmt.Sprintf("%dm %02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh %02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd %dh", int(d.Hours())/24, int(d.Hours())%24)
}

// span is when a worker had an attempt; one that still runs has it until now.
type span struct{ from, to Moment }

// busy returns when workers had attempts, in the order of their starts, how many they had at
// once at most, and the first start and the last end.
func (s *Study) busy() (list []span, peak int, whole span) {
	for _, t := range s.All {
		for _, a := range t.Attempts {
			p := span{a.Claimed, max(a.Claimed, cmp.Or(a.Ended, s.Now))}
			list, whole.to = append(list, p), max(whole.to, p.to)
		}
	}
	slices.SortFunc(list, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	if len(list) > 0 {
		whole.from = list[0].from
	}
	n := 0
	for _, c := range s.changes() {
		n += c.by
		peak = max(peak, n)
	}
	return list, peak, whole
}

// Idle says how busy the workers were.
func (s *Study) Idle() string {
	list, peak, whole := s.busy()
	if peak == 0 {
		return "No worker has had an evaluation."
	}
	var total time.Duration
	for _, p := range list {
		total += p.to.Minus(p.from)
	}
	text := fmt.Sprintf("Up to %d evaluations ran at once, of the %d that the study allows.", peak, s.Spec.Parallelism)
	if capacity := whole.to.Minus(whole.from).Seconds() * float64(max(peak, s.Spec.Parallelism)); capacity > 0 {
		text += fmt.Sprintf(" From the first start to the last end, %.1f%% of this capacity was idle.", 100*max(0, 1-total.Seconds()/capacity))
	}
	return text
}

// asynchrony says what it cost not to wait for results, and what it saved.
func (s *Study) asynchrony() (lines []string) {
	if len(s.All) == 0 {
		return nil
	}
	sum, most, fallback := 0, 0, 0
	for _, t := range s.All {
		sum += t.Staleness
		most = max(most, t.Staleness)
		if t.Source == optimizer.SourceFallback {
			fallback++
		}
	}
	lines = append(lines, fmt.Sprintf("The cost: on average a suggestion did not know %.2g results that had arrived meanwhile, and at most "+
		"%d.", float64(sum)/float64(len(s.All)), most))
	if fallback > 0 {
		lines = append(lines, fmt.Sprintf("%d trials were fallbacks, because the optimiser took longer than spec.algorithm.fallbackAfter.",
			fallback))
	}
	list, at, whole := s.busy()
	if at < 2 {
		return lines
	}
	// Batches of as many as there were at once, each as long as its slowest evaluation.
	var batches time.Duration
	for batch := range slices.Chunk(list, at) {
		slowest := slices.MaxFunc(batch, func(a, b span) int { return cmp.Compare(a.to-a.from, b.to-b.from) })
		batches += slowest.to.Minus(slowest.from)
	}
	if took := whole.to.Minus(whole.from); took > 0 && batches > 0 {
		lines = append(lines, fmt.Sprintf("The gain: in batches of %d that wait for their slowest evaluation, the same evaluations would have "+
			"taken at least %s. They took %s.", at, Duration(batches), Duration(took)))
	}
	return lines
}

// Stage is a stage of trials, and how long it took: half of them at most Half, nine of ten
// at most Nine.
type Stage struct {
	Name                string
	Half, Nine, Longest time.Duration
}

// StagesHelp says how to read the stages.
const StagesHelp = "How long the parts of a trial took. Long waits for a worker say that there are too few of them; a long start says " +
	"that the program takes long to begin."

// Stages returns how long each stage of the shown trials took, as far as any passed it.
func (s *Study) Stages() (list []Stage) {
	type stage struct {
		name string
		took func(*Trial) (time.Duration, bool)
	}
	between := func(name string, from, to func(*Trial) Moment) stage {
		return stage{name, func(t *Trial) (time.Duration, bool) {
			return max(0, to(t).Minus(from(t))), from(t) != 0 && to(t) != 0
		}}
	}
	ofJob := func(name, phase string) stage {
		return stage{name, func(t *Trial) (time.Duration, bool) {
			i := slices.IndexFunc(t.Phases, func(p view.Phase) bool { return p.Phase == phase })
			if i < 0 {
				return 0, false
			}
			return time.Duration(t.Phases[i].Seconds * float64(time.Second)), true
		}}
	}
	for _, stage := range []stage{
		between("suggestion", func(t *Trial) Moment { return t.Asked }, func(t *Trial) Moment { return t.Created }),
		between("waiting for a worker", func(t *Trial) Moment { return t.Suggested }, func(t *Trial) Moment { return t.Claimed }),
		between("starting", func(t *Trial) Moment { return t.Claimed }, func(t *Trial) Moment { return t.Started }),
		between("evaluation", func(t *Trial) Moment { return t.Started }, func(t *Trial) Moment { return t.Ended }),
		ofJob("in it: admitting the Job", messaging.PhaseAdmit), ofJob("in it: finding a node", messaging.PhaseSchedule),
		ofJob("in it: preparing the pod", messaging.PhasePrepare), ofJob("in it: starting the program", messaging.PhaseStart),
		ofJob("in it: the program itself", messaging.PhaseRun), ofJob("in it: collecting the result", messaging.PhaseFinish),
		between("until the result counted", func(t *Trial) Moment { return t.Ended }, func(t *Trial) Moment { return t.Folded }),
	} {
		var all []time.Duration
		for _, t := range s.Trials {
			if took, ok := stage.took(t); ok {
				all = append(all, took)
			}
		}
		if len(all) == 0 {
			continue
		}
		slices.Sort(all)
		at := func(share float64) time.Duration { return all[max(0, int(math.Ceil(share*float64(len(all))))-1)] }
		list = append(list, Stage{stage.name, at(0.5), at(0.9), at(1)})
	}
	return list
}
