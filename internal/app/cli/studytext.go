package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/internal/base/each"
	"github.com/fantasia-hpo/fantasia/internal/show/diagnosis"
	"github.com/fantasia-hpo/fantasia/internal/show/display"
	"github.com/fantasia-hpo/fantasia/internal/show/layout"
)

// found is a study where a command found it: on a server or in a state directory.
type found struct {
	*fantasiav1.Study
	// directory is its state directory; "" on a server.
	directory string
	// idle means that no process has the directory open.
	idle bool
	// front is that of a study with several objectives; nil if it was not asked for.
	front []view.Optimal
	// promising is a stopped trial that is worth finishing; nil if there is none, or nobody asked.
	promising *diagnosis.Unfinished
}

// view is the study in the form for scripts.
func (f found) view() view.Study {
	v := view.FromStudy(f.Study)
	v.Directory, v.Front = f.directory, f.front
	if f.idle && !v.State.Terminal() {
		v.State = display.Interrupted
	}
	return v
}

// studyTable prints a list of studies, all of a server or all of state directories.
func studyTable(w screen, studies []found) error {
	local := slices.ContainsFunc(studies, func(f found) bool { return f.directory != "" })
	columns := []layout.Column{
		{Head: "STUDY", Least: 8}, {Head: "STATE"}, {Head: "DONE"}, {Head: "RUNNING", Rank: 4}, {Head: "FAILED", Rank: 3},
		{Head: "BEST", Rank: 1}, {Head: "RECOMMENDED", Rank: 2},
	}
	priced := slices.ContainsFunc(studies, func(f found) bool { return f.GetTrials().GetCost() != nil })
	if priced {
		columns = append(columns, layout.Column{Head: "COST", Rank: 3})
	}
	pool, elapsed := layout.Column{Head: "POOL", Rank: 6}, layout.Column{Head: "TIME", Rank: 5}
	if local { // studies of one name may be in several directories
		columns = append(columns, elapsed, layout.Column{Head: "DIRECTORY", Least: 9, End: true})
	} else {
		columns = append(columns, pool, elapsed)
	}
	rows := make([][]string, len(studies))
	for i, s := range studies {
		v := s.view()
		best, recommended := "-", "-"
		if v.Best != nil {
			best = number(v.Best.Value)
		}
		if v.Recommended != nil {
			recommended = number(v.Recommended.Mean)
			if front := v.Recommended.Front; front != nil {
				recommended = count(len(front), "trial")
			}
		}
		state := string(v.State)
		if s.GetState() == fantasiav1.StudyState_STUDY_STATE_UNSPECIFIED {
			state = "unreadable" // s.Reason has the cause
		}
		rows[i] = []string{
			v.Study, state, view.Share(v.Trials.Ended(), int(s.GetMaxTrials())),
			strconv.Itoa(v.Trials.Running), strconv.Itoa(v.Trials.Failed), best, recommended,
		}
		if priced {
			rows[i] = append(rows[i], orDash(costText(v.Cost)))
		}
		if took := human(s.GetElapsed().AsDuration()); local {
			rows[i] = append(rows[i], took, v.Directory)
		} else {
			rows[i] = append(rows[i], s.GetPool(), took)
		}
	}
	return w.table(columns, rows)
}

// studyBlock prints one study.
func studyBlock(w screen, s found) error {
	v := s.view()
	aim := field{Name: "Objective", Value: objective(s.GetObjective())}
	if several := s.GetObjectives(); len(several) > 0 {
		aim.Name, aim.Value = "Objectives", objective(several[0])
		for _, o := range several[1:] {
			aim.Value += "\n" + objective(o)
		}
		if goal := s.GoalHypervolume; goal != nil {
			aim.Value += "\ngoal: a hypervolume of " + number(*goal)
		}
	}
	fields := []field{
		{Name: "Study", Value: v.Study},
		{Name: "Id", Value: s.GetId()},
		{Name: "State", Value: string(v.State)},
		{Name: "Reason", Value: s.GetReason()},
		aim,
		{Name: "Limits", Value: limitText(v)},
		{Name: "Algorithm", Value: fmt.Sprintf("%s, %d at once, pool %s", s.GetAlgorithm(), s.GetParallelism(), s.GetPool())},
		{Name: "Labels", Value: labelText(v.Labels)},
		{Name: "Note", Value: v.Note},
		{Name: "Attributes", Value: attributeText(v.Attributes)},
		{Name: "Space", Value: spaceVersion(s.Study)},
		{Name: "Trials", Value: studyCounts(s.Study)},
		{Name: "Cost", Value: costText(v.Cost)},
		{Name: "Time", Value: timeText(s.Study)},
		{Name: "Directory", Value: v.Directory},
	}
	if b := v.Best; b != nil {
		fields = append(fields, field{Name: "Best", Value: fmt.Sprintf("%s in trial %d\n%s", number(b.Value), b.Trial, point(b.Parameters))})
	}
	if r := v.Recommended; r != nil && r.Front == nil {
		fields = append(fields, field{Name: "Recommended", Value: fmt.Sprintf("trial %d, mean %s\n%s", r.Trial, view.Expected(r.Mean, r.SD),
			point(r.Parameters))})
	}
	if s.front != nil {
		fields = append(fields, field{Name: "Front", Value: frontText(metricNames(s.GetObjectives()), s.front)})
		if h := v.Hypervolume; h != nil {
			fields = append(fields, field{Name: "Hypervolume", Value: number(*h)})
		}
	}
	if r := v.Recommended; r != nil && r.Front != nil {
		lines := append([]string{count(len(r.Front), "trial")}, view.ExpectedFront(metricNames(s.GetObjectives()), r.Front, mostOptimal)...)
		fields = append(fields, field{Name: "Recommended", Value: strings.Join(lines, "\n")})
	}
	if u := s.promising; u != nil {
		fields = append(fields, field{Name: "Unfinished", Value: fmt.Sprintf("trial %d, stopped at step %d, is expected to end at %s, better "+
			"than %s: %s", u.Trial, u.Step, number(round(u.Value)), number(round(u.Reached)), u.Command(v.Study))})
	}
	return w.block(fields)
}

