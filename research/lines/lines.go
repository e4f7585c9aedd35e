// Package lines keeps the runs of a comparison in a file, one JSON object a line, so that hours of
// runs can be interrupted.
package lines

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
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
