package memetcd

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
	_ "unsafe" // for go:linkname

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// valCtxCh is a channel of etcd's client that nobody ever closes: the Done of a context
// that does not end. A goroutine that waits for a channel from outside of a synctest
// bubble keeps the bubble's clock from moving, so this one becomes nil, which says the
// same: the context never ends.
//
//go:linkname valCtxCh go.etcd.io/etcd/client/v3.valCtxCh
var valCtxCh chan struct{}

func init() { valCtxCh = nil }

const (
	// progressEvery is how often an idle watch that asked for it is told how far it is.
	progressEvery = 10 * time.Minute
	// leaderless is how long a stream that requires a leader stays open without one.
	leaderless = 3 * time.Second
)

// etcdWatches implements etcdserverpb.WatchClient.
type etcdWatches struct{ c *Client }

var _ etcdserverpb.WatchClient = etcdWatches{}

// Watch implements etcdserverpb.WatchClient.
func (w etcdWatches) Watch(ctx context.Context,
	_ ...grpc.CallOption) (grpc.BidiStreamingClient[etcdserverpb.WatchRequest, etcdserverpb.WatchResponse], error) {
	st := &etcdStream{c: w.c, ctx: ctx, sent: make(chan struct{}, 1)}
	if md, ok := metadata.FromOutgoingContext(ctx); ok {
		st.requireLeader = slices.Contains(md.Get(rpctypes.MetadataRequireLeaderKey), rpctypes.MetadataHasLeader)
	}
	var err error
	if st.store, err = ask(ctx, w.c, OpWatch, false, func() (*etcdStore, error) { return w.c.s.store, nil }); err != nil {
		return nil, err
	}
	return st, nil
}

// etcdStream is a stream of watches. One goroutine may call Send while another calls Recv.
type etcdStream struct {
	grpc.ClientStream // nil: its methods are not used, but for those below
	c                 *Client
	ctx               context.Context
	requireLeader     bool
	store             *etcdStore // of the server when the stream was opened
	sent              chan struct{}

	mu      sync.Mutex
	queue   []*etcdserverpb.WatchResponse
	watches []*etcdWatch
	last    int64 // the last id of a watch
}

// etcdWatch is one watch of a stream.
type etcdWatch struct {
	id       int64
	keys     keyRange
	next     int64 // the first revision that was not looked at
	filters  []etcdserverpb.WatchCreateRequest_FilterType
	progress bool
	told     time.Time // when something was last sent
}

// Send implements grpc.BidiStreamingClient.
func (st *etcdStream) Send(r *etcdserverpb.WatchRequest) error {
	s := st.c.s
	s.mu.Lock()
	st.mu.Lock()
	defer func() {
		st.mu.Unlock()
		s.mu.Unlock()
		select {
		case st.sent <- struct{}{}:
		default:
		}
	}()
	switch v := r.RequestUnion.(type) {
	case *etcdserverpb.WatchRequest_CreateRequest:
		return st.create(v.CreateRequest)
	case *etcdserverpb.WatchRequest_CancelRequest:
		id := v.CancelRequest.WatchId
		n := len(st.watches)
		st.watches = slices.DeleteFunc(st.watches, func(w *etcdWatch) bool { return w.id == id })
		if len(st.watches) < n {
			st.queue = append(st.queue, &etcdserverpb.WatchResponse{Header: s.header(), WatchId: id, Canceled: true})
		}
		return nil
	default:
		return unimplemented("a request for progress")
	}
}

// create adds a watch. The caller MUST hold the locks.
func (st *etcdStream) create(r *etcdserverpb.WatchCreateRequest) error {
	if r.PrevKv || r.Fragment || r.WatchId != 0 {
		return unimplemented("a watch with previous values, fragments or a chosen id")
	}
	s := st.c.s
	w := &etcdWatch{
		id: st.last, keys: within(r.Key, r.RangeEnd), next: r.StartRevision,
		filters: r.Filters, progress: r.ProgressNotify, told: time.Now(),
	}
	st.last++
	w.next = cmp.Or(w.next, s.store.revision+1)
	st.watches = append(st.watches, w)
	st.queue = append(st.queue, &etcdserverpb.WatchResponse{Header: s.header(), WatchId: w.id, Created: true})
	return nil
}

