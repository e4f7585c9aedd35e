package simulation

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// script is the troubles of a schedule. Its file has the head in its first line and one
// trouble in each line after it, so that people can take troubles away to find out which of
// them matter.
type script struct {
	head
	troubles []trouble
}

// head says what a schedule is drawn from.
type head struct {
	// Seed draws the processes, the studies and the faults of messages.
	Seed uint64 `json:"seed"`
	// Faults and Delays are the rates of faults and delays of messages.
	Faults float64 `json:"faults"`
	Delays float64 `json:"delays"`
	// Until is when the troubles are over.
	Until span `json:"until"`
}

// trouble is one fault of the world. Which fields matter is said where its kind is played.
type trouble struct {
	At   span   `json:"at"`
	Kind string `json:"kind"`
	Of   string `json:"of,omitempty"`  // a process or a stream
	For  span   `json:"for,omitempty"` // until it is over; how far a clock is off
	// In is the operation at which a process dies, Ending what becomes of that operation,
	// and Late when, if it is late.
	In     int    `json:"in,omitempty"`
	Ending ending `json:"ending,omitempty"`
	Late   span   `json:"late,omitempty"`
	// Part is the part of what is there that stays, from 0 to 1.
	Part float64 `json:"part,omitempty"`
	// Lost says that files or keys are lost, Killed that processes are not asked to end.
	Lost   bool `json:"lost,omitempty"`
	Killed bool `json:"killed,omitempty"`
}

// span is a duration that is written as 1.5s.
type span time.Duration

// String implements fmt.Stringer.
func (s span) String() string { return time.Duration(s).String() }

// MarshalText implements encoding.TextMarshaler.
func (s span) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *span) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	*s = span(d)
	return err
}

// write writes a script to a file in dir, and returns its path.
func (s *script) write(dir string) (string, error) {
	path := filepath.Join(dir, fmt.Sprintf("simulation-%d.jsonl", s.Seed))
	f, err := os.Create(path)
	if err != nil {
		return "", err
	}
	out := json.NewEncoder(f)
	errs := []error{out.Encode(s.head)}
	for _, t := range s.troubles {
		errs = append(errs, out.Encode(t))
	}
	return path, errors.Join(append(errs, f.Close())...)
}

// add adds the trouble of a line.
func (s *script) add(line []byte) error {
	var t trouble
	if err := json.Unmarshal(line, &t); err != nil {
		return err
	}
	if _, ok := kindOf(t.Kind); !ok {
		return fmt.Errorf("there is no kind %q", t.Kind)
	}
	s.troubles = append(s.troubles, t)
	return nil
}

// readScript reads a script.
func readScript(path string) (*script, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	s := &script{}
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		if n == 1 {
			err = json.Unmarshal(lines.Bytes(), &s.head)
		} else {
			err = s.add(lines.Bytes())
		}
		if err != nil {
			return nil, fmt.Errorf("%s, line %d: %w", path, n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if s.Seed == 0 {
		return nil, fmt.Errorf("%s: the first line has no seed", path)
	}
	return s, nil
}
