package slurm

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
	"github.com/nats-io/nkeys"

	"github.com/fantasia-hpo/fantasia/messaging"
)

// The names in the shared directory. Files are replaced as a whole, so a node sees the old or the new one.
const (
	recordFile = "run.json"    // a record
	seedFile   = "worker.seed" // the key by which NATS knows the workers
	workersDir = "workers"     // the directories of the workers
)

// record is what a run notes for its workers, and for the next run of the same study.
type record struct {
	// NATS is the address of the run's NATS.
	NATS string `json:"nats"`
	// Pool is the study's pool.
	Pool string `json:"pool"`
	// Jobs are the arrays that were submitted.
	Jobs []string `json:"jobs,omitempty"`
}

func (r *record) jobs() map[string]bool {
	set := map[string]bool{}
	for _, job := range r.Jobs {
		set[job] = true
	}
	return set
}

// readRecord reads the record; a missing one is empty.
func readRecord(shared string) (record, error) {
	var r record
	content, err := os.ReadFile(filepath.Join(shared, recordFile))
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err == nil {
		err = json.Unmarshal(content, &r)
	}
	if err != nil {
		return r, fmt.Errorf("read %s: %w", filepath.Join(shared, recordFile), err)
	}
	return r, nil
}

func (r *record) write(shared string) error {
	content, err := json.Marshal(r)
	if err == nil {
		err = renameio.WriteFile(filepath.Join(shared, recordFile), append(content, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", filepath.Join(shared, recordFile), err)
	}
	return nil
}

// makeShared makes the shared directory, and returns the public key of the workers.
func makeShared(shared string) (worker string, err error) {
	for _, dir := range []string{"logs", workersDir, "checkpoints"} {
		if err := os.MkdirAll(filepath.Join(shared, dir), 0o700); err != nil {
			return "", fmt.Errorf("make the shared directory: %w", err)
		}
	}
	path := filepath.Join(shared, seedFile)
	seed, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		var key nkeys.KeyPair
		if key, err = nkeys.CreateUser(); err == nil {
			seed, err = key.Seed()
		}
		if err == nil {
			err = renameio.WriteFile(path, seed, 0o600)
		}
	}
	if err != nil {
		return "", fmt.Errorf("make the workers' key: %w", err)
	}
	key, err := nkeys.FromSeed(seed)
	if err == nil {
		worker, err = key.PublicKey()
	}
	if err != nil {
		return "", fmt.Errorf("read the workers' key in %s: %w", path, err)
	}
	return worker, nil
}

// ownName returns the name of a task's worker in its pool, which stays the same when the task is queued again.
func ownName(id string) string { return "slurm-" + messaging.Token(id) }

// workerName returns the whole name of a task's worker.
func workerName(pool, id string) string { return messaging.WorkerName(pool, ownName(id)) }
