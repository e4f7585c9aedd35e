package messagingtest

import (
	"context"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/messaging"
)

func measurement(id messaging.AttemptID, step int64) *messaging.Measurement {
	return &messaging.Measurement{Version: messaging.SchemaVersion, AttemptID: id, Worker: worker("w"), Step: step,
		Metrics: map[string]float64{"error": 1 / float64(step)}}
}

// measurements: an attempt's reports are read in the order in which they were
// stored, by a live reader and by one that goes on from a cursor; one that is sent
// again is read again.
func measurements(f *fixture) {
	const n, cut = 30, 12
	l, w := f.pair()
	r := f.openReader(l, messaging.StreamMetric, messaging.Cursor{})
	id := attempt("s", 1)
	for step := int64(1); step <= n; step++ {
		f.ok(w.PublishMeasurement(f.ctx, measurement(id, step)), "measure")
	}
	f.ok(w.PublishMeasurement(f.ctx, measurement(id, n)), "measure again")
	f.ok(w.PublishMeasurement(f.ctx, measurement(attempt("s", 2), 1)), "measure another trial")
	wanted := make([]*messaging.Measurement, 0, n+2)
	for step := int64(1); step <= n; step++ {
		wanted = append(wanted, measurement(id, step))
	}
	wanted = append(wanted, measurement(id, n), measurement(attempt("s", 2), 1))
	var cursor messaging.Cursor
	read := func(r messaging.Reader, from int) {
		f.Helper()
		for i, want := range wanted[from:] {
			e := f.next(r)
			if diff := cmp.Diff(want, e.Measurement); diff != "" || e.Stream != messaging.StreamMetric {
				f.Fatalf("measurement %d (-sent +read):\n%s", from+i, diff)
			}
			if from+i+1 == cut {
				cursor = e.Cursor
			}
		}
		f.end(r)
	}
	read(r, 0)
	read(f.openReader(l, messaging.StreamMetric, cursor), cut)
	last, err := l.Last(f.ctx, messaging.StreamMetric)
	f.ok(err, "last")
	if e := f.last(l, f.openReader(l, messaging.StreamMetric, cursor), messaging.StreamMetric); e.Cursor.Sequence != last {
		f.Errorf("the last measurement has sequence %d, want %d", e.Cursor.Sequence, last)
	}
}

func heartbeats(f *fixture) {
	l := f.leader(1)
	beats, err := l.Heartbeats(f.ctx)
	f.ok(err, "heartbeats")
	for _, name := range []string{"v", "w"} {
		f.ok(f.Worker(name, Pool).Heartbeat(f.ctx, heartbeat(name)), "heartbeat of %s", name)
		f.same("heartbeat (-sent +received)", *heartbeat(name), receive(f, beats))
	}
}

func controls(f *fixture) {
	l := f.leader(1)
	ctx, cancel := context.WithCancel(f.ctx)
	defer cancel()
	v, err := f.Worker("v", Pool).Controls(ctx)
	f.ok(err, "controls of v")
	w, err := f.Worker("w", Pool).Controls(ctx)
	f.ok(err, "controls of w")
	poison := control(messaging.AttemptID{Study: "s", Trial: 1, Attempt: 1}, "w") // no nonce
	for _, c := range []*messaging.Control{control(attempt("s", 1), "w"), poison, control(attempt("s", 2), "v")} {
		f.ok(l.Control(f.ctx, c), "control")
	}
	if got := receive(f, v); got.Trial != 2 {
		f.Errorf("v received %+v, want its own", got)
	}
	f.same("control (-sent +received)", *control(attempt("s", 1), "w"), receive(f, w))
	if got := receive(f, w); got.Nonce != "" {
		f.Errorf("received %+v, want the receipt of a poison result", got)
	}
}

// logs holds that a worker is asked for a part of a log, that who listens to that worker
// hears the answer, byte for byte, and that nobody answers in another's name.
func logs(f *fixture) {
	l := f.leader(1)
	v, w := f.Worker("v", Pool), f.Worker("w", Pool)
	asked, err := w.Controls(f.ctx)
	f.ok(err, "controls of w")
	ofW, err := f.Leader().Logs(f.ctx, worker("w")) // any replica's
	f.ok(err, "logs of w")
	request := &messaging.Control{Version: messaging.SchemaVersion, Kind: messaging.ControlLogs, Worker: worker("w"),
		AttemptID: attempt("s", 1), Logs: &messaging.LogRequest{ID: "first", Stream: messaging.LogStderr, Lines: 10}}
	f.ok(l.Control(f.ctx, request), "ask for a log")
	f.same("request (-sent +received)", *request, receive(f, asked))
	data := make([]byte, messaging.MaxLogData)
	for i := range data {
		data[i] = byte(i)
	}
	part := func(name, request string) *messaging.LogPart {
		return &messaging.LogPart{Version: messaging.SchemaVersion, AttemptID: attempt("s", 1), Worker: worker(name), Request: request,
			Stream: messaging.LogStderr, Offset: 7, Size: 7 + messaging.MaxLogData, Data: data, Running: true}
	}
	f.ok(v.SendLog(f.ctx, part("v", "first")), "answer as v")
	f.want(v.SendLog(f.ctx, part("w", "first")), messaging.ErrInvalid, "answer in another's name")
	f.ok(w.SendLog(f.ctx, part("w", "first")), "answer as w")
	f.same("part (-sent +received)", *part("w", "first"), receive(f, ofW))
	large := part("w", "second")
	large.Data = append(data, 0)
	f.want(w.SendLog(f.ctx, large), messaging.ErrInvalid, "answer with too much")
	if _, err := l.Logs(f.ctx, "*"); err == nil {
		f.Error("logs of a wildcard")
	}
}

// traceContext travels with every message of a trial.
func traceContext(f *fixture) {
	trace := messaging.TraceContext{
		Traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		Tracestate:  "congo=t61rcWkgMzE",
	}
	l, w := f.pair()
	a := assignment("s", 1)
	a.TraceContext = trace
	f.assign(l, a)
	if got := f.fetch(w).Assignment().TraceContext; got != trace {
		f.Errorf("assignment: %+v, want %+v", got, trace)
	}
	c, r := claim(a.AttemptID, "w"), result(a.AttemptID, "w", 1)
	c.TraceContext, r.TraceContext = trace, trace
	f.ok(w.Claim(f.ctx, "id", c), "claim")
	f.ok(w.PublishResult(f.ctx, r), "publish")
	if got := f.next(f.openReader(l, messaging.StreamClaim, messaging.Cursor{})).Claim; got.TraceContext != trace {
		f.Errorf("claim: %+v, want %+v", got.TraceContext, trace)
	}
	if got := f.next(f.openReader(l, messaging.StreamResult, messaging.Cursor{})).Result; got.TraceContext != trace {
		f.Errorf("result: %+v, want %+v", got.TraceContext, trace)
	}
}
