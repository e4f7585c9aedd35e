package tfevent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/fantasia-hpo/fantasia/internal/base/backoff"
	"github.com/fantasia-hpo/fantasia/worker/report"
)

const (
	// poll is the interval at which a folder is searched for new events. Writers keep events for
	// longer: tensorboardX and PyTorch for two minutes, unless they are told to flush.
	poll = time.Second
	// maxFiles is the largest number of event files in a folder.
	maxFiles = 256
	// maxBatch is how many scalars are kept before they are passed on.
	maxBatch = 4096
)

// Folder reads the scalars of all event files in and below a folder while a program writes them.
// A scalar's metric is its tag, after the path of its file's folder: train/loss. A metric of the study may leave
// out folders at the beginning. It is not safe for concurrent use.
type Folder struct {
	dir     string
	metrics []string
	emit    func(reports []report.Report, err error)

	files    []*file
	sources  map[string]string // the whole name of each of the study's metrics that was found
	unclear  map[string]bool   // the metric may be one of several scalars
	problems []report.Report   // with metrics, still to be told
	copies   []scalar          // see copied
	steps    map[string]int64  // the highest step of each metric
	found    bool              // a scalar was found
	crowded  bool              // there are too many files
}

// file is an event file that is being read.
type file struct {
	name   string // its path in the folder, with slashes
	offset int64
	damage error // why the rest cannot be read
}

// NewFolder passes what is recorded in a folder to emit: reports with the scalars of a step, and errors
// about what cannot be read. The folder need not exist yet. Links that lead out of it are not
// followed. metrics are the names that the study uses.
func NewFolder(dir string, metrics []string, emit func(reports []report.Report, err error)) *Folder {
	return &Folder{dir: dir, metrics: metrics, emit: emit, sources: map[string]string{}, unclear: map[string]bool{}, steps: map[string]int64{}}
}

// Follow reads until ctx ends.
func (f *Folder) Follow(ctx context.Context) {
	for range backoff.Ticks(ctx, poll) {
		_ = f.readNew() // Finish returns it
	}
}

// Finish reads the rest. The error says why there was no scalar.
func (f *Folder) Finish() error {
	if err := f.readNew(); err != nil {
		return err
	}
	f.tellCopies()
	for _, one := range f.files {
		if one.damage == nil && !f.whole(one) {
			f.emit(nil, fmt.Errorf("the last record of %s is not complete", f.path(one)))
		}
	}
	switch {
	case len(f.files) == 0:
		return fmt.Errorf("no file in %s or below has tfevents in its name", f.dir)
	case !f.found:
		return fmt.Errorf("the event files in %s have no scalar", f.dir)
	}
	return nil
}

// path returns a file's path for people.
func (f *Folder) path(one *file) string { return path.Join(f.dir, one.name) }

// whole reports whether a file was read to its end.
func (f *Folder) whole(one *file) bool {
	info, err := os.Stat(f.path(one))
	return err != nil || info.Size() == one.offset
}

// readNew reads what was written since the last call.
func (f *Folder) readNew() error {
	root, err := os.OpenRoot(f.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s does not exist", f.dir)
	}
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // only read
	f.search(root.FS())
	for more := true; more; {
		var batch []scalar
		for _, one := range f.files {
			batch = f.read(root, one, batch)
		}
		f.tell(batch)
		more = len(batch) >= maxBatch
	}
	return nil
}

// search adds new event files, in the order of their names, which have the time of their creation.
func (f *Folder) search(tree fs.FS) {
	_ = fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, _ error) error {
		if entry == nil || !entry.Type().IsRegular() || !strings.Contains(entry.Name(), "tfevents") {
			return nil // a folder may have gone, or not be readable
		}
		at, known := slices.BinarySearchFunc(f.files, name, func(one *file, name string) int { return cmp.Compare(one.name, name) })
		switch {
		case known:
		case len(f.files) < maxFiles:
			f.files = slices.Insert(f.files, at, &file{name: name})
		case !f.crowded:
			f.crowded = true
			f.emit(nil, fmt.Errorf("%s has more than %d event files; the others are not read", f.dir, maxFiles))
		}
		return nil
	})
}

