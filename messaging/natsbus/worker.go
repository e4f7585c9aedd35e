package natsbus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/fantasia-hpo/fantasia/messaging"
)

var _ messaging.Worker = (*Worker)(nil)

// WorkerOptions configure a Worker.
type WorkerOptions struct {
	// Name and Pool are the worker's name and pool; both are required (see
	// messaging.CheckWorker).
	Name, Pool string
	// Instance distinguishes one run of the worker's process from the next, and so the
	// ids of their claims.
	Instance string
	// Shard is the shard that the worker works for; messaging.Shard by default.
	Shard string
	// Timeout limits one request to the broker; 5 s by default.
	Timeout time.Duration
	// Logger receives the logs; none by default.
	Logger *slog.Logger
}

// Worker is the JetStream side of a worker. It implements messaging.Worker. If a
// publish fails with an error other than messaging's, the message may or may not have
// been stored: publish it again.
type Worker struct {
	*client
	opts WorkerOptions
}

// NewWorker returns a worker's bus on a connection that the caller keeps owning.
func NewWorker(nc *nats.Conn, o WorkerOptions) (*Worker, error) {
	if err := messaging.CheckWorker(o.Pool, o.Name); err != nil {
		return nil, err
	}
	c, err := newClient(nc, o.Shard, o.Timeout, o.Logger)
	if err != nil {
		return nil, err
	}
	return &Worker{client: c, opts: o}, nil
}

// Claim implements messaging.Worker. A retry counts as the same claim for two
// minutes.
func (w *Worker) Claim(ctx context.Context, id string, c *messaging.Claim) error {
	m, err := w.own(c.Worker, c)
	if err != nil {
		return err
	}
	if id == "" {
		return errors.New("claim: the id is empty")
	}
	// The id includes the subject, the worker and the instance, so that no two claims
	// share an id even if callers are careless: the server would take the second for a
	// retry.
	m.Header.Set(jetstream.MsgIDHeader, m.Subject+"/"+w.opts.Name+"/"+w.opts.Instance+"/"+id)
	_, err = w.store(ctx, m)
	if isSecond(err) {
		return fmt.Errorf("%w: %s", messaging.ErrClaimed, m.Subject)
	}
	return err
}

// own encodes a message. It refuses one in another worker's name.
func (w *Worker) own(name string, e messaging.Envelope) (*nats.Msg, error) {
	if name != w.opts.Name {
		return nil, fmt.Errorf("%w: worker %q on the bus of %q", messaging.ErrInvalid, name, w.opts.Name)
	}
	return w.message(e)
}

// PublishResult implements messaging.Worker.
func (w *Worker) PublishResult(ctx context.Context, r *messaging.Result) error {
	return w.publish(ctx, r.Worker, r)
}

// PublishMeasurement implements messaging.Worker.
func (w *Worker) PublishMeasurement(ctx context.Context, m *messaging.Measurement) error {
	return w.publish(ctx, m.Worker, m)
}

func (w *Worker) publish(ctx context.Context, name string, e messaging.Envelope) error {
	m, err := w.own(name, e)
	if err != nil {
		return err
	}
	_, err = w.store(ctx, m)
	return err
}

// tell sends an envelope without waiting for an acknowledgement.
func (w *Worker) tell(ctx context.Context, name string, e messaging.Envelope) error {
	m, err := w.own(name, e)
	if err != nil {
		return err
	}
	return w.send(ctx, m)
}

// Heartbeat implements messaging.Worker.
func (w *Worker) Heartbeat(ctx context.Context, h *messaging.Heartbeat) error {
	return w.tell(ctx, h.Worker, h)
}

// SendLog implements messaging.Worker.
func (w *Worker) SendLog(ctx context.Context, p *messaging.LogPart) error {
	return w.tell(ctx, p.Worker, p)
}

// Controls implements messaging.Worker.
func (w *Worker) Controls(ctx context.Context) (<-chan messaging.Control, error) {
	s := messaging.Subject{Kind: messaging.KindControl, Shard: w.shard, Worker: w.opts.Name}
	return subscribe(ctx, w.client, s.String(), func(m *nats.Msg) (c messaging.Control, err error) {
		return c, decode(m.Subject, m.Header, m.Data, &c)
	})
}