// CloseSend implements grpc.ClientStream.
func (st *etcdStream) CloseSend() error { return nil }

// Recv implements grpc.BidiStreamingClient.
func (st *etcdStream) Recv() (*etcdserverpb.WatchResponse, error) {
	var away time.Time // since when etcd is not reached; zero while it is
	for {
		out, until, changed, err := st.nextResponse(&away)
		if out != nil || err != nil {
			return out, err
		}
		if err := st.wait(until, changed); err != nil {
			return nil, err
		}
	}
}

// wait waits until a time, a change, or a request.
func (st *etcdStream) wait(until time.Time, changed <-chan struct{}) error {
	t := time.NewTimer(time.Until(until))
	defer t.Stop()
	select {
	case <-t.C:
	case <-changed:
	case <-st.sent:
	case <-st.c.dead:
		return errEtcdKilled
	case <-st.ctx.Done():
		return st.ctx.Err()
	}
	return nil
}

// nextResponse returns the next answer; if there is none, until when to wait, and for what.
func (st *etcdStream) nextResponse(away *time.Time) (*etcdserverpb.WatchResponse, time.Time, <-chan struct{}, error) {
	s, now := st.c.s, time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	st.mu.Lock()
	defer st.mu.Unlock()
	switch {
	case st.c.killed:
		return nil, now, nil, errEtcdKilled
	case st.store != s.store:
		return nil, now, nil, errEtcdLost
	case st.c.cut || s.stopped:
		if away.IsZero() {
			*away = now
		}
		patient, lost := etcdPatience, errEtcdLost
		if st.requireLeader && !st.c.cut {
			patient, lost = leaderless, rpctypes.ErrGRPCNoLeader
		}
		if now.Sub(*away) >= patient {
			return nil, now, nil, lost
		}
		return nil, away.Add(patient), s.changed, nil
	}
	*away = time.Time{}
	if len(st.queue) > 0 {
		out := st.queue[0]
		st.queue = st.queue[1:]
		return out, now, nil, nil
	}
	due := now.Add(progressEvery)
	for i, w := range st.watches {
		if w.next < s.store.compacted {
			st.watches = slices.Delete(st.watches, i, i+1)
			return &etcdserverpb.WatchResponse{Header: s.header(), WatchId: w.id, Canceled: true, CompactRevision: s.store.compacted}, now, nil, nil
		}
		events := w.takeEvents(s.store)
		if len(events) == 0 && !(w.progress && now.Sub(w.told) >= progressEvery) {
			if next := w.told.Add(progressEvery); w.progress && next.Before(due) {
				due = next
			}
			continue
		}
		w.told = now
		return &etcdserverpb.WatchResponse{Header: s.header(), WatchId: w.id, Events: events}, now, nil, nil
	}
	return nil, due, s.changed, nil
}

// takeEvents returns the events of the next revision that has some for the watch.
func (w *etcdWatch) takeEvents(s *etcdStore) (events []*mvccpb.Event) {
	i, _ := slices.BinarySearchFunc(s.changes, w.next, func(c etcdChange, revision int64) int { return int(c.revision - revision) })
	for _, c := range s.changes[i:] {
		w.next = c.revision + 1
		for _, e := range c.events {
			if w.keys.has(string(e.Kv.Key)) && !w.filtered(e) {
				events = append(events, e)
			}
		}
		if len(events) > 0 {
			break
		}
	}
	return events
}

func (w *etcdWatch) filtered(e *mvccpb.Event) bool {
	unwanted := etcdserverpb.WatchCreateRequest_NOPUT
	if e.Type == mvccpb.Event_DELETE {
		unwanted = etcdserverpb.WatchCreateRequest_NODELETE
	}
	return slices.Contains(w.filters, unwanted)
}
