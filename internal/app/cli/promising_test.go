package cli_test

import (
	"regexp"
	"testing"

	"github.com/fantasia-hpo/fantasia/api/server"
	"github.com/fantasia-hpo/fantasia/internal/app/cli"
	"github.com/fantasia-hpo/fantasia/internal/test/servertest"
	"github.com/fantasia-hpo/fantasia/study"
)

// study get of a study that has ended offers to finish the trial that was stopped too early. While the study runs, it offers nothing.
func TestStudyGetOffersToFinish(t *testing.T) {
	b := servertest.New(t)
	servertest.PutStopping(t, b, study.Running)
	url, stop := serveOn(t, "127.0.0.1:0", b)
	defer stop()
	offer := regexp.MustCompile(`(?m)^Unfinished: +trial 15, stopped at step 12, is expected to end at 0\.0\d+, ` +
		`better than 0\.065: fantasia trial continue bowl 15$`)
	for _, state := range []study.State{study.Running, study.Completed} {
		b.Change(servertest.Stopping, func(s *server.Study) { s.Status.State = state })
		run := start(t.Context(), "study", "get", servertest.Stopping, "--server", url)
		if code := <-run.code; code != cli.ExitOK || offer.MatchString(run.out.String()) != state.Terminal() {
			t.Errorf("%s: exit code %d: %s%s", state, code, run.out, run.errs)
		}
	}
}
