package coordinator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/internal/test/membus"
	"github.com/fantasia-hpo/fantasia/messaging"
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

func (n narrow) Bury(ctx context.Context, subject, reason string, raw []byte) error {
	if len(raw) > n.most {
		return messaging.ErrTooLarge
	}
	return n.Leader.Bury(ctx, subject, reason, raw)
}

// A refused result is buried as it was received, since encoding it again could make
// it too long. If the queue's limit is smaller, only its beginning is buried.
// No message of a worker ends a term.
func TestLongResultsAreBuried(t *testing.T) {
	t.Parallel()
	r := newRig(t, membus.Options{})
	const sound = `{"version":1,"study":"none","trial":%d,"attempt":1,"nonce":"n","worker":"w","outcome":"failed","unknown":"%s"}`
	const escaped = `{"version":1,"study":"none","trial":%d,"attempt":1,"nonce":"n","worker":"w","outcome":"failed","failure":{"reason":"x","message":"%s"}}`
	for _, most := range []int{1 << 20, 4 << 10} {
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
			raws = append(raws, raw[:min(len(raw), most)])
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

// full is a leader's bus whose dead-letter queue refuses everything while it is full.
type full struct {
	messaging.Leader
	full *atomic.Bool
}

func (f full) Bury(ctx context.Context, subject, reason string, raw []byte) error {
	if f.full.Load() {
		return errors.New("no space left on device")
	}
	return f.Leader.Bury(ctx, subject, reason, raw)
}

// A dead-letter queue that refuses messages ends no term: refused messages are counted and
// set aside with the reason, their senders get receipts, and studies continue. The next
// leader buries them once the queue has room, as they came.
func TestRefusedDeadLetters(t *testing.T) {
	t.Parallel()
	r := newRig(t, membus.Options{})
	reader := sdkmetric.NewManualReader()
	var isFull atomic.Bool
	isFull.Store(true)
	filled := func(o *Options) { o.Bus = full{o.Bus, &isFull} }
	c := r.leader(filled, func(o *Options) {
		o.Meter = sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("test")
	})
	before := c.term.Load()
	s := r.create(c, "goes-on", 3, 1)
	r.trial(s.ID, 1, func(tr *trialRecord) bool { return tr.State == study.TrialQueued })
	w := r.hand("w", 1, nil)
	id := messaging.AttemptID{Study: s.ID, Trial: 1, Attempt: 9} // w's own result would replace it in the place of 1/1
	subject := messaging.Subject{Kind: messaging.KindResult, Shard: messaging.Shard, Worker: "w", ID: id}.String()
	r.broker.Inject(subject, []byte("garbage"))
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
	last, n, err := r.ledger.AsidesOf(r.ctx(), s.ID)
	if err != nil || n != 1 || last.Refused != "no space left on device" || string(last.Raw) != "garbage" || last.Subject != subject {
		t.Errorf("%d messages of the study are set aside, the last one %+v (%v)", n, last, err)
	}
	var got metricdata.ResourceMetrics
	if err := reader.Collect(r.ctx(), &got); err != nil {
		t.Fatal(err)
	}
	refused := int64(0)
	for _, scope := range got.ScopeMetrics {
		for _, m := range scope.Metrics {
			if sum, ok := m.Data.(metricdata.Sum[int64]); ok && m.Name == telemetry.MetricRefused {
				refused = sum.DataPoints[0].Value
			}
		}
	}
	if refused != 2 {
		t.Errorf("%d messages are counted as refused, want 2", refused)
	}
	c.stop()
	next := r.replica(filled, func(*Options) {})
	isFull.Store(false)
	if err := next.Leading(r.ctx()); err != nil {
		t.Fatal(err)
	}
	var letters []membus.DeadLetter
	r.eventually(func() error {
		n, _, err := r.ledger.AsideSize(r.ctx())
		if letters = r.broker.DeadLetters(); err == nil && (n > 0 || len(letters) < 2) {
			err = fmt.Errorf("%d messages are still set aside, %d buried", n, len(letters))
		}
		return err
	})
	if !slices.ContainsFunc(letters, func(l membus.DeadLetter) bool { return l.Subject == subject && string(l.Raw) == "garbage" }) ||
		len(letters) != 2 {
		t.Errorf("the dead letters are %+v, want the two messages as they came", letters)
	}
}
