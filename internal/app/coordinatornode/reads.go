package coordinatornode

import (
	"context"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fantasia-hpo/fantasia/api/server"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
)

// etcdPatience is how long a read waits for etcd, whose client would wait for as long
// as the caller does.
const etcdPatience = 4 * time.Second

// reads are the ledger's, with errors in the API's words, and none that waits for etcd
// for long.
type reads struct{ *ledger.Ledger }

// read bounds a read of the ledger.
func read[T any](ctx context.Context, l reads, f func(context.Context) (T, error)) (T, error) {
	bounded, cancel := context.WithTimeout(ctx, etcdPatience)
	defer cancel()
	v, err := f(bounded)
	if err != nil && ctx.Err() == nil && (bounded.Err() != nil || status.Code(err) == codes.Unavailable) {
		err = fmt.Errorf("%w: etcd at %s does not answer", server.ErrEtcdAway, strings.Join(l.Endpoints(), ", "))
	}
	return v, translate(err)
}

func (l reads) studies(ctx context.Context) ([]ledger.Summary, error) {
	return read(ctx, l, l.Studies)
}

func (l reads) study(ctx context.Context, nameOrID string) (ledger.Summary, error) {
	return read(ctx, l, func(ctx context.Context) (ledger.Summary, error) { return l.Study(ctx, nameOrID) })
}

func (l reads) id(ctx context.Context, nameOrID string) (string, error) {
	return read(ctx, l, func(ctx context.Context) (string, error) { return l.ID(ctx, nameOrID) })
}

func (l reads) trial(ctx context.Context, id string, number int) (record.Trial, error) {
	return read(ctx, l, func(ctx context.Context) (record.Trial, error) { return l.Trial(ctx, id, number) })
}

// aside says which messages of a study were set aside, and why; "" if none were.
func (l reads) aside(ctx context.Context, id string) (string, error) {
	return read(ctx, l, func(ctx context.Context) (string, error) {
		last, n, err := l.AsidesOf(ctx, id)
		if err != nil || last == nil {
			return "", err
		}
		return fmt.Sprintf("%d messages were set aside because the dead-letter queue refused them (%s); the last one: %s",
			n, last.Refused, last.Reason), nil
	})
}

func (l reads) trials(ctx context.Context, id string, from, limit int) ([]record.Trial, error) {
	return read(ctx, l, func(ctx context.Context) ([]record.Trial, error) { return l.Trials(ctx, id, from, limit) })
}
