package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/internal/exchange/fetch"
	"github.com/fantasia-hpo/fantasia/study"
)

const diagnoseLong = `Analyses the trials of a study and reports one finding a topic, with its evidence:
how well the model predicts, how noisy the objective is and whether the noise is
even, whether the output transform and input warping help, whether acquisition
functions agree, and which parameters matter. Of several objectives it says which of them
conflict, and of limits which of them bind and what they cost. If the program reports
curves, it also says what each rule for early stopping would have saved. A topic without
enough data says what it needs. At least 20 trials must have completed.

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
		if _, err := studyName(cmd, name); err != nil {
			return shown{}, err
		}
		s, found, err := fetch.Diagnose(cmd.Context(), r.within(cmd), strings.TrimPrefix(name, "studies/"))
		if err != nil {
			return shown{}, err
		}
		return shown{found, func(w screen) error { return diagnosisText(w, found, s.Spec.FirstObjective().Metric, w.width) }}, nil
	})
}

// studyAndTrials fetches a study and its trials.
func (r *remote) studyAndTrials(cmd *cobra.Command, nameOrID string) (*study.Study, []view.Trial, error) {
	name, err := studyName(cmd, nameOrID)
	if err != nil {
		return nil, nil, err
	}
	return fetch.StudyAndTrials(r.within(cmd), name)
}
