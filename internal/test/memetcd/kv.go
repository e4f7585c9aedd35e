package memetcd

import (
	"context"
	"slices"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// The limits of a request, etcd's defaults.
const (
	maxTxnOps       = 128
	maxRequestBytes = 1536 << 10
)

// kv implements etcdserverpb.KVClient.
type kv struct{ c *Client }

var _ etcdserverpb.KVClient = kv{}

// header is that of an answer. The caller MUST hold mu.
func (s *Server) header() *etcdserverpb.ResponseHeader {
	return &etcdserverpb.ResponseHeader{ClusterId: 1, MemberId: 1, Revision: s.store.revision, RaftTerm: 2}
}

// Range implements etcdserverpb.KVClient.
func (k kv) Range(ctx context.Context, r *etcdserverpb.RangeRequest, _ ...grpc.CallOption) (*etcdserverpb.RangeResponse, error) {
	return ask(ctx, k.c, OpRange, false, func() (*etcdserverpb.RangeResponse, error) {
		out, err := k.c.s.store.readRange(r, k.c.s.store.revision)
		if err != nil {
			return nil, err
		}
		out.Header = k.c.s.header()
		return out, nil
	})
}

// RangeStream implements etcdserverpb.KVClient.
func (k kv) RangeStream(context.Context, *etcdserverpb.RangeRequest, ...grpc.CallOption) (grpc.ServerStreamingClient[etcdserverpb.RangeStreamResponse], error) {
	return nil, unimplemented("RangeStream")
}

// Put implements etcdserverpb.KVClient.
func (k kv) Put(ctx context.Context, r *etcdserverpb.PutRequest, _ ...grpc.CallOption) (*etcdserverpb.PutResponse, error) {
	s := k.c.s
	return ask(ctx, k.c, OpPut, true, func() (*etcdserverpb.PutResponse, error) {
		if err := admits(r); err != nil {
			return nil, err
		}
		w := &writing{s: s.store}
		if err := s.put(w, r); err != nil {
			return nil, err
		}
		s.finish(w)
		return &etcdserverpb.PutResponse{Header: s.header()}, nil
	})
}

// DeleteRange implements etcdserverpb.KVClient.
func (k kv) DeleteRange(ctx context.Context, r *etcdserverpb.DeleteRangeRequest, _ ...grpc.CallOption) (*etcdserverpb.DeleteRangeResponse, error) {
	s := k.c.s
	return ask(ctx, k.c, OpDelete, true, func() (*etcdserverpb.DeleteRangeResponse, error) {
		if err := checkDelete(r); err != nil {
			return nil, err
		}
		w := &writing{s: s.store}
		out := &etcdserverpb.DeleteRangeResponse{Deleted: w.remove(within(r.Key, r.RangeEnd))}
		s.finish(w)
		out.Header = s.header()
		return out, nil
	})
}

// Compact implements etcdserverpb.KVClient.
func (k kv) Compact(ctx context.Context, r *etcdserverpb.CompactionRequest, _ ...grpc.CallOption) (*etcdserverpb.CompactionResponse, error) {
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
func (k kv) Txn(ctx context.Context, r *etcdserverpb.TxnRequest, _ ...grpc.CallOption) (*etcdserverpb.TxnResponse, error) {
	return ask(ctx, k.c, OpTxn, slices.ContainsFunc(slices.Concat(r.Success, r.Failure), writes), func() (*etcdserverpb.TxnResponse, error) {
		return k.c.s.txn(r)
	})
}

// writes reports whether an operation may change something.
func writes(op *etcdserverpb.RequestOp) bool { return op.GetRequestRange() == nil }

// txn executes a transaction. The caller MUST hold mu.
func (s *Server) txn(r *etcdserverpb.TxnRequest) (*etcdserverpb.TxnResponse, error) {
	widest := max(len(r.Compare), len(r.Success), len(r.Failure))
	if widest > maxTxnOps {
		return nil, rpctypes.ErrGRPCTooManyOps
	}
	for _, ops := range [][]*etcdserverpb.RequestOp{r.Success, r.Failure} {
		if err := checkOps(ops, maxTxnOps-widest); err != nil {
			return nil, err
		}
		if err := checkOverlap(flat(ops)); err != nil {
			return nil, err
		}
	}
	if err := admits(r); err != nil {
		return nil, err
	}
	out := &etcdserverpb.TxnResponse{Succeeded: true}
	ops := r.Success
	for _, c := range r.Compare {
		if len(c.Key) == 0 {
			return nil, rpctypes.ErrGRPCEmptyKey
		}
		holds, err := s.store.compare(c)
		if err != nil {
			return nil, err
		}
		if !holds {
			out.Succeeded, ops = false, r.Failure
		}
	}
	if s.full && slices.ContainsFunc(flat(ops), func(op *etcdserverpb.RequestOp) bool { return op.GetRequestPut() != nil }) {
		return nil, rpctypes.ErrGRPCNoSpace
	}
	if err := s.possible(flat(ops)); err != nil { // nothing is executed of a transaction that fails
		return nil, err
	}
	w := &writing{s: s.store}
	for _, op := range ops {
		answer, err := s.execute(w, op)
		if err != nil {
			return nil, err
		}
		out.Responses = append(out.Responses, answer)
	}
	s.finish(w)
	out.Header = s.header()
	return out, nil
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

// checkOps refuses operations that etcd refuses, whatever it stores. At most room
// operations may be in a transaction among them.
func checkOps(ops []*etcdserverpb.RequestOp, room int) error {
	for _, op := range ops {
		var err error
		switch v := op.Request.(type) {
		case *etcdserverpb.RequestOp_RequestRange:
			err = checkRange(v.RequestRange)
		case *etcdserverpb.RequestOp_RequestPut:
			err = checkPut(v.RequestPut)
		case *etcdserverpb.RequestOp_RequestDeleteRange:
			err = checkDelete(v.RequestDeleteRange)
		case *etcdserverpb.RequestOp_RequestTxn:
			err = checkInner(v.RequestTxn, room)
		default:
			err = rpctypes.ErrGRPCKeyNotFound
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkInner refuses a transaction in a transaction.
func checkInner(r *etcdserverpb.TxnRequest, room int) error {
	switch {
	case len(r.Compare)+len(r.Failure) > 0:
		return unimplemented("a transaction in a transaction with a condition of its own")
	case len(r.Success) > room:
		return rpctypes.ErrGRPCTooManyOps
	}
	return checkOps(r.Success, room-len(r.Success))
}

// possible refuses operations that what is stored makes impossible.
func (s *Server) possible(ops []*etcdserverpb.RequestOp) error {
	for _, op := range ops {
		if r := op.GetRequestRange(); r != nil {
			if err := s.store.readable(r.Revision); err != nil {
				return err
			}
		}
		if p := op.GetRequestPut(); p != nil && p.Lease != 0 && s.leases[p.Lease] == nil {
			return rpctypes.ErrGRPCLeaseNotFound
		}
	}
	return nil
}

// execute executes an operation of a transaction.
func (s *Server) execute(w *writing, op *etcdserverpb.RequestOp) (*etcdserverpb.ResponseOp, error) {
	if r := op.GetRequestRange(); r != nil {
		out, err := s.store.readRange(r, w.present())
		if err != nil {
			return nil, err
		}
		out.Header = &etcdserverpb.ResponseHeader{Revision: w.present()}
		return &etcdserverpb.ResponseOp{Response: &etcdserverpb.ResponseOp_ResponseRange{ResponseRange: out}}, nil
	}
	if p := op.GetRequestPut(); p != nil {
		if err := s.put(w, p); err != nil {
			return nil, err
		}
		out := &etcdserverpb.PutResponse{Header: &etcdserverpb.ResponseHeader{Revision: w.revision()}}
		return &etcdserverpb.ResponseOp{Response: &etcdserverpb.ResponseOp_ResponsePut{ResponsePut: out}}, nil
	}
	if t := op.GetRequestTxn(); t != nil {
		out := &etcdserverpb.TxnResponse{Succeeded: true}
		for _, inner := range t.Success {
			answer, err := s.execute(w, inner)
			if err != nil {
				return nil, err
			}
			out.Responses = append(out.Responses, answer)
		}
		out.Header = &etcdserverpb.ResponseHeader{Revision: w.present()}
		return &etcdserverpb.ResponseOp{Response: &etcdserverpb.ResponseOp_ResponseTxn{ResponseTxn: out}}, nil
	}
	d := op.GetRequestDeleteRange()
	out := &etcdserverpb.DeleteRangeResponse{Deleted: w.remove(within(d.Key, d.RangeEnd))}
	out.Header = &etcdserverpb.ResponseHeader{Revision: w.present()}
	return &etcdserverpb.ResponseOp{Response: &etcdserverpb.ResponseOp_ResponseDeleteRange{ResponseDeleteRange: out}}, nil
}

// admits refuses requests that are too large.
func admits(r proto.Message) error {
	if proto.Size(r) > maxRequestBytes {
		return rpctypes.ErrGRPCRequestTooLarge
	}
	return nil
}

func checkPut(r *etcdserverpb.PutRequest) error {
	switch {
	case len(r.Key) == 0:
		return rpctypes.ErrGRPCEmptyKey
	case r.PrevKv || r.IgnoreValue || r.IgnoreLease:
		return unimplemented("a put that returns or keeps what was stored before")
	}
	return nil
}

func checkDelete(r *etcdserverpb.DeleteRangeRequest) error {
	switch {
	case len(r.Key) == 0:
		return rpctypes.ErrGRPCEmptyKey
	case r.PrevKv:
		return unimplemented("a deletion that returns what was stored before")
	}
	return nil
}

// put stores a value and attaches its key to its lease.
func (s *Server) put(w *writing, r *etcdserverpb.PutRequest) error {
	if err := checkPut(r); err != nil {
		return err
	}
	if s.full {
		return rpctypes.ErrGRPCNoSpace
	}
	if r.Lease != 0 && s.leases[r.Lease] == nil {
		return rpctypes.ErrGRPCLeaseNotFound
	}
	w.put(r.Key, r.Value, r.Lease)
	return nil
}

// finish makes changes visible and tells the watchers.
func (s *Server) finish(w *writing) {
	if !w.finish() {
		return
	}
	for _, e := range w.events {
		if s.opts.Stored != nil && e.Type == mvccpb.Event_PUT {
			s.opts.Stored(string(e.Kv.Key), e.Kv.Value)
		}
	}
	s.wake()
}
