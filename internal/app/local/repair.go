package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/fantasia-hpo/fantasia/coordinator/backup"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/internal/base/embedded"
	"github.com/fantasia-hpo/fantasia/internal/base/lifecycle"
)

// lostDir is the directory of a repaired state for what is left of studies that have lost trials.
const lostDir = "lost"

// CheckState checks the files of a state directory, or the file of a program, and every record in it, and returns how
// much there is. The error is a *Damaged, wraps ErrNoState or ErrInUse, or says why a file cannot be read.
func CheckState(ctx context.Context, state string) (c ledger.Contents, err error) {
	if isFile(state) {
		return checkFile(state)
	}
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
	// table of their trials. Of a program's file there are none.
	Parts []string
	// File is the new file of a program, and Table a table of its trials if its specification was lost; else "".
	File, Table string
	// Lost says, a line each, what could not be read.
	Lost []string
}

// Repair writes what can be saved of a state directory into a new one, or of a program's file into a new file. It changes
// nothing in the old one. It fails with ErrInUse if a process uses the directory. program is the version of Fantasia.
func Repair(ctx context.Context, state, into, program string) (r *Repaired, err error) {
	file := isFile(state)
	if !file && !isState(state) {
		return nil, fmt.Errorf("repair %s: %w", state, ErrNoState)
	}
	if _, err := os.Lstat(into); !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("repair into %s: %w; want a new directory or, for a program's state file, a new file", into, orExists(err))
	}
	if file {
		return repairFile(state, into)
	}
	var stack lifecycle.Stack
	defer func() { err = errors.Join(err, stack.Close(closeTimeout)) }() //nolint:contextcheck // the end must not depend on the beginning
	if err := Lock(state, &stack); err != nil {
		return nil, err
	}
	s, problems := salvageState(state)
	r = &Repaired{Problems: problems, Lost: s.Lost}
	for i := range s.Whole {
		r.Whole = append(r.Whole, s.Whole[i].Study.Definition.Metadata.Name)
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

// salvageState reads what can be saved of a state directory, which MUST be locked, and what is wrong with its files.
func salvageState(state string) (ledger.Salvaged, []error) {
	saved := embedded.SalvageEtcd(filepath.Join(state, etcdDir), ledger.Valid)
	s := ledger.Salvage(saved.Values, saved.Damaged)
	if saved.Cut {
		s.Lost = append(s.Lost, "the log's last entries: what was recorded in the last second before the program was killed may be missing")
	}
	return s, saved.Problems
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
