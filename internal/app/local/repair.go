package local

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/backup"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/internal/base/embedded"
	"github.com/fantasia-hpo/fantasia/internal/base/lifecycle"
)

// lostDir is the directory of a repaired state for what is left of studies that have lost trials.
const lostDir = "lost"

// CheckState checks the files of a state directory and every record in it, and returns how much there
// is. The error is a *Damaged, wraps ErrNoState or ErrHeld, or says why a file cannot be read.
func CheckState(ctx context.Context, state string) (c ledger.Contents, err error) {
	if !isState(state) {
		return c, fmt.Errorf("check %s: %w", state, ErrNoState)
	}
	client, done, err := OpenEtcd(ctx, state)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, done()) }()
	n := &node{o: Options{State: state}, ledger: ledger.New(client, ledger.Options{})}
	nothing := func(string, []byte) error { return nil }
	if c, err = n.ledger.Export(ctx, func(int64) error { return nil }, nothing); err != nil {
		return c, n.damaged(err)
	}
	all, err := n.ledger.Studies(ctx)
	if err != nil {
		return c, err
	}
	var problems []error
	for i := range all {
		if _, _, err := n.load(ctx, all[i].Study.ID); err != nil {
			problems = append(problems, fmt.Errorf("study %s: %w", all[i].Study.Definition.Metadata.Name, err))
		}
	}
	return c, errors.Join(problems...)
}

// Repaired says what a repair has saved.
type Repaired struct {
	// Problems say what was wrong with the files.
	Problems []error
	// Whole are the names of the studies that were saved with all their trials.
	Whole []string
	// Parts are the directories with what is left of other studies: the study file, and a
	// table of the trials that completed.
	Parts []string
	// Lost says, a line each, what could not be read.
	Lost []string
}

// Repair writes what can be saved of a state directory into a new one. It changes nothing in the old
// one. It fails with ErrHeld if a process uses the directory. program is the version of Fantasia.
func Repair(ctx context.Context, state, into, program string) (r *Repaired, err error) {
	if !isState(state) {
		return nil, fmt.Errorf("repair %s: %w", state, ErrNoState)
	}
	if _, err := os.Lstat(into); !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("repair into %s: %w; want a new directory", into, orExists(err))
	}
	var stack lifecycle.Stack
	defer func() { err = errors.Join(err, stack.Close(closeTimeout)) }() //nolint:contextcheck // the end must not depend on the beginning
	if err := Lock(state, &stack); err != nil {
		return nil, err
	}
	saved := embedded.SalvageEtcd(filepath.Join(state, etcdDir), ledger.Valid)
	s := ledger.Salvage(saved.Values, saved.Damaged)
	r = &Repaired{Problems: saved.Problems, Whole: s.Whole, Lost: s.Lost}
	if saved.Cut {
		r.Lost = append(r.Lost, "the log's last entries: what was recorded in the last second before the program was killed may be missing")
	}
	if err := copyRest(state, into); err != nil {
		return nil, fmt.Errorf("copy the other files: %w", err)
	}
	if err := restoreRecords(ctx, into, program, s.Records); err != nil {
		return nil, err
	}
	for i := range s.Parts {
		dir := filepath.Join(into, lostDir, s.Parts[i].Study.Definition.Metadata.Name)
		if err := writePart(dir, &s.Parts[i]); err != nil {
			return nil, fmt.Errorf("write what is left of a study: %w", err)
		}
		r.Parts = append(r.Parts, dir)
	}
	return r, nil
}

// orExists returns err, or that there is something if there was no error.
func orExists(err error) error {
	if err == nil {
		return fs.ErrExist
	}
	return err
}

// copyRest copies what is neither etcd's nor NATS's: checkpoints, logs of programs, the archive.
func copyRest(state, into string) (err error) {
	if err := os.MkdirAll(into, 0o700); err != nil {
		return err
	}
	from, err := os.OpenRoot(state)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	to, err := os.OpenRoot(into)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	return fs.WalkDir(from.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		first, _, _ := strings.Cut(name, "/")
		switch {
		case err != nil || name == ".":
			return err
		case e.IsDir() && (first == etcdDir || first == "nats" || strings.HasPrefix(first, "nats.") || name == "worker/spool"):
			return fs.SkipDir
		case name == "worker/claims": // like the spool, it is about claims in NATS: see claimFiles
			return nil
		case e.IsDir():
			return to.Mkdir(name, 0o700)
		case !e.Type().IsRegular() || e.Name() == "lock" || strings.HasPrefix(name, "fantasia.log") || name == "server.json":
			return nil
		}
		content, err := from.ReadFile(name)
		if err != nil {
			return err
		}
		return to.WriteFile(name, content, 0o600)
	})
}

// restoreRecords writes records into a new state directory, in the same way as a backup.
func restoreRecords(ctx context.Context, into, program string, records map[string][]byte) (err error) {
	var file bytes.Buffer
	if err := backup.WriteRecords(&file, program, records); err != nil {
		return err
	}
	client, done, err := OpenEtcd(ctx, into)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	_, _, err = backup.Restore(ctx, client, ledger.New(client, ledger.Options{}), bytes.NewReader(file.Bytes()), backup.Options{})
	return err
}

// writePart writes the study file of a study and its trials, in the form that import-trials reads.
func writePart(dir string, p *ledger.Part) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	file, err := json.MarshalIndent(&p.Study.Definition, "", "  ")
	if err != nil {
		return err
	}
	var table bytes.Buffer
	lines := json.NewEncoder(&table)
	for i := range p.Trials {
		if err := lines.Encode(row(&p.Trials[i])); err != nil {
			return err
		}
	}
	return errors.Join(os.WriteFile(filepath.Join(dir, "study.json"), append(file, '\n'), 0o600),
		os.WriteFile(filepath.Join(dir, "trials.jsonl"), table.Bytes(), 0o600))
}

// row is a trial as a line of a table.
func row(t *record.Trial) map[string]any {
	line := map[string]any{"trial": t.Number, "state": t.State, "attempts": len(t.Attempts)}
	if len(t.Values) > 0 {
		line["value"] = t.Values.First()
	}
	if !t.Times.Ended.IsZero() {
		line["ended"] = t.Times.Ended.UTC().Format(time.RFC3339Nano)
	}
	for name, value := range t.Point {
		line["parameter:"+name] = value
	}
	for name, value := range t.Metrics {
		line["metric:"+name] = value
	}
	return line
}
