package ledger

import (
	"context"
	"fmt"
)

// LoadStudy reads one study with all of its trials, given its id, as it is at
// one revision. The error wraps ErrNotFound where there is none.
func (l *Ledger) LoadStudy(ctx context.Context, id string) (*Records, error) {
	snap, err := l.load(ctx, l.o.Prefix+studyDir(id))
	if err != nil {
		return nil, err
	}
	if len(snap.Studies) == 0 {
		return nil, fmt.Errorf("study %s: %w", id, ErrNotFound)
	}
	return &snap.Studies[0], nil
}
