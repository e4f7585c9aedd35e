// Package journal keeps the records of one study in a file, for programs that lead a study
// alone. It stores what an engine's Outputs hold, as the ledger does in etcd.
//
// # What is durable when
//
// Whoever drives an engine MUST give each Output to Commit BEFORE it carries out the Output's
// effects. The records then survive a kill of the process. Before it tells the user of them, it MUST
// call Sync with what Due returned, so that they survive the machine's end, too. Many results can
// share one Sync, which is why the two are apart.
//
// Every Append is one entry with all records of one Output. So a file that was cut off ends between
// two Outputs, and never has a trial without the status that counts it.
package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"

	"github.com/fantasia-hpo/fantasia/coordinator/curve"
	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/internal/base/wal"
	"github.com/fantasia-hpo/fantasia/study"
)

// magic is the first line of every journal. A later version that this one cannot read has another one.
const magic = "fantasia journal 1"

// The errors of Open.
var (
	// ErrInUse means that another process, or another Journal of this one, has the file open.
	ErrInUse = wal.ErrInUse
	// ErrDamaged means that the file is no journal, or that a record in it is damaged.
	ErrDamaged = wal.ErrDamaged
)

const (
	// compactFrom is the least size at which a file is compacted, in bytes, and compactAt how
	// many times as large it must be as when it was compacted last. So all compactions together
	// write at most about a third more than what is appended, however long the study is.
	compactFrom = 1 << 20
	compactAt   = 4
)

// Stored is what a journal holds of its study.
type Stored struct {
	Study  record.Study
	Status record.Status
	Model  record.Model
	Trials []record.Trial // by number
	// curves are the segments of the trials' curves.
	curves map[int][][]byte
}

// entry is what one Append writes, as JSON: the records that have changed.
type entry struct {
	Study  *record.Study  `json:"study,omitempty"`
	Status *record.Status `json:"status,omitempty"`
	Model  *record.Model  `json:"model,omitempty"`
	Trials []record.Trial `json:"trials,omitempty"`
	Curves []curve.Change `json:"curves,omitempty"`
}

// Journal is an open file, or keeps curves in memory only. Only Sync is safe for concurrent use, also
// beside the other methods: a caller holds its own lock for Commit, and waits for the disk without it.
type Journal struct {
	log       *wal.Log // nil in memory
	curves    map[int][][]byte
	due       int64 // as Due returns it
	twice     bool  // the file has the specification twice
	compacted int64 // the size after the last compaction
}

// InMemory returns a journal without a file. It keeps only the curves, since Outputs have no more than their
// changes. The engine itself has all other records.
func InMemory() *Journal { return &Journal{curves: map[int][][]byte{}} }

// Open opens the journal at path, or creates it. It returns what the file holds; nil if no study
// was begun. The error wraps ErrInUse or ErrDamaged, or is that of the file system.
//
// An incomplete record at the end is dropped: the process or the machine ended while it was written, so
// nobody was told of it. Damage before the end is an error: what comes behind it can be records that
// somebody was told of, and only Salvage may leave those out.
func Open(path string, log *slog.Logger) (*Journal, *Stored, error) {
	file, records, cut, err := wal.Open(path, magic)
	if err != nil {
		return nil, nil, err
	}
	if cut > 0 {
		log.Warn("dropped the incomplete end of the journal", "path", path, "bytes", cut)
	}
	stored, err := fold(records)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("%s: %w", path, err), file.Close())
	}
	j := &Journal{log: file, curves: stored.curves, compacted: compactFrom}
	if len(records) == 0 {
		return j, nil, nil
	}
	if err := j.compact(stored.snapshot); err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	return j, stored, nil
}

// Content returns the content of a journal that nobody has open. The error wraps ErrInUse, or is that of the file
// system.
func Content(path string) ([]byte, error) { return wal.Read(path) }

// Write writes a new journal at path, with all that is stored. The error wraps fs.ErrExist if there is something;
// after any other error, a part of the journal may be there.
func (s *Stored) Write(path string) error {
	records, err := s.snapshot()
	if err != nil {
		return err
	}
	// wal.Open would append to a file that exists.
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	log, _, _, err := wal.Open(path, magic)
	if err != nil {
		return err
	}
	for _, r := range records {
		err = errors.Join(err, log.Append(r))
	}
	return errors.Join(err, log.Close())
}

// Is reports whether a file is a journal, by its first line.
func Is(path string) bool {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer func() { _ = file.Close() }() // nothing was written
	first := make([]byte, len(magic)+1)
	_, err = io.ReadFull(file, first)
	return err == nil && string(first) == magic+"\n"
}

