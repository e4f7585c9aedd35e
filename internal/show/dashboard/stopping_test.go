package dashboard_test

import (
	"strings"
	"testing"

	"github.com/fantasia-hpo/fantasia/internal/test/servertest"
	"github.com/fantasia-hpo/fantasia/study"
)

// The page of a study says how many steps early stopping saved, and that of diagnostics offers to finish the trial that was stopped
// too early.
func TestEarlyStopping(t *testing.T) {
	s := serve(t, after(7200), "")
	servertest.PutStopping(t, s.Backend, study.Completed)
	page := s.eventually(t, "/ui/studies/bowl", "panel-allocation")
	for _, want := range []string{"2 trials were stopped early and did not run 20 of 40 steps (50%)", "stopped early (2)"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	page = s.eventually(t, "/ui/studies/bowl/diagnostics", "panel-judged")
	if !strings.Contains(page, "fantasia trial continue bowl 15") || strings.Contains(page, "continue bowl 16") {
		t.Error("the page does not offer to finish trial 15 alone")
	}
	picture := s.eventually(t, "/ui/studies/bowl/pictures/allocation", "<svg")
	if !strings.Contains(picture, `data-trial="16" data-x="16" data-y="8"`) {
		t.Error("the picture lacks the column of trial 16")
	}
}
