// Package codec compresses short texts that resemble each other, such as the records of trials.
package codec

import (
	"bytes"
	"compress/flate"
	"errors"
	"fmt"
	"io"
	"sync"
)

// Codec compresses texts by DEFLATE with a dictionary, so that what a text has in common with the
// dictionary takes hardly any bytes. It keeps most of a megabyte for its work. Safe for concurrent
// use: those who use it at once take turns.
type Codec struct {
	dictionary []byte

	writing sync.Mutex
	packed  bytes.Buffer
	writer  *flate.Writer

	reading sync.Mutex
	from    bytes.Reader
	reader  io.Reader // also a flate.Resetter
}

// New returns a Codec for texts like the dictionary, of which the last 32 kB count.
func New(dictionary []byte) *Codec {
	c := &Codec{dictionary: dictionary}
	var err error
	if c.writer, err = flate.NewWriterDict(&c.packed, flate.DefaultCompression, dictionary); err != nil {
		panic(fmt.Sprintf("codec: %v", err)) // it knows its default level
	}
	c.reader = flate.NewReaderDict(&c.from, dictionary)
	return c
}

// Pack returns a text in fewer bytes.
func (c *Codec) Pack(text []byte) []byte {
	c.writing.Lock()
	defer c.writing.Unlock()
	c.packed.Reset()
	c.writer.Reset(&c.packed)
	_, err := c.writer.Write(text)
	if err := errors.Join(err, c.writer.Close()); err != nil {
		panic(fmt.Sprintf("codec: %v", err)) // a buffer in memory takes everything
	}
	return bytes.Clone(c.packed.Bytes())
}

// Unpack returns the text that Pack was given.
func (c *Codec) Unpack(packed []byte) ([]byte, error) {
	c.reading.Lock()
	defer c.reading.Unlock()
	c.from.Reset(packed)
	if err := c.reader.(flate.Resetter).Reset(&c.from, c.dictionary); err != nil {
		return nil, err
	}
	return io.ReadAll(c.reader)
}
