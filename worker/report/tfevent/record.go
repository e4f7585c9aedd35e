package tfevent

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// The parts of a record, as TensorFlow describes them
// (https://www.tensorflow.org/tutorials/load_data/tfrecord#tfrecords_format_details): the length of
// the data, its checksum, the data and its checksum.
const (
	headerSize  = 12
	trailerSize = 4
	// maxRecord is the size of the largest record that is read, in bytes. A scalar needs a
	// hundred; larger records, which are graphs, images and the like, are skipped.
	maxRecord = 1 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// errDamaged is the error of a record that is not as it was written.
var errDamaged = errors.New("its checksum is wrong")

// checksum is the masked CRC-32C of a record's parts.
func checksum(b []byte) uint32 {
	crc := crc32.Checksum(b, castagnoli)
	return (crc>>15 | crc<<17) + 0xa282ead8
}

// scan passes the data of each whole record in a file's bytes from offset to size to take, which
// MUST NOT keep it. It returns where it stopped: take asked for that, or no whole record follows. After an
// error, nothing that follows can be read.
func scan(file io.ReaderAt, offset, size int64, take func(data []byte) (more bool)) (int64, error) {
	r := bufio.NewReaderSize(io.NewSectionReader(file, offset, size-offset), 64<<10)
	for header := [headerSize]byte{}; size-offset >= headerSize; {
		if _, err := io.ReadFull(r, header[:]); err != nil {
			return offset, err
		}
		if binary.LittleEndian.Uint32(header[8:]) != checksum(header[:8]) {
			return offset, fmt.Errorf("the record at byte %d is damaged: %w", offset, errDamaged)
		}
		length := binary.LittleEndian.Uint64(header[:8])
		if length > uint64(size-offset) || int64(length) > size-offset-headerSize-trailerSize {
			return offset, nil // its end is still to be written
		}
		next := offset + headerSize + int64(length) + trailerSize
		if length > maxRecord {
			r.Reset(io.NewSectionReader(file, next, size-next))
			offset = next
			continue
		}
		data := make([]byte, length+trailerSize)
		if _, err := io.ReadFull(r, data); err != nil {
			return offset, err
		}
		if binary.LittleEndian.Uint32(data[length:]) != checksum(data[:length]) {
			return offset, fmt.Errorf("the record at byte %d is damaged: %w", offset, errDamaged)
		}
		offset = next
		if !take(data[:length]) {
			break
		}
	}
	return offset, nil
}
