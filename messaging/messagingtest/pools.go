package messagingtest

import "github.com/fantasia-hpo/fantasia/messaging"

// pooledName: a worker whose name has its pool in it is served as any other, on
// subjects that hold the pool; and it cannot have another pool's name.
func pooledName(f *fixture) {
	l := f.leader(1)
	name := messaging.WorkerName(Pool, "w")
	w := f.Worker(name, Pool)
	beats, err := l.Heartbeats(f.ctx)
	f.ok(err, "heartbeats")
	told, err := w.Controls(f.ctx)
	f.ok(err, "controls")
	f.assign(l, assignment("s", 1))
	d := f.fetch(w)
	id := d.Assignment().AttemptID
	f.ok(w.Claim(f.ctx, "id", claim(id, name)), "claim")
	f.ok(d.Ack(f.ctx), "ack")
	f.ok(w.Heartbeat(f.ctx, heartbeat(name)), "heartbeat")
	if got := receive(f, beats); got.Worker != name {
		f.Errorf("heartbeat of %q, want %q", got.Worker, name)
	}
	m := measurement(id, 1)
	m.Worker = name
	f.ok(w.PublishMeasurement(f.ctx, m), "measure")
	f.ok(w.PublishResult(f.ctx, result(id, name, 1)), "publish")
	results := f.read(l, messaging.StreamResult, messaging.Cursor{})
	if got := f.next(results).Result; got == nil || got.Worker != name {
		f.Errorf("read %+v, want the result of %q", got, name)
	}
	if got := f.next(f.read(l, messaging.StreamClaim, messaging.Cursor{})).Claim; got == nil || got.Worker != name {
		f.Errorf("read %+v, want the claim of %q", got, name)
	}
	f.ok(l.Control(f.ctx, control(id, name)), "control")
	if got := receive(f, told); got.Worker != name {
		f.Errorf("received %+v, want the receipt of %q", got, name)
	}
	f.ok(l.Purge(f.ctx, "s", true), "purge")
	f.end(f.read(l, messaging.StreamResult, messaging.Cursor{}))
	other := heartbeat(messaging.WorkerName("other", "w"))
	f.want(w.Heartbeat(f.ctx, other), messaging.ErrInvalid, "heartbeat in the name of another pool's worker")
	f.want(other.Validate(), messaging.ErrInvalid, "a heartbeat whose name and pool differ")
}
