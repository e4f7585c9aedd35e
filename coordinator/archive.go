package coordinator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/archive"
	"github.com/fantasia-hpo/fantasia/coordinator/backup"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/coordinator/quota"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/coordinator/studies"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/telemetry"
)

var (
	// ErrNoArchive says that this replica has no archive.
	ErrNoArchive = study.NewError(study.ErrPrecondition, "there is no archive: start the coordinators with --archive DIRECTORY")
	// ErrNotArchivable says that a study is not archived, and why.
	ErrNotArchivable = study.NewError(study.ErrPrecondition, "the study cannot be archived")
	// ErrArchiving says that another study is being archived or restored.
	ErrArchiving = study.NewError(study.ErrBusy, "another study is being archived or restored: try again")
)

// Archived returns the studies in the archive, by name. Files that cannot be read are
// logged. The error is ErrNoArchive if this replica has none.
func (c *Coordinator) Archived(ctx context.Context) ([]archive.Entry, error) {
	if c.o.Archive == nil {
		return nil, ErrNoArchive
	}
	all, unreadable, err := c.o.Archive.List(ctx)
	if unreadable != nil {
		c.o.Logger.WarnContext(ctx, "files of the archive cannot be read", telemetry.LogError, unreadable)
	}
	return all, err
}

// Archive moves an ended study, its trials and their measurements from the ledger to a
// file of the archive. It is in the file before it leaves the ledger, so a failure leaves it
// in one of them, or in both. The file is written outside of the loop, which may take long, so
// the study may change meanwhile, or another leader take over: both are noticed, and the study
// is written again. The error wraps ledger.ErrNotFound, ErrNoArchive, ErrArchiving,
// ErrNotLeader, or ErrNotArchivable if the study runs, cannot be read, changed meanwhile, or
// is a resource of Kubernetes.
func (c *Coordinator) Archive(ctx context.Context, nameOrID string) (archive.Entry, error) {
	done, err := c.archiving()
	if err != nil {
		return archive.Entry{}, err
	}
	defer done()
	for i := 1; ; i++ {
		entry, err := c.archive(ctx, nameOrID)
		if i == archiveTries || !errors.Is(err, errChanged) {
			return entry, err
		}
	}
}

// archiveTries is how often a study is archived that changes meanwhile. Its last change, the
// final recommendation, comes soon after its end.
const archiveTries = 3

// errChanged says that a study changed while it was archived.
var errChanged = fmt.Errorf("%w: it was changed meanwhile; try again", ErrNotArchivable)

// archive is a try of Archive.
func (c *Coordinator) archive(ctx context.Context, nameOrID string) (archive.Entry, error) {
	var about backup.Study
	var term *leader
	var changes int
	err := c.onStudy(ctx, nameOrID, func(_ context.Context, l *leader, r *studies.Study, _ time.Time) error {
		if err := archivable(r); err != nil {
			return err
		}
		term, changes = l, r.Changes
		about = backup.Study{
			ID: r.Spec.ID, Name: r.Name(), State: r.Status.State, Trials: r.Status.Trials, Started: r.Status.Started, Ended: r.Status.Ended,
		}
		return nil
	})
	if err != nil {
		return archive.Entry{}, err
	}
	entry, err := c.o.Archive.Write(ctx, about.ID, func(w io.Writer, program string) error {
		_, _, err := backup.WriteStudy(ctx, c.ledger, w, program, about)
		return err
	})
	if err != nil {
		return entry, err
	}
	return entry, c.onStudy(ctx, about.ID, func(_ context.Context, l *leader, r *studies.Study, _ time.Time) error {
		if l != term || r.Changes != changes {
			return errChanged
		}
		l.studies.Remove(r)
		return nil
	})
}

// archivable returns why a study cannot be archived now. A Study resource of Kubernetes would be made anew from
// its resource.
func archivable(r *studies.Study) error {
	switch {
	case r.Broken != nil:
		return fmt.Errorf("%w: %w", ErrNotArchivable, r.Broken)
	case !r.Status.State.Terminal():
		return fmt.Errorf("%w: it is running; stop it first", ErrNotArchivable)
	}
	if _, ok := study.Namespace(r.Name()); ok {
		return fmt.Errorf("%w: it is a Study resource of Kubernetes; delete the resource instead", ErrNotArchivable)
	}
	return nil
}

// Unarchive moves a study from the archive back to the ledger, as it was. The error wraps
// archive.ErrNotFound, ledger.ErrNameTaken, ErrNoArchive, ErrArchiving, disk.ErrNearlyFull or ErrNotLeader, or is
// a *quota.Exceeded. The file is removed last, once the study is durable in the ledger. If that fails, the
// study is in both, and a later Archive replaces the file.
func (c *Coordinator) Unarchive(ctx context.Context, nameOrID string) (*record.Study, error) {
	if err := c.space.Lacking(); err != nil {
		return nil, err
	}
	done, err := c.archiving()
	if err != nil {
		return nil, err
	}
	defer done()
	entry, err := c.o.Archive.Find(ctx, nameOrID)
	if err != nil {
		return nil, err
	}
	var writer *ledger.Writer
	shares := quota.From(ctx)
	// Before much is written. bringBack asks again, since others may come first.
	err = c.command(ctx, func(_ context.Context, l *leader, _ time.Time) error {
		writer = l.writer
		return cmp.Or(l.studies.Vacant(entry.Name, entry.ID), quota.Admit(shares, entry.Name, l.calls.Used, quota.Use{quota.Studies: 1}))
	})
	if err != nil {
		return nil, err
	}
	in := writer.ImportStudy(entry.ID)
	restored, err := c.bringBack(ctx, in, &entry)
	if err != nil {
		return nil, err
	}
	return restored, c.o.Archive.Remove(entry.ID)
}

// bringBack stores the records of an archived study, all but those by which it is found, and
// then has the leader take it in. It deletes them again if the leader refuses.
func (c *Coordinator) bringBack(ctx context.Context, in *ledger.StudyImport, entry *archive.Entry) (*record.Study, error) {
	var found ledger.Summary
	shares := quota.From(ctx)
	err := c.o.Archive.Read(ctx, entry.ID, func(key string, value []byte) error { return in.Put(ctx, key, value) })
	if err == nil {
		found, err = in.Finish(ctx)
	}
	if name := found.Study.Definition.Metadata.Name; err == nil && name != entry.Name { // the caller may bring back what entry names
		err = fmt.Errorf("%w: the archive of study %s holds a study named %q", ledger.ErrCorrupt, entry.Name, name)
	}
	if err == nil {
		err = c.command(ctx, func(ctx context.Context, l *leader, now time.Time) error {
			r := studies.New(&found.Study)
			r.Status = found.Status
			if err := cmp.Or(l.studies.Vacant(entry.Name, entry.ID), l.calls.AdmitStudy(shares, r)); err != nil {
				return err
			}
			return l.studies.TakeIn(ctx, &found, now)
		})
	}
	switch {
	case err == nil:
		return &found.Study, nil
	case errors.Is(err, ledger.ErrUnknown) || errors.Is(err, ErrNotLeader) || ctx.Err() != nil:
		return nil, err // the study may be there; what may be left of it is replaced by the next try
	}
	return nil, errors.Join(err, in.Discard(ctx))
}

// archiving makes sure that one study at a time is archived or restored: the records of a
// study that comes back are stored before the leader knows it.
func (c *Coordinator) archiving() (done func(), err error) {
	if c.o.Archive == nil {
		return nil, ErrNoArchive
	}
	if !c.archives.TryLock() {
		return nil, ErrArchiving
	}
	return c.archives.Unlock, nil
}
