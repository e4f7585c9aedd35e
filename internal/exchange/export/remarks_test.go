package export_test

import (
	"bytes"
	"encoding/csv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/internal/exchange/export"
	"github.com/fantasia-hpo/fantasia/study"
)

// Labels and notes have columns where a trial has one.
func TestRemarks(t *testing.T) {
	var out bytes.Buffer
	trials := []view.Trial{
		{Trial: 1, State: study.TrialPending, Labels: map[string]string{"team": "a", "by": ""}},
		{Trial: 2, State: study.TrialPending, Note: "odd, but right"},
	}
	if err := export.Of(&study.Spec{}, view.List(trials)).CSV(&out); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&out).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var last [][]string
	for _, row := range rows {
		last = append(last, row[len(row)-3:])
	}
	want := [][]string{{"label:by", "label:team", "note"}, {"", "a", ""}, {"", "", "odd, but right"}}
	if diff := cmp.Diff(want, last); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
