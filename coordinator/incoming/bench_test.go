package incoming

import (
	"log/slog"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/commit"
	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/studies/studiestest"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// BenchmarkMeasurement measures what a program's report costs the leader's loop, from
// reading the stream's entry to adding the curve to the next commit.
func BenchmarkMeasurement(b *testing.B) {
	all, group := studiestest.New(b)
	r := studiestest.Start(b, all, studiestest.Definition("s", 100, 1), time.Now())
	commit := func() commit.Released {
		released, err := group.Commit(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		return released
	}
	all.Step(r, engine.Suggested{At: time.Now(), Ask: commit().Asks[0].Ask,
		Suggestions: []optimizer.Suggestion{{Point: study.Point{"x": 0.5}}}})
	nonce := commit().Assignments[0].Nonce
	in := NewStreams(slog.New(slog.DiscardHandler), nil, nil, all, group)
	m := &messaging.Measurement{AttemptID: messaging.AttemptID{Study: "s", Trial: 1, Attempt: 1, Nonce: nonce}, Worker: "w"}
	b.ReportAllocs()
	for b.Loop() {
		m.Step++
		m.Metrics = map[string]float64{"loss": 1 / float64(m.Step)}
		entry := messaging.Entry{Stream: messaging.StreamMetric, Cursor: messaging.Cursor{Sequence: uint64(m.Step)}, Measurement: m}
		if err := in.entry(b.Context(), &entry, time.Now()); err != nil {
			b.Fatal(err)
		}
	}
	if group.Due().IsZero() {
		b.Fatal("nothing is to be stored")
	}
}
