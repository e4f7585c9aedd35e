package migrate

import (
	"bytes"
	"encoding/binary"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// cheaply runs f, which must not allocate much.
func cheaply(t *testing.T, name string, f func()) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 100<<20 {
		t.Errorf("%s: allocated %d MiB", name, used>>20)
	}
}

// written returns a Parquet file of the rows.
func written[T any](t *testing.T, rows []T) []byte {
	t.Helper()
	var out bytes.Buffer
	w := parquet.NewGenericWriter[T](&out, parquet.Compression(&parquet.Zstd), parquet.PageBufferSize(2*maxParquetPage))
	_, err := w.Write(rows)
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// Small files that stand for much are refused, and need little memory.
func TestParquetBombs(t *testing.T) {
	type row struct {
		X     string  `parquet:"x"`
		Value float64 `parquet:"value"`
	}
	spec := specOf(t, "loss", "name: x, type: categorical, values: [a, b]")
	good := written(t, []row{{"a", 1}})
	if trials, _, err := Parquet(good, spec); err != nil || len(trials) != 1 {
		t.Fatalf("%v, %v", trials, err)
	}
	footer := func(content ...byte) []byte {
		return append(binary.LittleEndian.AppendUint32(append([]byte("PAR1"), content...), uint32(len(content))), "PAR1"...)
	}
	longer := bytes.Clone(good)
	binary.LittleEndian.PutUint32(longer[len(longer)-8:], 1<<31)
	for name, c := range map[string]struct {
		content []byte
		want    string
	}{
		"long footer": {longer, "its footer is longer than the file"},
		// Field 2 is the list of the schema's elements, here 2^31-1 of them; field 1 a number.
		"long list":   {footer(0x15, 2, 0x19, 0xfc, 0xff, 0xff, 0xff, 0xff, 7, 0), "its footer: a count or a size does not match"},
		"long text":   {footer(0x15, 2, 0x48, 0xff, 0xff, 0xff, 0xff, 7, 0), "its footer: a count or a size does not match"},
		"deep footer": {footer(bytes.Repeat([]byte{0x1c}, 1<<20)...), "its footer: a count or a size does not match"},
		"many rows":   {written(t, make([]row, maxTrials+1)), "the file has 1000001 rows: want at most 1000000"},
		"big page": {written(t, slices.Repeat([]row{{strings.Repeat("a", 100), 1}}, maxParquetPage/100)),
			"want pages within their column, of at most 16777216 bytes"},
	} {
		cheaply(t, name, func() {
			trials, _, err := Parquet(c.content, spec)
			if !errors.Is(err, ErrSource) || !strings.Contains(err.Error(), c.want) || len(trials) > 0 {
				t.Errorf("%s: %d trials, %v; want %q", name, len(trials), err, c.want)
			}
		})
	}
}

// A page is refused if its counts, its sizes or its levels claim more than it has.
func TestPages(t *testing.T) {
	data := func(n int32, encoding format.Encoding) *format.PageHeader {
		return &format.PageHeader{Type: format.DataPage,
			DataPageHeader: thrift.New(format.DataPageHeader{NumValues: n, Encoding: encoding, DefinitionLevelEncoding: format.RLE})}
	}
	dictionary := &format.PageHeader{Type: format.DictionaryPage,
		DictionaryPageHeader: thrift.New(format.DictionaryPageHeader{NumValues: 1 << 30})}
	levels := func(n int32, length int32) *format.PageHeader {
		return &format.PageHeader{Type: format.DataPageV2,
			DataPageHeaderV2: thrift.New(format.DataPageHeaderV2{NumValues: n, DefinitionLevelsByteLength: length})}
	}
	// 2^30 times one value of 8 bits.
	run := append(binary.AppendUvarint(nil, 1<<31), 1)
	zeros := make([]byte, 32<<20)
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		page page
		head *format.PageHeader
		good bool
	}{
		"values":            {page{data: make([]byte, 80)}, data(10, format.Plain), true},
		"dictionary":        {page{data: []byte{1}}, dictionary, false},
		"run":               {page{data: append([]byte{8}, run...)}, data(10, format.RLEDictionary), false},
		"fitting run":       {page{data: []byte{8, 20, 1}}, data(10, format.RLEDictionary), true},
		"run without end":   {page{data: []byte{8, 20}}, data(10, format.RLEDictionary), false},
		"packed":            {page{data: []byte{8, 3, 1, 2}}, data(8, format.RLEDictionary), false},
		"fitting packed":    {page{data: []byte{8, 3, 1, 2, 3, 4, 5, 6, 7, 8}}, data(8, format.RLEDictionary), true},
		"no bits":           {page{data: append([]byte{0}, binary.AppendUvarint(nil, 1<<31+1)...)}, data(10, format.RLEDictionary), false},
		"too many bits":     {page{data: []byte{33, 2, 1, 1, 1, 1, 1}}, data(1, format.RLEDictionary), false},
		"booleans":          {page{data: append([]byte{byte(len(run)), 0, 0, 0}, run...)}, data(10, format.RLE), false},
		"levels":            {page{optional: true, data: append([]byte{byte(len(run)), 0, 0, 0}, run...)}, data(10, format.Plain), false},
		"levels over end":   {page{optional: true, data: []byte{1, 0, 0, 1, 1}}, data(10, format.Plain), false},
		"second levels":     {page{data: run, size: len(run)}, levels(10, int32(len(run))), false},
		"levels of others":  {page{data: run, size: len(run)}, levels(10, 1000), false},
		"deltas":            {page{data: binary.AppendUvarint([]byte{128, 1, 4}, 1<<40)}, data(10, format.DeltaBinaryPacked), false},
		"prefixes":          {page{data: []byte{0}}, data(10, format.DeltaByteArray), false},
		"negative":          {page{}, data(-1, format.Plain), false},
		"snappy":            {page{codec: format.Snappy, size: 10, data: binary.AppendUvarint(nil, 1<<31)}, data(1, format.Plain), false},
		"fitting snappy":    {page{codec: format.Snappy, size: 8, data: snappy.Encode(nil, make([]byte, 8))}, data(1, format.Plain), true},
		"lz4":               {page{codec: format.Lz4Raw, size: 10, data: []byte{255, 255, 255}}, data(1, format.Plain), false},
		"zstd":              {page{codec: format.Zstd, size: 8, data: encoder.EncodeAll(zeros, nil)}, data(1, format.Plain), false},
		"unknown":           {page{codec: format.LZO}, data(1, format.Plain), false},
		"header of another": {page{}, &format.PageHeader{Type: format.DataPage}, false},
	} {
		cheaply(t, name, func() {
			if _, err := c.page.check(c.head); (err == nil) != c.good {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// A column whose stored values are not those that people mean is refused.
func TestParquetTypes(t *testing.T) {
	spec := specOf(t, "loss", "name: x, type: float, min: 0, max: 900")
	type decimal struct {
		X     int64   `parquet:"x,decimal(2:18)"`
		Value float64 `parquet:"value"`
	}
	if _, _, err := Parquet(written(t, []decimal{{150, 1}}), spec); !errors.Is(err, ErrSource) ||
		!strings.Contains(err.Error(), "column x is of type DECIMAL(18,2): want numbers, texts or booleans") {
		t.Errorf("a decimal: %v", err)
	}
	type others struct {
		X     uint64 `parquet:"x"`
		Value int32  `parquet:"value"`
	}
	if got := points(Parquet(written(t, []others{{150, -1}, {1<<63 + 1, 2}}), spec)); len(got) != 2 || got[0] != "-1: map[x:150]" ||
		got[1] != `row 2: parameter x is "9223372036854775809": want a number from 0 to 900` {
		t.Errorf("whole numbers: %q", got)
	}
}
