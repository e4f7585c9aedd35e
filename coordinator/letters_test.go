package coordinator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/messaging/membus"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/telemetry"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// narrow is a leader's bus whose dead-letter queue has a limit on a message's size.
type narrow struct {
	messaging.Leader
	most int
}

func (n narrow) Archive(ctx context.Context, subject, reason string, raw []byte) error {
	if len(raw) > n.most {
		return messaging.ErrTooLarge
	}
	return n.Leader.Archive(ctx, subject, reason, raw)
}

// A refused result is archived as it was received, since encoding it again could make
// it too long. If the queue's limit is smaller, only its beginning is archived, or
// nothing. No message of a worker ends a term.
func TestLongResultsAreArchived(t *testing.T) {
	t.Parallel()
	r := newRig(t, membus.Options{})
	const sound = `{"version":1,"study":"none","trial":%d,"attempt":1,"nonce":"n","worker":"w","outcome":"failed","unknown":"%s"}`
	const escaped = `{"version":1,"study":"none","trial":%d,"attempt":1,"nonce":"n","worker":"w","outcome":"failed","failure":{"reason":"x","message":"%s"}}`
	for _, most := range []int{1 << 20, 4 << 10, 0} {
		c := r.leader(func(o *Options) { o.Bus = narrow{o.Bus, most} })
		before, dead := c.term.Load(), len(r.broker.DeadLetters())
		w := r.hand("w", 0, nil)
		var raws [][]byte
		for i, form := range []string{sound, escaped} {
			raw := []byte(fmt.Sprintf(form, i+1, strings.Repeat("<", 200_000)))
			id := messaging.AttemptID{Study: "none", Trial: i + 1, Attempt: 1}
			r.broker.Inject(messaging.Subject{Kind: messaging.KindResult, Shard: messaging.Shard, Worker: "w", ID: id}.String(), raw)
			id.Nonce = "n"
			if got := w.heard(messaging.ControlReceipt, id); got.Disposition != "unknown" {
				t.Errorf("the result was receipted as %q", got.Disposition)
			}
			if most > 0 {
				raws = append(raws, raw[:min(len(raw), most)])
			}
		}
		letters := r.broker.DeadLetters()[dead:]
		if !slices.EqualFunc(letters, raws, func(l membus.DeadLetter, raw []byte) bool { return bytes.Equal(l.Raw, raw) }) {
			t.Errorf("with room for %d bytes there are %d dead letters, want %d, as they came", most, len(letters), len(raws))
		}
		if c.term.Load() != before {
			t.Error("the term ended")
		}
		w.stop()
		c.stop()
	}
}

// full is a leader's bus whose dead-letter queue refuses everything.
type full struct{ messaging.Leader }

func (full) Archive(context.Context, string, string, []byte) error {
	return errors.New("no space left on device")
}

// A dead-letter queue that refuses messages ends no term: refused messages are counted,
// their senders get receipts, and studies continue.
func TestRefusedDeadLetters(t *testing.T) {
	t.Parallel()
	r := newRig(t, membus.Options{})
	reader := sdkmetric.NewManualReader()
	c := r.leader(func(o *Options) {
		o.Bus = full{o.Bus}
		o.Meter = sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("test")
	})
	before := c.term.Load()
	s := r.create(c, "goes-on", 3, 1)
	r.trial(s.ID, 1, func(tr *trialRecord) bool { return tr.State == study.TrialQueued })
	w := r.hand("w", 1, nil)
	id := messaging.AttemptID{Study: s.ID, Trial: 1, Attempt: 9} // w's own result would replace it in the place of 1/1
	r.broker.Inject(messaging.Subject{Kind: messaging.KindResult, Shard: messaging.Shard, Worker: "w", ID: id}.String(), []byte("garbage"))
	w.heard(messaging.ControlReceipt, id)
	none := messaging.AttemptID{Study: "none", Trial: 1, Attempt: 1, Nonce: "n"}
	if err := w.bus.PublishResult(r.ctx(), &messaging.Result{AttemptID: none, Worker: "w", Outcome: messaging.OutcomeFailed,
		Started: time.Now(), Ended: time.Now()}); err != nil {
		t.Fatal(err)
	}
	w.heard(messaging.ControlReceipt, none)
	r.ends(s.ID)
	r.verify(s.ID, 3, 3)
	if c.term.Load() != before {
		t.Error("the term ended")
	}
	var got metricdata.ResourceMetrics
	if err := reader.Collect(r.ctx(), &got); err != nil {
		t.Fatal(err)
	}
	refused := int64(0)
	for _, scope := range got.ScopeMetrics {
		for _, m := range scope.Metrics {
			if sum, ok := m.Data.(metricdata.Sum[int64]); ok && m.Name == telemetry.MetricUnarchived {
				refused = sum.DataPoints[0].Value
			}
		}
	}
	if refused != 2 {
		t.Errorf("%d messages are counted as refused, want 2", refused)
	}
}
