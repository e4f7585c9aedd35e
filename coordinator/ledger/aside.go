package ledger

import (
	"context"
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
)

// asideDir contains the messages that the dead-letter queue has refused, by study; those
// of no known study are below "-".
const asideDir = "aside/"

func asideOf(study string) string {
	if study == "" || strings.Contains(study, "/") {
		study = "-"
	}
	return asideDir + study + "/"
}

// PutAside stores a message that the dead-letter queue has refused, under a key that
// sorts by time. It is stored no later than the cursor that moves past the message, so the message is
// in the stream or here. Package deadletter bounds how many there are.
func (b *Batch) PutAside(key string, a *record.Aside) { b.encode(asideOf(a.Study)+key, a) }

// DeleteAside deletes such a message; key is the one that Asides returned.
func (b *Batch) DeleteAside(key string) { b.set(op{Key: asideDir + key}) }

// Aside is a stored message and its key.
type Aside struct {
	Key string
	record.Aside
}

// Asides reads up to limit messages that were set aside, in no particular order. It skips
// those that cannot be read, since they cannot go to the dead-letter queue either.
func (l *Ledger) Asides(ctx context.Context, limit int) ([]Aside, error) {
	resp, err := l.client.Get(ctx, l.o.Prefix+asideDir, clientv3.WithPrefix(), clientv3.WithLimit(int64(limit)))
	if err != nil {
		return nil, fmt.Errorf("read the messages that were set aside: %w", err)
	}
	var out []Aside
	for _, kv := range resp.Kvs {
		a := Aside{Key: strings.TrimPrefix(string(kv.Key), l.o.Prefix+asideDir)}
		if decode(kv, &a.Aside) == nil {
			out = append(out, a)
		}
	}
	return out, nil
}

// AsidesOf reads the last message of a study that was set aside, if there is one, and how
// many there are.
func (l *Ledger) AsidesOf(ctx context.Context, study string) (last *record.Aside, n int, err error) {
	key := l.o.Prefix + asideOf(study)
	newest := clientv3.WithSort(clientv3.SortByKey, clientv3.SortDescend)
	resp, err := l.client.Get(ctx, key, clientv3.WithPrefix(), clientv3.WithLimit(1), newest)
	if err != nil {
		return nil, 0, fmt.Errorf("read the messages of study %s that were set aside: %w", study, err)
	}
	if len(resp.Kvs) == 0 {
		return nil, 0, nil
	}
	last = &record.Aside{}
	return last, int(resp.Count), decode(resp.Kvs[0], last)
}

// AsideSize returns how many messages are set aside and how many bytes they take.
func (l *Ledger) AsideSize(ctx context.Context) (n, bytes int, err error) {
	err = l.scan(ctx, l.o.Prefix+asideDir, 0, func(kv *mvccpb.KeyValue) error {
		n++
		bytes += len(kv.Value)
		return nil
	})
	if err != nil {
		return 0, 0, fmt.Errorf("measure the messages that were set aside: %w", err)
	}
	return n, bytes, nil
}
