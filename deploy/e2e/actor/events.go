package main

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// The numbers of the fields of tensorflow/core/util/event.proto and
// tensorflow/core/framework/summary.proto that are written.
const (
	eventTime, eventStep, eventVersion, eventSummary = 1, 2, 3, 5
	summaryValue, valueTag, valueSimple              = 1, 1, 2
)

// record appends an event to the file of this run, as a summary writer of TensorFlow does. A new file
// begins with an event that names its version.
func (p *play) record(step int) error {
	dir := cmp.Or(p.events, filepath.Join(os.Getenv("FANTASIA_TRIAL_DIR"), "logs"))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(dir, "events.out.tfevents.0.actor"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	var text []byte
	if step == 1 {
		text = framed(protowire.AppendString(protowire.AppendTag(event(0), eventVersion, protowire.BytesType), "brain.Event:2"))
	}
	value := protowire.AppendString(protowire.AppendTag(nil, valueTag, protowire.BytesType), "error")
	value = protowire.AppendFixed32(protowire.AppendTag(value, valueSimple, protowire.Fixed32Type), math.Float32bits(float32(p.x*p.x)))
	summary := protowire.AppendBytes(protowire.AppendTag(nil, summaryValue, protowire.BytesType), value)
	text = append(text, framed(protowire.AppendBytes(protowire.AppendTag(event(step), eventSummary, protowire.BytesType), summary))...)
	if _, err := f.Write(text); err != nil {
		return errors.Join(fmt.Errorf("write an event: %w", err), f.Close())
	}
	return f.Close()
}

// event returns the beginning of an event of a step.
func event(step int) []byte {
	seconds := float64(time.Now().UnixMicro()) / 1e6
	e := protowire.AppendFixed64(protowire.AppendTag(nil, eventTime, protowire.Fixed64Type), math.Float64bits(seconds))
	return protowire.AppendVarint(protowire.AppendTag(e, eventStep, protowire.VarintType), uint64(step))
}

// framed returns a record of TensorFlow: the length of data, its checksum, data and its checksum
// (https://www.tensorflow.org/tutorials/load_data/tfrecord#tfrecords_format_details).
func framed(data []byte) []byte {
	checksum := func(b []byte) uint32 {
		crc := crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))
		return (crc>>15 | crc<<17) + 0xa282ead8
	}
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(data)))
	b = binary.LittleEndian.AppendUint32(b, checksum(b))
	b = append(b, data...)
	return binary.LittleEndian.AppendUint32(b, checksum(data))
}