// costText says what the trials have cost; "" if the study has no cost but time.
func costText(c *view.Cost) string {
	if c == nil {
		return ""
	}
	return c.String()
}

// timeText says how long a study has run, and of how long it may.
func timeText(s *fantasiav1.Study) string {
	text := human(s.GetElapsed().AsDuration())
	if most := s.GetMaxDuration(); most != nil {
		text += " of " + human(most.AsDuration())
	}
	return text
}

// limitText lists limits, and how many completed trials are within each; "" if there are none.
func limitText(v view.Study) string {
	lines := each.Of(v.Limits, func(l view.Limit) string {
		return fmt.Sprintf("%s (%d of %d completed trials)", l.Limit, l.Met, v.Trials.Completed)
	})
	if len(lines) > 1 {
		lines = append(lines, fmt.Sprintf("all of them (%d of %d)", *v.WithinLimits, v.Trials.Completed))
	}
	if v.UnmetLimits != "" {
		lines = append(lines, v.UnmetLimits)
	}
	return strings.Join(lines, "\n")
}

// objective describes an objective.
func objective(o *fantasiav1.Objective) string {
	text := strings.ToLower(view.EnumName(o.GetDirection())) + " " + o.GetMetric()
	if o.Goal != nil {
		text += ", goal " + number(o.GetGoal())
	}
	if o.Reference != nil {
		text += ", reference " + number(o.GetReference())
	}
	return text
}

// mostOptimal is how many trials of a front are listed.
const mostOptimal = 20

// metricNames returns the objectives' metrics.
func metricNames(objectives []*fantasiav1.Objective) []string {
	return each.Of(objectives, (*fantasiav1.Objective).GetMetric)
}

// frontText lists a front, the best in the first objective first.
func frontText(metrics []string, front []view.Optimal) string {
	lines := []string{count(len(front), "trial")}
	for _, t := range front[:min(len(front), mostOptimal)] {
		name := fmt.Sprintf("trial %d", t.Trial)
		if t.Knee {
			name += " (knee)"
		}
		lines = append(lines, fmt.Sprintf("%s: %s at %s", name, view.Named(metrics, t.Values), point(t.Parameters)))
	}
	if more := len(front) - mostOptimal; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more: see -o json", more))
	}
	return strings.Join(lines, "\n")
}

// spaceVersion says how often the space was edited; "" if it never was.
func spaceVersion(s *fantasiav1.Study) string {
	if s.GetSpaceVersion() <= 1 {
		return ""
	}
	return fmt.Sprintf("version %d: trials outside of it are neither best nor recommended", s.GetSpaceVersion())
}

// studyCounts describes the progress of a study.
func studyCounts(s *fantasiav1.Study) string {
	c := view.FromStudy(s).Trials
	text := fmt.Sprintf("%d of %d done", c.Ended(), s.GetMaxTrials())
	if s.GetMaxTrials() == 0 { // only time bounds them
		text = fmt.Sprintf("%d done", c.Ended())
	}
	for _, count := range []struct {
		n    int
		name string
	}{
		{c.Completed, "completed"}, {c.Failed, "failed"}, {c.Infeasible, "infeasible"}, {c.Pruned, "pruned"},
		{c.Cancelled, "cancelled"}, {c.Running, "running"}, {c.Queued, "queued"}, {c.Pending, "pending"},
	} {
		if count.n > 0 {
			text += fmt.Sprintf(", %d %s", count.n, count.name)
		}
	}
	return text
}

// studyLine formats a study as one line of a watch.
func studyLine(s *fantasiav1.Study) string {
	v := view.FromStudy(s)
	line := fmt.Sprintf("%8s  %-9s  %s", human(s.GetElapsed().AsDuration()), v.State, studyCounts(s))
	if v.Best != nil {
		line += fmt.Sprintf("; best %s in trial %d", number(v.Best.Value), v.Best.Trial)
	}
	if r := v.Recommended; r != nil {
		line += "; recommended " + view.Recommended(r.Trial, r.Mean, r.SD, r.Front)
	}
	if v.FrontSize != nil {
		line += "; " + count(*v.FrontSize, "trial") + " on the front"
	}
	if h := v.Hypervolume; h != nil {
		line += ", hypervolume " + number(*h)
	}
	if s.GetReason() != "" {
		line += "; " + s.GetReason()
	}
	return line
}