// read adds the new scalars of a file to a batch, until it is full.
func (f *Folder) read(root *os.Root, one *file, batch []scalar) []scalar {
	if one.damage != nil || len(batch) >= maxBatch {
		return batch
	}
	source, err := root.Open(one.name)
	if err != nil {
		return batch // it has gone
	}
	defer func() { _ = source.Close() }() // only read
	info, err := source.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return batch
	}
	if info.Size() < one.offset { // another file of this name
		one.offset = 0
	}
	var unread error
	one.offset, err = scan(source, one.offset, info.Size(), func(data []byte) bool {
		found, err := scalars(data)
		if err != nil {
			unread = err
			return false
		}
		for _, s := range found {
			s.folder = strings.TrimPrefix(path.Dir(one.name)+"/", "./")
			batch = append(batch, s)
		}
		return len(batch) < maxBatch
	})
	if err = cmp.Or(err, unread); err != nil {
		one.damage = err
		f.tell(batch)
		batch = nil
		f.lose(f.path(one), err)
	}
	return batch
}

// lose reports that the rest of a file cannot be read. Any metric may have been there, so no older value may
// be taken for the last one.
func (f *Folder) lose(name string, err error) {
	r := report.Report{Unreadable: map[string]string{}, Origin: fmt.Sprintf("%s: %v", name, err)}
	for _, metric := range f.metrics {
		r.Unreadable[metric] = "in a file that cannot be read to its end"
	}
	f.emit([]report.Report{r}, errors.New(r.Origin))
}

// tell passes scalars on, those of a step together.
func (f *Folder) tell(batch []scalar) {
	f.found = f.found || len(batch) > 0
	slices.SortStableFunc(batch, func(a, b scalar) int { return cmp.Compare(a.step, b.step) })
	var reports []report.Report
	for _, s := range batch {
		if f.copied(s) {
			continue
		}
		name, ok := f.name(s)
		if !ok {
			continue
		}
		if f.unnumbered(name, s.step) {
			reports = append(reports, report.Report{Metrics: map[string]float64{name: s.value}})
			continue
		}
		n := len(reports) - 1
		if n >= 0 && reports[n].Step != nil && *reports[n].Step == s.step {
			if _, twice := reports[n].Metrics[name]; !twice {
				reports[n].Metrics[name] = s.value
				continue
			}
		}
		reports = append(reports, report.Report{Step: &s.step, Metrics: map[string]float64{name: s.value}})
	}
	reports = append(reports, f.problems...) // last: they void the values before them
	f.problems = nil
	if len(reports) > 0 {
		f.emit(reports, nil)
	}
}

// unnumbered reports whether a value has no step: all of its metric have had step 0, which writers put in the
// place of none. Such values are counted up.
func (f *Folder) unnumbered(metric string, step int64) bool {
	highest, known := f.steps[metric]
	f.steps[metric] = max(step, highest)
	return known && highest == 0 && step == 0
}

// moment is a folder that add_hparams makes, named after the time in seconds.
var moment = regexp.MustCompile(`^(.*/)?\d{9,}\.\d+/$`)

// copied reports whether add_hparams has written a scalar, and keeps it. It repeats the final values of metrics
// in a folder that nobody can name, since it is named after the time.
func (f *Folder) copied(s scalar) bool {
	parts := moment.FindStringSubmatch(s.folder)
	if parts == nil {
		return false
	}
	s.folder = parts[1]
	f.copies = append(f.copies[max(0, len(f.copies)-maxBatch):], s)
	return true
}

// tellCopies passes on what only add_hparams has written.
func (f *Folder) tellCopies() {
	only := slices.DeleteFunc(f.copies, func(s scalar) bool {
		for folder, more := s.folder, true; more; _, folder, more = strings.Cut(folder, "/") {
			if _, known := f.sources[folder+s.tag]; known {
				return true
			}
		}
		return false
	})
	f.copies = nil
	f.tell(only)
}

// name returns the metric of a scalar. It reports false if the study's metric of that name could be
// another scalar too.
func (f *Folder) name(s scalar) (string, bool) {
	whole := s.folder + s.tag
	for folder, more := s.folder, true; more; _, folder, more = strings.Cut(folder, "/") {
		metric := folder + s.tag
		if !slices.Contains(f.metrics, metric) {
			continue
		}
		source, known := f.sources[metric]
		switch {
		case !known:
			f.sources[metric] = whole
		case source != whole && !f.unclear[metric]:
			f.unclear[metric] = true
			f.problems = append(f.problems, report.Report{
				Unreadable: map[string]string{metric: fmt.Sprintf("both %s and %s in the event files", source, whole)},
				Origin:     "name the metric with its folder",
			})
		}
		return metric, !f.unclear[metric]
	}
	return whole, true
}
