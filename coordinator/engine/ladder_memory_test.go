package engine

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space"
)

// In a space with a fidelity that can be counted, the point of an ended trial is in memory once, packed.
func TestConfigurationsArePacked(t *testing.T) {
	low, high, factor := 1.0, 9.0, 3
	parameters := []study.Parameter{{Name: "epochs", Type: study.Fidelity, Min: &low, Max: &high, Reduction: &factor}}
	point := study.Point{"epochs": int64(1)}
	for i := range 20 {
		name := fmt.Sprintf("p%02d", i)
		parameters = append(parameters, study.Parameter{Name: name, Type: study.Bool})
		point[name] = i%3 == 0
	}
	s, err := space.New(parameters, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	l := newLadder(s, study.Minimize, false, &switches{})
	one := &trial{work: &work{rec: record.Trial{Number: 1, Point: point, State: study.TrialCompleted, Values: study.Values{1}}}}
	l.setRung(one)
	l.add(one, optimizer.Observation{Trial: 1, Point: point, Outcome: optimizer.OutcomeCompleted, Values: study.Values{1}})
	if len(l.configurations) != 1 {
		t.Fatalf("%d configurations", len(l.configurations))
	}
	kept, told := l.configurations[0], l.rungs[0].observations.list[0]
	if kept.Point != nil || kept.Packed == nil || kept.Packed != told.Packed {
		t.Errorf("the configuration is %+v, the observation %+v; want one packed point", kept, told)
	}
	if diff := cmp.Diff(s.Configuration(point), kept.At()); diff != "" {
		t.Error(diff)
	}
}
