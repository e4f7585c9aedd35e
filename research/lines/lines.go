// Package lines keeps the runs of a comparison in a file, one JSON object a line, so that hours of
// runs can be interrupted. It also has what else the comparisons share: seeds, and zipped tables.
package lines

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"os"
)

// Read returns the runs of a file, which need not exist.
func Read[T any](path string) (runs []T, err error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("read the runs: %w", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	for d := json.NewDecoder(bufio.NewReader(file)); ; {
		var one T
		if err := d.Decode(&one); errors.Is(err, io.EOF) {
			return runs, nil
		} else if err != nil {
			return nil, fmt.Errorf("read the runs %s: %w", path, err)
		}
		runs = append(runs, one)
	}
}

// Played returns the keys of the runs of a file, which need not exist.
func Played[T any](path string, key func(*T) string) (map[string]bool, error) {
	runs, err := Read[T](path)
	played := map[string]bool{}
	for i := range runs {
		played[key(&runs[i])] = true
	}
	return played, err
}

// Append adds a run to a file.
func Append(path string, run any) error {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err == nil {
		err = errors.Join(json.NewEncoder(file).Encode(run), file.Close())
	}
	if err != nil {
		return fmt.Errorf("write the runs: %w", err)
	}
	return nil
}

// Seed returns the seed of a run: two tasks never share one, and with it their first points.
func Seed(task string, seed int) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s %d", task, seed)
	return h.Sum64()
}

// Unzip returns the content of a zipped file. Errors say what it is, such as a table.
func Unzip(what, path string) (content []byte, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the %s: %w", what, err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	unzipped, err := gzip.NewReader(file)
	if err == nil {
		content, err = io.ReadAll(unzipped)
	}
	if err != nil {
		return nil, fmt.Errorf("read the %s %s: %w", what, path, err)
	}
	return content, nil
}
