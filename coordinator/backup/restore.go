package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/fantasia-hpo/fantasia/coordinator/election"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
)

var (
	// ErrLed means that a coordinator leads.
	ErrLed = errors.New("a coordinator is running: stop all coordinators first")
	// ErrNotEmpty means that the ledger has records, which a restore would delete.
	ErrNotEmpty = errors.New("this etcd already holds a ledger")
)

// campaignTime limits how long a restore tries to hold the election.
const campaignTime = 15 * time.Second

// Options say how Restore works.
type Options struct {
	// Force deletes what the ledger holds.
	Force bool
	// Change changes the restored ledger before anybody can lead it; nil for nothing.
	Change func(context.Context, *ledger.Writer) error
}

// Restore writes a backup into the ledger of an etcd, and returns what it has written.
// It holds the election meanwhile, so that no coordinator leads: the error wraps ErrLed if
// one does. Unless o.Force is set, the ledger must be empty: the error wraps ErrNotEmpty.
//
// It reads the backup twice: first to check it. If the second pass fails or is
// interrupted, no coordinator can lead (ledger.ErrUnfinished) until a restore succeeds.
func Restore(ctx context.Context, client *clientv3.Client, l *ledger.Ledger, r io.ReadSeeker, o Options) (h Header, c ledger.Contents,
	err error) {
	if h, err = Check(ctx, r); err != nil {
		return h, c, err
	}
	if err := refuse(ctx, client, l, o.Force); err != nil {
		return h, c, err
	}
	err = hold(ctx, client, l.LeaderKey(), func(ctx context.Context, f ledger.Fence) error {
		c, err = write(ctx, l, f, r, o.Change)
		return err
	})
	return h, c, err
}

// refuse returns why the ledger must not be restored.
func refuse(ctx context.Context, client *clientv3.Client, l *ledger.Ledger, force bool) error {
	switch address, _, err := election.Leader(ctx, client, l.LeaderKey()); {
	case err == nil:
		return fmt.Errorf("%w; %q leads", ErrLed, address)
	case !errors.Is(err, election.ErrNoLeader):
		return err
	}
	if force {
		return nil
	}
	there, err := l.Contents(ctx)
	if err != nil {
		return err
	}
	if there.Keys > 0 {
		return fmt.Errorf("%w, with %v", ErrNotEmpty, there)
	}
	return nil
}

// hold calls do while it holds the election.
func hold(ctx context.Context, client *clientv3.Client, key string, do func(context.Context, ledger.Fence) error) error {
	campaign, stop := context.WithCancel(ctx)
	defer stop()
	late := time.AfterFunc(campaignTime, stop)
	defer late.Stop()
	result := fmt.Errorf("hold the election: no success in %v", campaignTime)
	candidate := election.Candidate{Client: client, Key: key, Value: "fantasia restore"}
	err := candidate.Run(campaign, func(term context.Context, t *election.Term) error {
		late.Stop()
		result = do(term, ledger.Fence{Key: t.Key, Revision: t.Epoch})
		if cause := context.Cause(term); result != nil && cause != nil {
			result = fmt.Errorf("%w: %w", result, cause)
		}
		stop() // one term is enough
		return nil
	})
	switch {
	case campaign.Err() == nil: // it could not campaign at all
		return err
	case ctx.Err() != nil && result != nil:
		return context.Cause(ctx)
	default:
		return result
	}
}

// write writes the records of a backup that was checked, and then changes them.
func write(ctx context.Context, l *ledger.Ledger, f ledger.Fence, r io.Reader,
	change func(context.Context, *ledger.Writer) error) (ledger.Contents, error) {
	in, err := l.Import(ctx, f)
	if err != nil {
		return ledger.Contents{}, err
	}
	if _, err := Read(r, func(key string, value []byte) error { return in.Put(ctx, key, value) }); err != nil {
		return ledger.Contents{}, err
	}
	if change != nil {
		w, err := in.Lead(ctx)
		if err != nil {
			return ledger.Contents{}, err
		}
		if err := change(ctx, w); err != nil {
			return ledger.Contents{}, err
		}
	}
	return in.Finish(ctx)
}
