package cli

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/api/view"
)

// studyTable prints a list of studies.
func studyTable(w io.Writer, studies []*fantasiav1.Study) error {
	rows := make([][]string, len(studies))
	for i, s := range studies {
		v := view.FromStudy(s)
		best, recommended := "-", "-"
		if v.Best != nil {
			best = number(v.Best.Value)
		}
		if v.Recommended != nil {
			recommended = number(v.Recommended.Mean)
		}
		state := string(v.State)
		if s.GetState() == fantasiav1.StudyState_STUDY_STATE_UNSPECIFIED {
			state = "unreadable" // s.Reason has the cause
		}
		rows[i] = []string{
			v.Study, state, fmt.Sprintf("%d/%d", v.Trials.Ended(), s.GetMaxTrials()),
			strconv.Itoa(v.Trials.Running), strconv.Itoa(v.Trials.Failed), best, recommended, s.GetPool(), human(s.GetElapsed().AsDuration()),
		}
	}
	return table(w, []string{"STUDY", "STATE", "DONE", "RUNNING", "FAILED", "BEST", "RECOMMENDED", "POOL", "TIME"}, rows)
}

// studyBlock prints one study.
func studyBlock(w io.Writer, s *fantasiav1.Study) error {
	v := view.FromStudy(s)
	objective := strings.ToLower(view.EnumName(s.GetObjective().GetDirection())) + " " + s.GetObjective().GetMetric()
	if s.GetObjective().Goal != nil {
		objective += ", goal " + number(s.GetObjective().GetGoal())
	}
	fields := []field{
		{"Study", v.Study},
		{"Id", s.GetId()},
		{"State", string(v.State)},
		{"Reason", s.GetReason()},
		{"Objective", objective},
		{"Algorithm", fmt.Sprintf("%s, %d at once, pool %s", s.GetAlgorithm(), s.GetParallelism(), s.GetPool())},
		{"Trials", studyCounts(s)},
		{"Time", human(s.GetElapsed().AsDuration())},
	}
	if b := v.Best; b != nil {
		fields = append(fields, field{"Best", fmt.Sprintf("%s in trial %d\n%s", number(b.Value), b.Trial, point(b.Parameters))})
	}
	if r := v.Recommended; r != nil {
		fields = append(fields, field{"Recommended", fmt.Sprintf("trial %d, mean %s\n%s", r.Trial, view.Expected(r.Mean, r.SD), point(r.Parameters))})
	}
	return block(w, fields)
}

// studyCounts describes the progress of a study.
func studyCounts(s *fantasiav1.Study) string {
	c := view.FromStudy(s).Trials
	text := fmt.Sprintf("%d of %d done", c.Ended(), s.GetMaxTrials())
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
		line += fmt.Sprintf("; recommended trial %d, %s", r.Trial, view.Expected(r.Mean, r.SD))
	}
	if s.GetReason() != "" {
		line += "; " + s.GetReason()
	}
	return line
}
