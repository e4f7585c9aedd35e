package kube

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/study"
)

// A resource says that nobody runs it, also if these coordinators did before its namespace was taken off their
// list. One of another installation is left alone.
func TestResourcesOfOtherNamespaces(t *testing.T) {
	ran := func(home string, state study.State) *Resource {
		r := resource(t)
		r.Status = r.next(good, view{home: home, id: r.ID(), status: &record.Status{State: state}}, began)
		return r
	}
	now := began.Add(time.Hour)
	for name, test := range map[string]struct {
		r          *Resource
		unattended bool
		state      study.State
		progresses string
	}{
		"new":            {resource(t), true, "", ""},
		"ran here":       {ran("tuning", study.Running), true, StateUnknown, "Unknown/NotWatched"},
		"ended here":     {ran("tuning", study.Completed), true, study.Completed, "False/Completed"},
		"runs elsewhere": {ran("other", study.Running), false, "", ""},
	} {
		if got := test.r.unattended("tuning"); got != test.unattended {
			t.Errorf("%s: nobody runs it is %v, want %v", name, got, test.unattended)
		}
		if !test.unattended {
			continue
		}
		s := test.r.abandoned([]string{"team-b"}, now)
		c := meta.FindStatusCondition(s.Conditions, ConditionAccepted)
		if s.State != test.state || conditions(s)[ConditionProgressing] != test.progresses || c.Reason != ReasonNotWatched ||
			!c.LastTransitionTime.Time.Equal(now) || !strings.Contains(c.Message, "run those of: team-b") {
			t.Errorf("%s: %+v", name, s)
		}
		again := *test.r
		again.Status = s
		if again.unattended("tuning") {
			t.Errorf("%s: it is told so again and again", name)
		}
		if s.State != StateUnknown {
			continue
		}
		s = again.next(good, view{home: "tuning", id: again.ID(), status: &record.Status{State: study.Running}}, now)
		if got := conditions(s); s.State != study.Running || got[ConditionAccepted] != "True/Accepted" ||
			got[ConditionProgressing] != "True/Running" {
			t.Errorf("%s, and is run again: %+v", name, s)
		}
		for _, e := range again.events(&s) {
			if e.reason == EventContinued {
				t.Errorf("%s, and is run again: %+v", name, e)
			}
		}
	}
}
