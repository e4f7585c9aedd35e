package asktell

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
)

// errLong is the error for a line that is too long; the rest of the line is skipped.
var errLong = fmt.Errorf("the line is longer than %d bytes", MaxLine)

// line is a line of input without its newline, or the error in its place.
type line struct {
	text []byte
	err  error
}

// readLines sends each line of in, then the error that ended it, until ctx ends.
func readLines(ctx context.Context, in io.Reader, lines chan<- line) {
	buffer := bufio.NewReaderSize(in, 64<<10)
	for {
		l := next(buffer)
		select {
		case lines <- l:
		case <-ctx.Done():
			return
		}
		if l.err != nil && !errors.Is(l.err, errLong) {
			return
		}
	}
}

// next reads one line, skipping empty ones. It keeps at most MaxLine bytes.
func next(in *bufio.Reader) line {
	for {
		text, err := whole(in)
		if len(text) > 0 || err != nil {
			return line{text: text, err: err}
		}
	}
}

// whole reads up to the next newline. The last line needs none.
func whole(in *bufio.Reader) ([]byte, error) {
	var text []byte
	long := false
	for {
		part, err := in.ReadSlice('\n')
		ended := err == nil
		if ended {
			part = part[:len(part)-1]
		}
		if long = long || len(text)+len(part) > MaxLine; !long {
			text = append(text, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && (!errors.Is(err, io.EOF) || (len(text) == 0 && !long)):
			return nil, err
		case long:
			return nil, errLong
		default:
			return trim(text), nil
		}
	}
}

// trim removes the carriage return that a Windows program adds to a line.
func trim(text []byte) []byte {
	if n := len(text); n > 0 && text[n-1] == '\r' {
		return text[:n-1]
	}
	return text
}
