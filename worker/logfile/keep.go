package logfile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/fantasia-hpo/fantasia/messaging"
)

// blockSize is what every file and folder takes at least: file systems give space in blocks.
const blockSize = 4 << 10

// portion is how many folders Load removes before it lets others go on.
const portion = 64

// Keeper bounds what the attempts that have ended leave in a worker's folder. When their
// folders, and the logs of long-lived programs that have ended, take more than the limit,
// those that ended first are removed. Folders in use are not counted and never removed. It
// is safe for concurrent use.
type Keeper struct {
	dir    string
	limit  int64
	needed func() ([]messaging.AttemptID, error)
	remove func(path string) error // os.RemoveAll, but for tests

	mu    sync.Mutex
	used  map[folder]int  // how many use it
	kept  []kept          // ended, oldest end first
	known map[folder]bool // those of kept
	total int64           // bytes of kept
}

// folder is an attempt's folder, or that of a slot's long-lived program.
type folder struct {
	study          string
	trial, attempt int // 0 for a long-lived program
	slot           int
}

// kept is a folder that nobody uses.
type kept struct {
	folder
	bytes int64
	ended time.Time
}

// path is the folder's, below a worker's.
func (f folder) path() string {
	if f.trial == 0 {
		return StreamDir(f.study, f.slot)
	}
	return Dir(messaging.AttemptID{Study: f.study, Trial: f.trial, Attempt: f.attempt})
}

func attemptFolder(id messaging.AttemptID) folder {
	return folder{study: id.Study, trial: id.Trial, attempt: id.Attempt}
}

// NewKeeper returns a Keeper of a worker's folder, which keeps at most limit bytes. Each
// file and folder counts with full blocks of 4 KiB. needed returns the attempts whose folders stay, such as
// those whose results the leader does not have yet; an attempt of 0 stands for all attempts of the
// trial. While it fails, nothing is removed. Load finds what is there already.
func NewKeeper(dir string, limit int64, needed func() ([]messaging.AttemptID, error)) *Keeper {
	return &Keeper{
		dir: dir, limit: limit, needed: needed, remove: os.RemoveAll,
		used: map[folder]int{}, known: map[folder]bool{},
	}
}

// Load finds what earlier processes have left. It takes the last change of a folder as its
// end. Attempts may begin and end meanwhile. If ctx ends, so does Load, without an error;
// the next process finds the rest.
func (k *Keeper) Load(ctx context.Context) error {
	var errs []error
	found := k.find(ctx, &errs)
	for i := range found {
		if ctx.Err() != nil {
			return errors.Join(errs...)
		}
		var err error
		if found[i].bytes, found[i].ended, err = usage(filepath.Join(k.dir, found[i].path())); err != nil {
			errs = append(errs, err)
		}
	}
	k.addAll(found)
	// A portion tries again what an earlier one could not remove: the last error has all.
	var left error
	for removed := portion; removed == portion && ctx.Err() == nil; {
		k.mu.Lock()
		var err error
		removed, err = k.trim(portion)
		k.mu.Unlock()
		left = cmp.Or(err, left)
	}
	return errors.Join(append(errs, left)...)
}

// find returns the folders that are there, neither measured nor in order.
func (k *Keeper) find(ctx context.Context, errs *[]error) (found []kept) {
	// The names are the worker's own; anything else in these folders is not touched.
	for _, study := range folders(filepath.Join(k.dir, "trials"), errs) {
		for _, trial := range numbers(filepath.Join(k.dir, "trials", study), 1, errs) {
			if ctx.Err() != nil {
				return nil
			}
			for _, attempt := range numbers(filepath.Join(k.dir, "trials", study, strconv.Itoa(trial)), 1, errs) {
				found = append(found, kept{folder: folder{study: study, trial: trial, attempt: attempt}})
			}
		}
	}
	for _, study := range folders(filepath.Join(k.dir, "streams"), errs) {
		if ctx.Err() != nil {
			return nil
		}
		for _, slot := range numbers(filepath.Join(k.dir, "streams", study), 0, errs) {
			found = append(found, kept{folder: folder{study: study, slot: slot}})
		}
	}
	return found
}

// addAll adds those that earlier processes have left, and orders all by their ends.
func (k *Keeper) addAll(found []kept) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, e := range found {
		// Others were begun, or have ended, since Load began.
		if k.used[e.folder] == 0 && !k.known[e.folder] {
			k.add(e)
		}
	}
	slices.SortStableFunc(k.kept, func(a, b kept) int {
		return cmp.Or(a.ended.Compare(b.ended), cmp.Compare(a.trial, b.trial), cmp.Compare(a.attempt, b.attempt))
	})
}

// Begin marks an attempt's folder as used.
func (k *Keeper) Begin(id messaging.AttemptID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.begin(attemptFolder(id))
}

