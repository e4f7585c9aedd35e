package memetcd

import (
	"context"
	"io"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
)

// etcdLease is a lease that has not ended.
type etcdLease struct {
	ttl   time.Duration
	timer *time.Timer // ends it
}

// etcdLeases implements etcdserverpb.LeaseClient.
type etcdLeases struct{ c *Client }

var _ etcdserverpb.LeaseClient = etcdLeases{}

// LeaseGrant implements etcdserverpb.LeaseClient.
func (l etcdLeases) LeaseGrant(ctx context.Context, r *etcdserverpb.LeaseGrantRequest,
	_ ...grpc.CallOption) (*etcdserverpb.LeaseGrantResponse, error) {
	s := l.c.s
	return ask(ctx, l.c, OpGrant, true, func() (*etcdserverpb.LeaseGrantResponse, error) {
		if r.ID != 0 || r.TTL < 1 {
			return nil, unimplemented("a lease with a chosen id, or of less than a second")
		}
		if s.full {
			return nil, rpctypes.ErrGRPCNoSpace
		}
		s.granted++
		id := s.granted
		ttl := time.Duration(r.TTL) * time.Second
		granted := &etcdLease{ttl: ttl}
		granted.timer = time.AfterFunc(ttl, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.leases[id] == granted && !s.stopped {
				s.revoke(id)
			}
		})
		s.leases[id] = granted
		return &etcdserverpb.LeaseGrantResponse{Header: s.header(), ID: id, TTL: r.TTL}, nil
	})
}

// revoke ends a lease and deletes its keys. The caller MUST hold mu.
func (s *Server) revoke(id int64) {
	s.leases[id].timer.Stop()
	delete(s.leases, id)
	w := &etcdWriting{s: s}
	for _, key := range s.store.keys {
		if kv := s.store.last(key); kv != nil && kv.Lease == id {
			w.set(key, nil)
		}
	}
	w.End()
}

// LeaseRevoke implements etcdserverpb.LeaseClient.
func (l etcdLeases) LeaseRevoke(ctx context.Context, r *etcdserverpb.LeaseRevokeRequest,
	_ ...grpc.CallOption) (*etcdserverpb.LeaseRevokeResponse, error) {
	s := l.c.s
	return ask(ctx, l.c, OpRevoke, true, func() (*etcdserverpb.LeaseRevokeResponse, error) {
		if s.leases[r.ID] == nil {
			return nil, rpctypes.ErrGRPCLeaseNotFound
		}
		s.revoke(r.ID)
		return &etcdserverpb.LeaseRevokeResponse{Header: s.header()}, nil
	})
}

// LeaseKeepAlive implements etcdserverpb.LeaseClient.
func (l etcdLeases) LeaseKeepAlive(ctx context.Context,
	_ ...grpc.CallOption) (grpc.BidiStreamingClient[etcdserverpb.LeaseKeepAliveRequest, etcdserverpb.LeaseKeepAliveResponse], error) {
	return &etcdRenewals{c: l.c, ctx: ctx}, nil
}

// LeaseTimeToLive implements etcdserverpb.LeaseClient.
func (l etcdLeases) LeaseTimeToLive(context.Context, *etcdserverpb.LeaseTimeToLiveRequest,
	...grpc.CallOption) (*etcdserverpb.LeaseTimeToLiveResponse, error) {
	return nil, unimplemented("LeaseTimeToLive")
}

// LeaseLeases implements etcdserverpb.LeaseClient.
func (l etcdLeases) LeaseLeases(context.Context, *etcdserverpb.LeaseLeasesRequest, ...grpc.CallOption) (*etcdserverpb.LeaseLeasesResponse,
	error) {
	return nil, unimplemented("LeaseLeases")
}

// etcdRenewals is a stream for one renewal. Not safe for concurrent use.
type etcdRenewals struct {
	grpc.ClientStream // nil: its methods are not used, but for those below
	c                 *Client
	ctx               context.Context
	id                int64
}

// Send implements grpc.BidiStreamingClient.
func (r *etcdRenewals) Send(q *etcdserverpb.LeaseKeepAliveRequest) error {
	if r.id != 0 {
		return unimplemented("a second renewal on a stream")
	}
	r.id = q.ID
	return nil
}

// CloseSend implements grpc.ClientStream.
func (r *etcdRenewals) CloseSend() error { return nil }

// Recv implements grpc.BidiStreamingClient.
func (r *etcdRenewals) Recv() (*etcdserverpb.LeaseKeepAliveResponse, error) {
	if r.id == 0 {
		return nil, io.EOF
	}
	s := r.c.s
	return ask(r.ctx, r.c, OpKeepAlive, true, func() (*etcdserverpb.LeaseKeepAliveResponse, error) {
		out := &etcdserverpb.LeaseKeepAliveResponse{Header: s.header(), ID: r.id}
		if l := s.leases[r.id]; l != nil { // else the time to live is 0
			l.timer.Reset(l.ttl)
			out.TTL = int64(l.ttl / time.Second)
		}
		return out, nil
	})
}
