package ledger

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Space is how full etcd's database is.
type Space struct {
	// Used is how many bytes are in use, and Size how many the file has with what was freed in
	// it. etcd refuses every write once Size is Quota, which is 0 if etcd does not tell.
	Used, Size, Quota int64
	// Full means that etcd refuses writes (its alarm NOSPACE).
	Full bool
}

// Space reads how full etcd's database is: the fullest of its members.
func (l *Ledger) Space(ctx context.Context) (fullest Space, err error) {
	if l.client.Maintenance == nil { // an etcd of a simulation
		return Space{}, nil
	}
	for _, endpoint := range l.client.Endpoints() {
		s, err := l.client.Status(ctx, endpoint)
		if err != nil {
			return Space{}, fmt.Errorf("ask etcd at %s how full it is: %w", endpoint, err)
		}
		fullest.Full = fullest.Full || slices.ContainsFunc(s.Errors, func(e string) bool { return strings.Contains(e, "NOSPACE") })
		if float64(s.DbSize)*float64(fullest.Quota) >= float64(fullest.Size)*float64(s.DbSizeQuota) {
			fullest.Used, fullest.Size, fullest.Quota = s.DbSizeInUse, s.DbSize, s.DbSizeQuota
		}
	}
	return fullest, nil
}