// Read returns what the records of a journal's content hold; nil if no study was begun. Bytes at
// the end that are no whole record are ignored. The error wraps ErrDamaged.
func Read(content []byte) (*Stored, error) {
	records, _, err := wal.Decode(content, magic)
	if err != nil || len(records) == 0 {
		return nil, err
	}
	return fold(records)
}

// fold applies records in their order. The first one MUST have the study and its status: a study begins with both,
// and so does a snapshot. Later ones have only what has changed.
func fold(records [][]byte) (*Stored, error) {
	s := &Stored{curves: map[int][][]byte{}}
	for i, raw := range records {
		var e entry
		if err := json.Unmarshal(raw, &e); err != nil {
			return nil, fmt.Errorf("%w: record %d: %w", ErrDamaged, i+1, err)
		}
		if i == 0 && (e.Study == nil || e.Status == nil) {
			return nil, fmt.Errorf("%w: its first record has no study", ErrDamaged)
		}
		if err := s.apply(&e); err != nil {
			return nil, fmt.Errorf("%w: record %d: %w", ErrDamaged, i+1, err)
		}
	}
	return s, nil
}

// outdated returns an error if an entry cannot come after those that led to a status and to the states of trials: part of
// the file is there twice. Its checksums are right then, so nothing else would notice, and the study would go back to an
// earlier state. The position of a status only grows, and a trial that has ended keeps its state. state returns "" for
// a trial that is not known.
func (e *entry) outdated(status *record.Status, state func(number int) study.TrialState) error {
	if e.Status != nil && e.Status.Position < status.Position {
		return fmt.Errorf("it is of position %d, which comes before %d", e.Status.Position, status.Position)
	}
	for i := range e.Trials {
		t := &e.Trials[i]
		if was := state(t.Number); was.Terminal() && t.State != was {
			return fmt.Errorf("trial %d is %s in it, but was %s before", t.Number, t.State, was)
		}
	}
	return nil
}

// apply applies one entry. Trials are numbered without gaps, so a number beyond the next one says that a record
// is missing.
func (s *Stored) apply(e *entry) error {
	state := func(n int) study.TrialState {
		if n < 1 || n > len(s.Trials) {
			return ""
		}
		return s.Trials[n-1].State
	}
	if err := e.outdated(&s.Status, state); err != nil {
		return err
	}
	if e.Study != nil {
		s.Study = *e.Study
	}
	if e.Status != nil {
		s.Status = *e.Status
	}
	if e.Model != nil {
		s.Model = *e.Model
	}
	for _, t := range e.Trials {
		switch n := len(s.Trials); {
		case t.Number >= 1 && t.Number <= n:
			s.Trials[t.Number-1] = t
		case t.Number == n+1:
			s.Trials = append(s.Trials, t)
		default:
			return fmt.Errorf("trial %d comes after trial %d", t.Number, n)
		}
	}
	for _, c := range e.Curves {
		if err := patch(s.curves, c); err != nil {
			return err
		}
	}
	return nil
}

// patch applies a change of a curve. A segment replaces the stored one as a whole, so a change that is applied
// twice changes nothing.
func patch(curves map[int][][]byte, c curve.Change) error {
	list := curves[c.Trial]
	if c.Cut {
		list = list[:min(len(list), max(0, c.Length))]
	}
	for _, g := range c.Segments {
		switch n := len(list); {
		case g.Number >= 0 && g.Number < n:
			list[g.Number] = g.Data
		case g.Number == n:
			list = append(list, g.Data)
		default:
			return fmt.Errorf("segment %d of the curve of trial %d comes after %d segments", g.Number, c.Trial, n)
		}
	}
	curves[c.Trial] = list
	return nil
}

