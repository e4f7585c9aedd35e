package e2e

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/durationpb"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/internal/test/testenv"
	"github.com/fantasia-hpo/fantasia/study"
)

const earlierTrials = 40

// earlierStudies are what the ledger of an earlier version held, by name: in each the optimiser,
// the trials or the evaluations are of another kind.
var earlierStudies = map[string]string{
	"modelled": `
  algorithm: {name: gp, seed: 1}
  parameters: [{name: x, type: float, min: -1, max: 1}, {name: y, type: float, min: -1, max: 1}]
  trial: {command: [unused], retries: {lost: 10}}`,
	"pruned": `
  algorithm: {name: tpe, seed: 1}
  earlyStopping: {name: threshold, settings: {upper: 0.5, minSteps: 2}}
  parameters: [{name: x, type: float, min: -1, max: 1}, {name: y, type: float, min: -1, max: 1}]
  trial: {command: [unused], retries: {lost: 10}}`,
	"promoted": `
  algorithm: {name: random, seed: 1}
  parameters:
    - {name: x, type: float, min: -1, max: 1}
    - {name: y, type: float, min: -1, max: 1}
    - {name: epochs, type: fidelity, min: 1, max: 9}
  trial: {command: [unused], retries: {lost: 10}}`,
	"clients": `
  algorithm: {name: hebo, seed: 1}
  parameters: [{name: x, type: float, min: -1, max: 1}, {name: kind, type: categorical, values: [a, b]}]`,
}

// TestRecordsOfEarlierVersions restores the ledgers that each released version wrote while
// its studies ran, which testdata/earlier keeps: what had ended is as it was, and all studies
// end with their budget. Until the first release there are none.
func TestRecordsOfEarlierVersions(t *testing.T) {
	files, err := filepath.Glob("testdata/earlier/*.backup")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".backup"), func(t *testing.T) {
			c := startCluster(t, 0, 2, 4, stepsVariable+"=4", levelVariable+"=1")
			fantasia(t, testenv.Build(t, module+"cmd/fantasia"), true, "restore", file, "--etcd="+c.EtcdServer.URL)
			before := c.records()
			c.Add([]string{"--worker-lease", "3s"}, nil)
			c.evaluate(earlierTrials)
			for name := range earlierStudies {
				c.Await(name, earlierTrials)
			}
			after := c.records()
			for name, old := range before {
				now, ended := after[name], 0
				if now.Status.State != study.Completed || now.Status.Counts.Ended() != earlierTrials || now.Status.Counts.Open() != 0 {
					t.Errorf("%s is %s (%s) with %+v, want %d ended trials", name, now.Status.State, now.Status.Reason, now.Status.Counts, earlierTrials)
				}
				for i := range old.Trials {
					if !old.Trials[i].State.Terminal() {
						continue
					}
					ended++
					if diff := cmp.Diff(old.Trials[i], now.Trials[i]); diff != "" {
						t.Errorf("trial %d of %s had ended, and changed:\n%s", i+1, name, diff)
					}
				}
				if ended == 0 || old.Status.State == study.Running && ended == len(old.Trials) {
					t.Errorf("%d of %d trials of %s had ended: the records show too little", ended, len(old.Trials), name)
				}
			}
		})
	}
}

// earlierRecords is a study's status and its trials.
type earlierRecords struct {
	Status record.Status
	Trials []record.Trial
}

// records reads all studies.
func (c *cluster) records() map[string]earlierRecords {
	c.t.Helper()
	all := map[string]earlierRecords{}
	for name := range earlierStudies {
		s, err := c.Ledger.Study(c.t.Context(), name)
		if err != nil {
			c.t.Fatal(err)
		}
		stored, err := c.Ledger.LoadStudy(c.t.Context(), s.Study.ID)
		if err != nil {
			c.t.Fatal(err)
		}
		all[name] = earlierRecords{s.Status, stored.Trials}
	}
	return all
}

// evaluate is a client of the study of clients until so many trials have ended.
func (c *cluster) evaluate(trials int) {
	c.t.Helper()
	for {
		var given *fantasiav1.SuggestTrialsResponse
		testenv.Eventually(c.t, time.Minute, func(ctx context.Context) error {
			answer, err := c.Client().SuggestTrials(ctx, connect.NewRequest(&fantasiav1.SuggestTrialsRequest{
				Parent: "studies/clients", ClientId: "client", Count: 1, Wait: durationpb.New(500 * time.Millisecond),
			}))
			if err == nil {
				given = answer.Msg
			}
			return err
		})
		for _, trial := range given.GetTrials() {
			x := trial.GetParameters().GetFields()["x"].GetNumberValue()
			testenv.Eventually(c.t, time.Minute, func(ctx context.Context) error {
				_, err := c.Client().CompleteTrial(ctx, connect.NewRequest(&fantasiav1.CompleteTrialRequest{
					Name: trial.GetName(), ClientId: "client", Values: []float64{x * x},
				}))
				return err
			})
		}
		if s, over := c.Await("clients", 0); over || s.Status.Counts.Ended() >= trials {
			return
		}
	}
}
