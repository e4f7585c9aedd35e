package migrate

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Limits on what is read from a file, which may be endless, or made to become large in memory.
const (
	// maxTrials bounds the trials of a file. A study has at most as many.
	maxTrials = 1_000_000
	// maxFile bounds a table that is read whole, and the text of a Parquet file's values, in bytes.
	maxFile = 256 << 20
	// maxSeparators bounds what can separate cells in one line of a table: each costs some 30 bytes.
	maxSeparators = 100_000
	// maxCell bounds a text of a table, in bytes: it is copied a few times.
	maxCell = 1 << 20
	// maxElement bounds one trial of JSON and one line of a journal, in bytes. In memory, JSON can
	// be 50 times as large.
	maxElement = 4 << 20
)

// ReadFile reads a file that is needed whole. The error wraps ErrSource.
func ReadFile(r io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("it is larger than %d MiB; want at most that", maxFile>>20)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSource, err)
	}
	return text, nil
}

// boundCells is a reader of a table that fails at the first cell larger than maxCell, so that nobody holds it in
// memory. Commas, semicolons and tabs all count as separators.
type boundCells struct {
	from        io.Reader
	line, start int // the present line, and the one in which the cell starts
	size        int // of the cell
	quoted      bool
	closed      bool // the byte before has closed the quotes; one that follows opens them again
}

// Read implements io.Reader.
func (b *boundCells) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	for _, c := range p[:n] {
		quote := c == '"' && (b.quoted || b.closed || b.size == 0)
		b.closed = quote && b.quoted
		switch {
		case quote:
			b.quoted = !b.quoted
		case !b.quoted && (c == ',' || c == ';' || c == '\t' || c == '\n'):
			b.size = -1
		case c == ' ' && b.size == 0:
			continue // the quote of a cell may follow
		}
		if c == '\n' {
			b.line++
		}
		if b.size++; b.size == 1 {
			b.start = b.line
		}
		if b.size > maxCell {
			return 0, fmt.Errorf("line %d has a cell that is larger than %d MiB; want at most that", b.start+1, maxCell>>20)
		}
	}
	return n, err
}

// checkLines checks that no line of a table has very many cells.
func checkLines(text []byte) error {
	number := 0
	for line := range bytes.Lines(text) {
		number++
		found := 0
		for _, separator := range ",;\t" {
			found = max(found, bytes.Count(line, []byte(string(separator))))
		}
		if found > maxSeparators {
			return fmt.Errorf("%w: line %d has %d cells; want at most %d", ErrSource, number, found+1, maxSeparators)
		}
	}
	return nil
}

// full returns an error once there are more trials than a file may have.
func (c *collector) full() error {
	if len(c.trials)+len(c.skipped) > maxTrials {
		return fmt.Errorf("%w: it has more than %d trials; want at most that", ErrSource, maxTrials)
	}
	return nil
}

// elements decodes the objects of JSON, one after another or in lists, and holds only one in
// memory.
type elements struct {
	from   io.Reader
	left   int // of what the present element may take, in bytes
	in     *json.Decoder
	inList bool
}

func newElements(r io.Reader) *elements {
	e := &elements{from: r}
	e.in = json.NewDecoder(e)
	e.in.UseNumber()
	return e
}

var errElement = fmt.Errorf("it is larger than %d MiB; want at most that", maxElement>>20)

// Read implements io.Reader for the decoder. It reads as much as there is room for, since the
// decoder looks at all spaces again after each part.
func (e *elements) Read(p []byte) (int, error) {
	if e.left <= 0 {
		return 0, errElement
	}
	n, err := io.ReadFull(e.from, p[:min(len(p), e.left)])
	e.left -= n
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	return n, err
}

// next returns the next element, io.EOF after the last.
func (e *elements) next() (any, error) {
	e.left = maxElement
	for {
		if e.inList {
			if e.in.More() {
				var one any
				err := e.in.Decode(&one)
				return one, unexpected(err)
			}
			if _, err := e.in.Token(); err != nil { // ]
				return nil, unexpected(err)
			}
			e.inList = false
		}
		switch token, err := e.in.Token(); {
		case err != nil:
			return nil, err
		case token == json.Delim('['):
			e.inList = true
		case token == json.Delim('{'):
			return e.object()
		default:
			return token, nil
		}
	}
}

// object decodes the rest of an object after its brace.
func (e *elements) object() (any, error) {
	fields := map[string]any{}
	for e.in.More() {
		name, err := e.in.Token()
		if err != nil {
			return nil, unexpected(err)
		}
		var value any
		if err := e.in.Decode(&value); err != nil {
			return nil, unexpected(err)
		}
		fields[fmt.Sprint(name)] = value
	}
	_, err := e.in.Token() // the closing brace
	return fields, unexpected(err)
}

// unexpected says that an element is not complete.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// readLine returns a line with its newline. The error is io.EOF if there is no newline.
func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
		if len(line) > maxElement {
			return nil, errElement
		}
	}
}