// Commit stores what an Output holds. Its records survive a kill of the process then, and that of the
// machine once Sync has returned nil for what Due returns. latest returns all records of the study as of
// this Output; Commit calls it when the file has grown so much that it writes it anew. After an error the
// caller MUST NOT carry out the Output's effects, and the study can do no more: what the engine
// knows is not in the file.
func (j *Journal) Commit(out *engine.Output, latest func() *Stored) error {
	e := entry{Study: out.Study, Status: out.Status, Model: out.Model, Trials: out.Trials, Curves: out.Curves}
	// Without the specification all other records are worth little, so it is there twice: in the first entry and in
	// that of the first trial, which one damaged place in the file seldom hits together.
	if e.Study == nil && e.Trials != nil && !j.twice && j.log != nil {
		spec := latest().Study
		e.Study, j.twice = &spec, true
	}
	for _, c := range e.Curves {
		if err := patch(j.curves, c); err != nil {
			return err
		}
	}
	records := e.Study != nil || e.Status != nil || e.Model != nil || e.Trials != nil
	if j.log == nil || !records && len(e.Curves) == 0 {
		return nil
	}
	raw, err := json.Marshal(&e)
	if err != nil {
		return fmt.Errorf("encode a record of the journal: %w", err)
	}
	if err := j.log.Append(raw); err != nil {
		return err
	}
	if records {
		j.due = j.log.Written()
	}
	return j.compact(func() ([][]byte, error) {
		all := latest()
		all.curves = j.curves
		return all.snapshot()
	})
}

// Due returns the position behind the last record. Curves do not count: losing the end of one with the
// machine does no harm, because its trial is evaluated again.
func (j *Journal) Due() int64 { return j.due }

// Sync returns nil once everything is on the disk that was committed when Due returned a position. Calls at
// the same time share an fsync. After an error nothing more is stored.
func (j *Journal) Sync(due int64) error {
	if j.log == nil {
		return nil
	}
	return j.log.Sync(due)
}

// Durable returns how many bytes of the file are on the disk.
func (j *Journal) Durable() int64 {
	if j.log == nil {
		return 0
	}
	return j.log.Durable()
}

// compact writes the file anew if it has become large. The old file stays until the new one is whole, so a crash
// leaves one of them.
func (j *Journal) compact(snapshot func() ([][]byte, error)) error {
	if j.log.Size() < compactAt*j.compacted {
		return nil
	}
	records, err := snapshot()
	if err != nil {
		return err
	}
	// A file with another name can only grow. It is tried again when it is as much larger again.
	if err := j.log.Replace(records); err != nil && !errors.Is(err, wal.ErrOtherName) {
		return err
	}
	j.compacted = max(compactFrom, j.log.Size())
	return nil
}

// snapshotTrials is how many trials one record of a snapshot holds. A damaged place costs the trials of a record, and
// a record has a largest size (wal.MaxRecord).
const snapshotTrials = 1000

// snapshot returns the fewest records that hold everything, in an order that apply accepts: the study and its
// status first, and the trials by number. The specification comes once more at the end: see Commit.
func (s *Stored) snapshot() ([][]byte, error) {
	first := entry{Study: &s.Study, Status: &s.Status, Model: &s.Model}
	var records [][]byte
	add := func(e *entry) error {
		raw, err := json.Marshal(e)
		records = append(records, raw)
		return err
	}
	if err := add(&first); err != nil {
		return nil, fmt.Errorf("encode the journal: %w", err)
	}
	for part := range slices.Chunk(s.Trials, snapshotTrials) {
		if err := add(&entry{Trials: part}); err != nil {
			return nil, fmt.Errorf("encode the journal: %w", err)
		}
	}
	for _, trial := range slices.Sorted(maps.Keys(s.curves)) {
		c := curve.Change{Trial: trial, Length: len(s.curves[trial])}
		for i, data := range s.curves[trial] {
			c.Segments = append(c.Segments, curve.Segment{Number: i, Data: data})
		}
		if err := add(&entry{Curves: []curve.Change{c}}); err != nil {
			return nil, fmt.Errorf("encode the journal: %w", err)
		}
	}
	if err := add(&entry{Study: &s.Study}); err != nil { // again: see Commit
		return nil, fmt.Errorf("encode the journal: %w", err)
	}
	return records, nil
}

// Curve returns what a trial has reported; nil if it has reported nothing. The error wraps
// curve.ErrSegments.
func (j *Journal) Curve(trial int) (*curve.Curve, error) { return readCurve(j.curves, trial) }

// Curve returns what a trial has reported; nil if it has reported nothing. The error wraps
// curve.ErrSegments.
func (s *Stored) Curve(trial int) (*curve.Curve, error) { return readCurve(s.curves, trial) }

func readCurve(curves map[int][][]byte, trial int) (*curve.Curve, error) {
	if len(curves[trial]) == 0 {
		return nil, nil
	}
	c, err := curve.Read(curves[trial])
	if err != nil {
		return nil, fmt.Errorf("the curve of trial %d: %w", trial, err)
	}
	return c, nil
}

// Close closes the file.
func (j *Journal) Close() error {
	if j.log == nil {
		return nil
	}
	return j.log.Close()
}
