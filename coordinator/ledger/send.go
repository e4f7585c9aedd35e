package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fantasia-hpo/fantasia/internal/base/backoff"
)

// The pause before a transaction is sent again grows from the first to the last.
const (
	firstPause = 20 * time.Millisecond
	lastPause  = time.Second
)

// send executes a transaction, and sends it again until it is answered or ctx ends.
// unsure means that a copy may have been stored without this call knowing. The caller MUST send only
// what is safe to store twice, or what compares so that a second copy is refused. Once a copy was sent, the end of
// ctx is no proof that nothing was stored.
func (l *Ledger) send(ctx context.Context, cmps []clientv3.Cmp, then, orElse []clientv3.Op) (
	resp *clientv3.TxnResponse, unsure bool, err error) {
	pause := backoff.New(firstPause, lastPause)
	for {
		if cause := context.Cause(ctx); cause != nil && !unsure {
			return nil, false, fmt.Errorf("write to etcd: %w", cause)
		}
		try, cancel := context.WithTimeout(ctx, l.o.TryTimeout)
		resp, err = l.client.Txn(try).If(cmps...).Then(then...).Else(orElse...).Commit()
		cancel()
		if err == nil {
			return resp, unsure, nil
		}
		if known := definite(err); known != nil {
			return nil, unsure, fmt.Errorf("write to etcd: %w", known)
		}
		unsure = true
		if !pause.Wait(ctx) {
			return nil, true, fmt.Errorf("write to etcd: %w (last answer: %w)", context.Cause(ctx), err)
		}
	}
}

// definite returns the error for callers if it means that nothing was stored, and nil
// if that is uncertain. A code that is not listed counts as uncertain: to send once more costs little, and to take
// a stored commit for a refused one would make the leader's memory differ from the ledger. ErrNoSpace is
// an exception that transact looks into.
func definite(err error) error {
	if errors.Is(err, rpctypes.ErrNoSpace) {
		return fmt.Errorf("%w: %w", ErrNoSpace, err)
	}
	if errors.Is(err, rpctypes.ErrRequestTooLarge) {
		return fmt.Errorf("%w: %w", ErrTooLarge, err)
	}
	switch codeOf(err) {
	case codes.InvalidArgument, codes.PermissionDenied, codes.Unauthenticated, codes.Unimplemented:
		return err
	default:
		return nil
	}
}

// Away reports whether an error says that etcd cannot answer for now: it is not reached, or
// its members have no leader. It reports false for the end of a context.
func Away(err error) bool { return codeOf(err) == codes.Unavailable }

// codeOf is the code of an error of etcd's client, which has its own kind of errors for what
// a server says.
func codeOf(err error) codes.Code {
	var e rpctypes.EtcdError
	if errors.As(err, &e) {
		return e.Code()
	}
	return status.Code(err)
}
