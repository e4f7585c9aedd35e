package record_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
)

func TestATrialKeepsAllItsValues(t *testing.T) {
	want := record.Trial{Number: 1, Values: []float64{1, -2}}
	data, err := json.Marshal(&want)
	if err != nil {
		t.Fatal(err)
	}
	var got record.Trial
	if err := json.Unmarshal(data, &got); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("read %+v, %v; want %+v", got, err, want)
	}
}
