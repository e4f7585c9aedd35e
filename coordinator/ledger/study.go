package ledger

import (
	"context"
	"fmt"
)

// LoadStudy reads a study with all its trials, given its id, at one revision. The error
// wraps ErrNotFound if there is none, ErrCorrupt if one of its records is unreadable.
func (l *Ledger) LoadStudy(ctx context.Context, id string) (*Records, error) {
	snap, err := l.load(ctx, l.o.Prefix+studyDir(id), l.scanWhole, func(*Records) bool { return true })
	if err != nil {
		return nil, err
	}
	if len(snap.Studies) == 0 {
		return nil, fmt.Errorf("study %s: %w", id, ErrNotFound)
	}
	if err := l.recount(ctx, &snap.Studies[0], snap.Revision); err != nil {
		return nil, err
	}
	if err := snap.Studies[0].Err; err != nil {
		return nil, err
	}
	return &snap.Studies[0], nil
}
