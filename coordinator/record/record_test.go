package record_test

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"testing"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
)

func TestATrialKeepsAllItsValues(t *testing.T) {
	want := record.Trial{Number: 1, Values: []float64{1, -2}}
	checkReread(t, want)
}

// checkReread checks that a value is read again as it was written.
func checkReread[T any](t *testing.T, want T) {
	t.Helper()
	data, err := json.Marshal(&want)
	if err != nil {
		t.Fatal(err)
	}
	var got T
	if err := json.Unmarshal(data, &got); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("read %+v, %v; want %+v", got, err, want)
	}
}

// The file has a study as a version wrote it whose earlier studies did not say how long their trials took: it is
// read, and written as it was.
func TestEarlierStudiesWithoutDurations(t *testing.T) {
	data, err := os.ReadFile("testdata/learns-without-durations.json")
	if err != nil {
		t.Fatal(err)
	}
	var s record.Study
	if err := json.Unmarshal(data, &s); err != nil {
		t.Fatal(err)
	}
	trials := s.Definition.Spec.LearnFrom[0].Trials
	if len(trials) != 2 || trials[0].Value != 0.91 || trials[0].Seconds != 0 || trials[0].Cost != 0 ||
		trials[1].Parameters["depth"] != int64(5) {
		t.Errorf("read %+v", trials)
	}
	if written, err := json.Marshal(&s); err != nil || !bytes.Equal(written, bytes.TrimSpace(data)) {
		t.Errorf("written as %s, %v; want\n%s", written, err, data)
	}
	trials[0].Seconds, trials[1].Cost = 1.5, 0.25
	checkReread(t, s)
}
