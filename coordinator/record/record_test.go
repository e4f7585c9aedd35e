package record_test

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
)

// testdata/trial-value.json is a trial as versions stored it that knew a single value.
func TestATrialOfASingleValueIsRead(t *testing.T) {
	old, err := os.ReadFile("testdata/trial-value.json")
	if err != nil {
		t.Fatal(err)
	}
	var trial record.Trial
	if err := json.Unmarshal(old, &trial); err != nil {
		t.Fatal(err)
	}
	if trial.Number != 7 || len(trial.Values) != 1 || trial.Values.First() != 0.3 || trial.Attempts[0].Worker != "w-1" {
		t.Errorf("read %+v", trial)
	}
	// What is written has all that earlier versions look for.
	now, err := json.Marshal(trial)
	if err != nil {
		t.Fatal(err)
	}
	var was, is map[string]any
	if err := json.Unmarshal(old, &was); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(now, &is); err != nil {
		t.Fatal(err)
	}
	if values := is["values"]; !reflect.DeepEqual(values, []any{0.3}) {
		t.Errorf("values are written as %v", values)
	}
	if delete(is, "values"); !reflect.DeepEqual(is, was) {
		t.Errorf("written as %s, earlier versions wrote %s", now, old)
	}
}

func TestATrialKeepsAllItsValues(t *testing.T) {
	want := record.Trial{Number: 1, Values: []float64{1, -2}}
	data, err := json.Marshal(&want)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(data), `"value":`) {
		t.Errorf("two values are written as one: %s", data)
	}
	var got record.Trial
	if err := json.Unmarshal(data, &got); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("read %+v, %v; want %+v", got, err, want)
	}
}
