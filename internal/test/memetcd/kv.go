package memetcd

import (
	"context"
	"errors"
	"slices"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/pkg/v3/traceutil"
	"go.etcd.io/etcd/server/v3/etcdserver/txn"
	etcdlease "go.etcd.io/etcd/server/v3/lease"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// The limits of a request, etcd's defaults.
const (
	maxTxnOps       = 128
	maxRequestBytes = 1536 << 10
)

// etcdKV implements etcdserverpb.KVClient.
type etcdKV struct{ c *Client }

var _ etcdserverpb.KVClient = etcdKV{}

// header is that of an answer. The caller MUST hold mu.
func (s *Server) header() *etcdserverpb.ResponseHeader {
	return &etcdserverpb.ResponseHeader{ClusterId: 1, MemberId: 1, Revision: s.store.revision, RaftTerm: 2}
}

// Range implements etcdserverpb.KVClient.
func (k etcdKV) Range(ctx context.Context, r *etcdserverpb.RangeRequest, _ ...grpc.CallOption) (*etcdserverpb.RangeResponse, error) {
	return single(ctx, k.c, OpRange, &etcdserverpb.RequestOp{Request: &etcdserverpb.RequestOp_RequestRange{RequestRange: r}},
		(*etcdserverpb.ResponseOp).GetResponseRange)
}

// RangeStream implements etcdserverpb.KVClient.
func (k etcdKV) RangeStream(context.Context, *etcdserverpb.RangeRequest,
	...grpc.CallOption) (grpc.ServerStreamingClient[etcdserverpb.RangeStreamResponse], error) {
	return nil, unimplemented("RangeStream")
}

// Put implements etcdserverpb.KVClient.
func (k etcdKV) Put(ctx context.Context, r *etcdserverpb.PutRequest, _ ...grpc.CallOption) (*etcdserverpb.PutResponse, error) {
	return single(ctx, k.c, OpPut, &etcdserverpb.RequestOp{Request: &etcdserverpb.RequestOp_RequestPut{RequestPut: r}},
		(*etcdserverpb.ResponseOp).GetResponsePut)
}

// DeleteRange implements etcdserverpb.KVClient.
func (k etcdKV) DeleteRange(ctx context.Context, r *etcdserverpb.DeleteRangeRequest,
	_ ...grpc.CallOption) (*etcdserverpb.DeleteRangeResponse, error) {
	return single(ctx, k.c, OpDelete, &etcdserverpb.RequestOp{Request: &etcdserverpb.RequestOp_RequestDeleteRange{RequestDeleteRange: r}},
		(*etcdserverpb.ResponseOp).GetResponseDeleteRange)
}

// single executes an operation as a transaction, and returns its part of the answer.
func single[T any](
	ctx context.Context, c *Client, name Op, op *etcdserverpb.RequestOp,
	answer func(*etcdserverpb.ResponseOp) T,
) (T, error) {
	return ask(ctx, c, name, writes(op), func() (none T, _ error) { //nolint:contextcheck // in memory it takes no time
		out, err := c.s.txn(&etcdserverpb.TxnRequest{Success: []*etcdserverpb.RequestOp{op}})
		if err != nil {
			return none, err
		}
		return answer(out.Responses[0]), nil
	})
}

// Compact implements etcdserverpb.KVClient.
func (k etcdKV) Compact(ctx context.Context, r *etcdserverpb.CompactionRequest, _ ...grpc.CallOption) (*etcdserverpb.CompactionResponse,
	error) {
	s := k.c.s
	return ask(ctx, k.c, OpCompact, true, func() (*etcdserverpb.CompactionResponse, error) {
		if err := s.store.compact(r.Revision); err != nil {
			return nil, err
		}
		s.wake()
		return &etcdserverpb.CompactionResponse{Header: s.header()}, nil
	})
}

// Txn implements etcdserverpb.KVClient.
func (k etcdKV) Txn(ctx context.Context, r *etcdserverpb.TxnRequest, _ ...grpc.CallOption) (*etcdserverpb.TxnResponse, error) {
	writing := slices.ContainsFunc(slices.Concat(r.Success, r.Failure), writes)
	apply := func() (*etcdserverpb.TxnResponse, error) { return k.c.s.txn(r) } //nolint:contextcheck // in memory it takes no time
	return ask(ctx, k.c, OpTxn, writing, apply)
}

// writes reports whether an operation may change something.
func writes(op *etcdserverpb.RequestOp) bool { return op.GetRequestRange() == nil }

// txn executes a transaction with etcd's own code, which executes nothing of one that fails. The
// caller MUST hold mu.
func (s *Server) txn(r *etcdserverpb.TxnRequest) (*etcdserverpb.TxnResponse, error) {
	if err := check(r, maxTxnOps); err != nil {
		return nil, err
	}
	for _, ops := range [][]*etcdserverpb.RequestOp{r.Success, r.Failure} {
		if err := checkOverlap(flat(ops)); err != nil {
			return nil, err
		}
	}
	switch {
	case proto.Size(r) > maxRequestBytes:
		return nil, rpctypes.ErrGRPCRequestTooLarge
	case s.full && slices.ContainsFunc(flat(slices.Concat(r.Success, r.Failure)),
		func(op *etcdserverpb.RequestOp) bool { return op.GetRequestPut() != nil }):
		return nil, rpctypes.ErrGRPCNoSpace
	}
	out, _, err := txn.Txn(context.Background(), zap.NewNop(), r, false, etcdView{s: s}, etcdLessor{s: s}, false)
	switch {
	case errors.Is(err, mvcc.ErrFutureRev):
		return nil, rpctypes.ErrGRPCFutureRev
	case errors.Is(err, mvcc.ErrCompacted):
		return nil, rpctypes.ErrGRPCCompacted
	case errors.Is(err, etcdlease.ErrLeaseNotFound):
		return nil, rpctypes.ErrGRPCLeaseNotFound
	case err != nil:
		return nil, err
	}
	out.Header = s.header()
	return out, nil
}

// etcdView is the store for etcd's code, which runs with the server locked.
type etcdView struct {
	mvcc.KV // nil: a transaction uses the methods below
	s       *Server
}

// Read implements mvcc.KV.
func (v etcdView) Read(mvcc.ReadTxMode, *traceutil.Trace) mvcc.TxnRead { return &etcdWriting{s: v.s} }

// Write implements mvcc.KV.
func (v etcdView) Write(*traceutil.Trace) mvcc.TxnWrite { return &etcdWriting{s: v.s} }

// etcdLessor tells etcd's code which leases there are.
type etcdLessor struct {
	etcdlease.Lessor // nil: a transaction uses the method below
	s                *Server
}

// Lookup implements lease.Lessor.
func (l etcdLessor) Lookup(id etcdlease.LeaseID) *etcdlease.Lease {
	if l.s.leases[int64(id)] == nil {
		return nil
	}
	return &etcdlease.Lease{ID: id}
}

// flat returns operations, with those of a transaction among them in its place.
func flat(ops []*etcdserverpb.RequestOp) (all []*etcdserverpb.RequestOp) {
	for _, op := range ops {
		if t := op.GetRequestTxn(); t != nil {
			all = append(all, flat(t.Success)...)
		} else {
			all = append(all, op)
		}
	}
	return all
}

// check refuses a transaction that etcd refuses, whatever it stores. At most `most` operations
// may be in a transaction among its own.
func check(r *etcdserverpb.TxnRequest, most int) error {
	widest := max(len(r.Compare), len(r.Success), len(r.Failure))
	if widest > most {
		return rpctypes.ErrGRPCTooManyOps
	}
	if slices.ContainsFunc(r.Compare, func(c *etcdserverpb.Compare) bool { return len(c.Key) == 0 }) {
		return rpctypes.ErrGRPCEmptyKey
	}
	for _, op := range slices.Concat(r.Success, r.Failure) {
		var of interface{ GetKey() []byte }
		switch v := op.Request.(type) {
		case *etcdserverpb.RequestOp_RequestRange:
			of = v.RequestRange
		case *etcdserverpb.RequestOp_RequestPut:
			of = v.RequestPut
		case *etcdserverpb.RequestOp_RequestDeleteRange:
			of = v.RequestDeleteRange
		case *etcdserverpb.RequestOp_RequestTxn:
			if len(v.RequestTxn.Compare)+len(v.RequestTxn.Failure) > 0 {
				return unimplemented("a transaction in a transaction with a condition of its own")
			}
			if err := check(v.RequestTxn, most-widest); err != nil {
				return err
			}
			continue
		default:
			return rpctypes.ErrGRPCKeyNotFound
		}
		if len(of.GetKey()) == 0 {
			return rpctypes.ErrGRPCEmptyKey
		}
	}
	return nil
}
