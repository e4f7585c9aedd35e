//go:build upgrade

package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/durationpb"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/internal/test/testenv"
)

var recordAs = flag.String("earlier.record", "", "write the records of this version into testdata/earlier/NAME.backup")

// earlierStudy returns the file of a study.
func earlierStudy(name string, trials int) string {
	return fmt.Sprintf(`
apiVersion: fantasia.dev/v1
kind: Study
metadata: {name: %s}
spec:
  objective: {metric: loss, direction: minimize}
  budget: {maxTrials: %d}
  parallelism: 3%s
`, name, trials, earlierStudies[name])
}

// TestRecordsOfThisVersion plays the studies of TestRecordsOfEarlierVersions in part, and
// writes their records for later versions to read. Without the flag they are thrown away.
func TestRecordsOfThisVersion(t *testing.T) {
	program := testenv.Build(t, module+"cmd/fantasia")
	c := startCluster(t, 1, 2, 4, stepsVariable+"=4", levelVariable+"=1")
	for name := range earlierStudies {
		c.Create(earlierStudy(name, earlierTrials))
	}
	for name := range earlierStudies {
		if name != "clients" {
			c.Await(name, 10)
		}
	}
	c.evaluate(10)
	testenv.Eventually(t, time.Minute, func(ctx context.Context) error { // an open trial of a client, and one that failed
		answer, err := c.Client().SuggestTrials(ctx, connect.NewRequest(&fantasiav1.SuggestTrialsRequest{
			Parent: "studies/clients", ClientId: "another", Count: 2, Wait: durationpb.New(time.Second),
		}))
		if err != nil {
			return err
		}
		if len(answer.Msg.GetTrials()) < 2 {
			return errors.New("no trials yet")
		}
		_, err = c.Client().FailTrial(ctx, connect.NewRequest(&fantasiav1.FailTrialRequest{
			Name: answer.Msg.GetTrials()[0].GetName(), ClientId: "another", Message: "it diverged",
		}))
		return err
	})
	wider := strings.Replace(earlierStudy("modelled", earlierTrials), "{name: x, type: float, min: -1, max: 1}",
		"{name: x, type: float, min: -1, max: 2}", 1)
	testenv.Eventually(t, time.Minute, func(ctx context.Context) error {
		_, err := c.Client().UpdateStudy(ctx, connect.NewRequest(&fantasiav1.UpdateStudyRequest{Name: "studies/modelled", StudyFile: wider}))
		return err
	})
	c.Await("modelled", 15)
	file := filepath.Join(t.TempDir(), "records.backup")
	if *recordAs != "" {
		file = filepath.Join("testdata", "earlier", *recordAs+".backup")
		if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
			t.Fatal(err)
		}
	}
	t.Log(fantasia(t, program, true, "backup", file, "--etcd="+c.EtcdServer.URL))
}
