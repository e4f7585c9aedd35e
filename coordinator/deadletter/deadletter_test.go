package deadletter

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	metricnoop "go.opentelemetry.io/otel/metric/noop"

	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/coordinator/metrics"
)

// What has no room to be set aside gets no receipt, so that its worker keeps it.
func TestNoSpaceToSetAside(t *testing.T) {
	meter, err := metrics.New(metricnoop.NewMeterProvider().Meter(""), metrics.Sources{})
	if err != nil {
		t.Fatal(err)
	}
	d := New(slog.New(slog.DiscardHandler), meter, func(context.Context, string, string, []byte) error {
		return errors.New("no space left on device")
	}, nil)
	d.Resume(maxAside-1, 1000)
	var batch ledger.Batch
	if !d.Bury(t.Context(), &batch, Letter{Reason: "the last one"}) || batch.Len() != 1 {
		t.Error("not set aside, though there is room for one more")
	}
	if d.Bury(t.Context(), &batch, Letter{Reason: "one too many"}) || batch.Len() != 1 {
		t.Error("set aside beyond the bound")
	}
	d.Resume(0, maxAsideBytes)
	if d.Bury(t.Context(), &batch, Letter{Raw: []byte("x")}) {
		t.Error("set aside beyond the bound in bytes")
	}
}
