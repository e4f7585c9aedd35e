package coordinator

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/curve"
	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/messaging/membus"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// BenchmarkMeasurement measures what a program's report costs the leader's loop, from
// reading the stream's entry to adding the curve to the next commit.
func BenchmarkMeasurement(b *testing.B) {
	e, out, err := engine.New(record.Study{ID: "s", Definition: *newStudy("s", 100, 1)}, ids{}, engine.Settings{}, time.Now())
	if err != nil {
		b.Fatal(err)
	}
	out = e.Step(engine.Suggested{At: time.Now(), Ask: out.Ask, Suggestions: []optimizer.Suggestion{{Point: study.Point{"x": 0.5}}}})
	r := &run{spec: e.Spec(), status: e.Status(), engine: e}
	log := slog.New(slog.DiscardHandler)
	j := &journal{log: log, batch: &ledger.Batch{}, curves: &ledger.Batch{}}
	s := &studies{log: log, journal: j, runs: map[string]*run{"s": r}}
	in := &intake{log: log, bus: membus.New(membus.Options{}).Leader(), studies: s, journal: j,
		curve: func(context.Context, string, int) (*curve.Curve, error) { return nil, nil }}
	m := &messaging.Measurement{AttemptID: messaging.AttemptID{Study: "s", Trial: 1, Attempt: 1, Nonce: out.Publish[0].Nonce}, Worker: "w"}
	b.ReportAllocs()
	for b.Loop() {
		m.Step++
		m.Metrics = map[string]float64{"loss": 1 / float64(m.Step)}
		entry := messaging.Entry{Stream: messaging.StreamMetric, Cursor: messaging.Cursor{Sequence: uint64(m.Step)}, Measurement: m}
		if err := in.entry(b.Context(), &entry, time.Now()); err != nil {
			b.Fatal(err)
		}
	}
	if j.curves.Len() < 2 {
		b.Fatal("nothing is to be stored")
	}
}
