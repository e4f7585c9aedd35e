package embedded

import (
	"context"
	"fmt"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
)

// defragLeast is the size from which on a database is worth the seconds of writing it anew.
const defragLeast = 32 << 20

// defragment writes the database anew, if more than half of its file is free: etcd uses free pages again, but never
// gives them back, and counts them against its quota. It refuses everything meanwhile, for seconds with a large
// database, so this MUST be done before anybody leads. Nothing is lost if the process is killed: etcd replaces
// the file by a finished copy, and deletes unfinished ones. It returns the sizes of the file; both are 0 if nothing was done.
func (e *Etcd) defragment(ctx context.Context, quota int64) (before, after int64, err error) {
	s := e.server.Server
	b := s.Backend()
	if before = b.Size(); before < defragLeast || b.SizeInUse() > before/2 {
		return 0, 0, nil
	}
	if err := b.Defrag(); err != nil {
		return 0, 0, fmt.Errorf("defragment the database: %w", err)
	}
	if after = b.Size(); after >= quota {
		return before, after, nil
	}
	// etcd that was full stays so until somebody says that there is room.
	full := &etcdserverpb.AlarmRequest{Action: etcdserverpb.AlarmRequest_DEACTIVATE, Alarm: etcdserverpb.AlarmType_NOSPACE,
		MemberID: uint64(s.MemberID())}
	if _, err := s.Alarm(ctx, full); err != nil {
		return before, after, fmt.Errorf("end etcd's alarm that it is full: %w", err)
	}
	return before, after, nil
}