// BeginStream marks the folder of a slot's long-lived program as used.
func (k *Keeper) BeginStream(study string, slot int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.begin(folder{study: study, slot: slot})
}

func (k *Keeper) begin(f folder) {
	k.used[f]++
	if !k.known[f] {
		return
	}
	delete(k.known, f)
	k.kept = slices.DeleteFunc(k.kept, func(e kept) bool {
		if e.folder == f {
			k.total -= e.bytes
		}
		return e.folder == f
	})
}

// End says that an attempt has ended, and removes what is too much. The error says what
// could not be removed; it is tried again at the next End.
func (k *Keeper) End(id messaging.AttemptID) error { return k.end(attemptFolder(id)) }

// EndStream says that a slot's long-lived program has ended.
func (k *Keeper) EndStream(study string, slot int) error {
	return k.end(folder{study: study, slot: slot})
}

func (k *Keeper) end(f folder) error {
	bytes, _, err := usage(filepath.Join(k.dir, f.path())) // may be large: outside the lock
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.used[f]--; k.used[f] > 0 {
		return nil
	}
	delete(k.used, f)
	if bytes > 0 {
		k.add(kept{folder: f, bytes: bytes, ended: time.Now()})
	}
	_, terr := k.trim(math.MaxInt)
	return errors.Join(err, terr)
}

// add appends a folder. The caller MUST hold the lock.
func (k *Keeper) add(e kept) {
	k.kept = append(k.kept, e)
	k.known[e.folder] = true
	k.total += e.bytes
}

// trim removes the oldest folders until the rest fits, at most so many, and returns how many
// it removed. The caller MUST hold the lock, so that no folder is begun while it or its
// parent is removed.
func (k *Keeper) trim(most int) (removed int, err error) {
	if k.total <= k.limit {
		return 0, nil
	}
	ids, err := k.needed()
	if err != nil {
		return 0, fmt.Errorf("remove the files of ended attempts: %w", err)
	}
	stays := map[folder]bool{}
	for _, id := range ids {
		stays[attemptFolder(id)] = true
	}
	var errs []error
	var stay []kept
	n := 0
	for ; n < len(k.kept) && k.total > k.limit && removed < most; n++ {
		e := k.kept[n]
		whole := e.folder
		whole.attempt = 0
		if stays[e.folder] || e.trial > 0 && stays[whole] {
			stay = append(stay, e)
			continue
		}
		if err := k.removeFolder(e.folder); err != nil {
			errs = append(errs, err)
			stay = append(stay, e)
			continue
		}
		delete(k.known, e.folder)
		k.total -= e.bytes
		removed++
	}
	// Those that stay move to just before the ones that were not looked at.
	copy(k.kept[n-len(stay):n], stay)
	k.kept = k.kept[n-len(stay):]
	return removed, errors.Join(errs...)
}

// removeFolder removes a folder, and then the folders of its trial and its study if they are
// empty. It leaves those of attempts in use, which may be about to make their own folder
// there.
func (k *Keeper) removeFolder(f folder) error {
	path := filepath.Join(k.dir, f.path())
	if err := k.remove(path); err != nil {
		return fmt.Errorf("remove the files of an ended attempt: %w", err)
	}
	study, trial := false, false
	for u := range k.used {
		study = study || u.study == f.study
		trial = trial || u.study == f.study && u.trial == f.trial
	}
	if f.trial > 0 {
		if path = filepath.Dir(path); !trial {
			_ = os.Remove(path) // it may have other attempts
		}
	}
	if !study {
		_ = os.Remove(filepath.Dir(path)) // it may have other trials
	}
	return nil
}

// usage returns what a folder takes, and when something in it changed last. A folder that
// does not exist takes nothing.
func usage(dir string) (bytes int64, changed time.Time, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil {
			var info fs.FileInfo
			if info, err = d.Info(); err == nil {
				size := int64(0)
				if info.Mode().IsRegular() {
					size = info.Size()
				}
				bytes += max(1, (size+blockSize-1)/blockSize) * blockSize
				if info.ModTime().After(changed) {
					changed = info.ModTime()
				}
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a program that was left behind may still remove its files
		}
		return err
	})
	if err != nil {
		return bytes, changed, fmt.Errorf("measure the files of an attempt: %w", err)
	}
	return bytes, changed, nil
}

// folders returns the names of the folders in a folder that may be of studies.
func folders(dir string, errs *[]error) []string {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		*errs = append(*errs, fmt.Errorf("read what earlier attempts left: %w", err))
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() && messaging.ValidToken(e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names
}

// numbers returns the folders in a folder whose names are numbers from least on.
func numbers(dir string, least int, errs *[]error) []int {
	var found []int
	for _, name := range folders(dir, errs) {
		if n, err := strconv.Atoi(name); err == nil && n >= least && strconv.Itoa(n) == name {
			found = append(found, n)
		}
	}
	return found
}
