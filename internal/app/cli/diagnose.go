package cli

import (
	"context"
	"fmt"
	"strings"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/api/fantasia/v1/fantasiav1connect"
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
	var output format
	c := &cobra.Command{
		Use:   "diagnose STUDY",
		Short: "Report how noisy a study is, which parameters matter, and which settings fit it",
		Long:  diagnoseLong,
		Example: `  fantasia study diagnose digits
  fantasia study diagnose --state .fantasia/digits -o json | jq .importance`,
		Args:              r.argumentsOrState,
		ValidArgsFunction: r.completeStudy,
		RunE: func(cmd *cobra.Command, args []string) error {
			name, _, err := r.studyIn(cmd, args, 0)
			if err != nil {
				return err
			}
			s, trials, err := r.studyAndTrials(cmd, name)
			if err != nil {
				return err
			}
			problem, err := diagnosis.Problem(s, trials)
			if err != nil {
				return fmt.Errorf("study %q: %w", s.Metadata.Name, err)
			}
			report, err := diagnosis.Of(cmd.Context(), s, problem)
			if err != nil {
				return err
			}
			if err := r.addCurves(cmd, strings.TrimPrefix(name, "studies/"), trials, diagnosis.StoppingMetric(s)); err != nil {
				return err
			}
			if report.EarlyStopping, err = diagnosis.Replays(s, trials); err != nil {
				return err
			}
			return output.write(a.Stdout, report, func(w screen) error {
				return diagnosisText(w, report, s.Spec.Objective.Metric, w.width)
			})
		},
	}
	r.stateFlag(c)
	addOutput(c, &output)
	return c
}

// studyAndTrials fetches a study and its trials.
func (r *remote) studyAndTrials(cmd *cobra.Command, nameOrID string) (*study.Study, []view.Trial, error) {
	name, err := studyName(cmd, nameOrID)
	if err != nil {
		return nil, nil, err
	}
	var file string
	var trials []view.Trial
	err = r.call(cmd, func(ctx context.Context, c fantasiav1connect.StudyServiceClient) error {
		resp, err := c.GetStudy(ctx, connect.NewRequest(&fantasiav1.GetStudyRequest{Name: name}))
		if err != nil {
			return err
		}
		file = resp.Msg.GetStudy().GetStudyFile()
		return everyPage(func(token string) (next string, err error) {
			page, err := c.ListTrials(ctx, connect.NewRequest(&fantasiav1.ListTrialsRequest{Parent: name, PageSize: pageSize, PageToken: token}))
			if err != nil {
				return "", err
			}
			for _, t := range page.Msg.GetTrials() {
				trials = append(trials, view.FromTrial(t))
			}
			return page.Msg.GetNextPageToken(), nil
		})
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
