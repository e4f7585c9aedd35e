package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/internal/app/diagnosis"
	"github.com/fantasia-hpo/fantasia/study"
	studyfile "github.com/fantasia-hpo/fantasia/study/file"
)

const diagnoseLong = `Analyses the trials of a study and reports one finding a topic, with its evidence:
how well the model predicts, how noisy the objective is and whether the noise is
even, whether the output transform and input warping help, whether acquisition
functions agree, and which parameters matter. If the program reports curves, it also
says what each rule for early stopping would have saved. A topic without enough data says
what it needs. At least 20 trials must have completed.

The study is read from a server or, with --state, from the state directory of
fantasia run, also while it runs. Nothing is changed.`

func newStudyDiagnoseCommand(a *app, r *remote) *cobra.Command {
	c := r.reads(&cobra.Command{
		Use:   "diagnose STUDY",
		Short: "Report how noisy a study is, which parameters matter, and which settings fit it",
		Long:  diagnoseLong,
		Example: `  fantasia study diagnose digits
  fantasia study diagnose --state .fantasia/digits -o json | jq .importance`,
	})
	return a.shows(c, func(cmd *cobra.Command, args []string) (shown, error) {
		name, _, err := r.studyIn(cmd, args, 0)
		if err != nil {
			return shown{}, err
		}
		s, trials, err := r.studyAndTrials(cmd, name)
		if err != nil {
			return shown{}, err
		}
		problem, err := diagnosis.Problem(s, trials)
		if err != nil {
			return shown{}, fmt.Errorf("study %q: %w", s.Metadata.Name, err)
		}
		report, _, err := diagnosis.Examine(cmd.Context(), s, problem)
		if err != nil {
			return shown{}, err
		}
		if err := r.addCurves(cmd, strings.TrimPrefix(name, "studies/"), trials, diagnosis.StoppingMetric(&s.Spec)); err != nil {
			return shown{}, err
		}
		report.EarlyStopping, err = diagnosis.Replays(s, trials)
		return shown{report, func(w screen) error { return diagnosisText(w, report, s.Spec.FirstObjective().Metric, w.width) }}, err
	})
}

// studyAndTrials fetches a study and its trials.
func (r *remote) studyAndTrials(cmd *cobra.Command, nameOrID string) (*study.Study, []view.Trial, error) {
	name, err := studyName(cmd, nameOrID)
	if err != nil {
		return nil, nil, err
	}
	var file string
	var trials []view.Trial
	err = r.call(cmd, func(ctx context.Context, c service) error {
		resp, err := send(ctx, c, service.GetStudy, &fantasiav1.GetStudyRequest{Name: name})
		if err != nil {
			return err
		}
		file = resp.GetStudy().GetStudyFile()
		listed, err := listTrials(ctx, c, &fantasiav1.ListTrialsRequest{Parent: name})
		trials = viewed(listed, view.FromTrial)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	// Any algorithm is accepted, because the server may know others.
	s, err := studyfile.Parse([]byte(file))
	if err != nil {
		return nil, nil, fmt.Errorf("read the study file: %w", err)
	}
	return s, trials, nil
}
