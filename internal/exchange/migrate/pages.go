package migrate

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
	"github.com/pierrec/lz4/v4"
)

// The Parquet package trusts the counts and sizes in a file: a file of 100 bytes can make it
// allocate gigabytes. What follows checks them before the package sees them.

// maxParquetPage bounds the size of a decompressed page. Writers make pages of about 1 MiB.
const maxParquetPage = 16 << 20

var errCorrupt = errors.New("a count or a size does not match the content")

// openParquet reads the footer of a file.
func openParquet(content []byte) (*parquet.File, error) {
	const tail = 8 // the length of the footer, and "PAR1"
	n := len(content)
	if n < 4+tail {
		return nil, fmt.Errorf("it has only %d bytes", n)
	}
	length := int64(binary.LittleEndian.Uint32(content[n-tail:]))
	if length > int64(n-4-tail) {
		return nil, fmt.Errorf("its footer is longer than the file: %w", errCorrupt)
	}
	footer := compact{rest: content[n-tail-int(length) : n-tail]}
	if err := footer.value(thriftStruct); err != nil {
		return nil, fmt.Errorf("its footer: %w", err)
	}
	return parquet.OpenFile(bytes.NewReader(content), int64(n), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
}

// checkChunk checks the pages of a column, which is not nested, in a row group.
func checkChunk(content []byte, file *parquet.File, group int, leaf *parquet.Column) error {
	rows := file.Metadata().RowGroups[group].NumRows
	meta := &file.Metadata().RowGroups[group].Columns[leaf.Index()].MetaData
	start := meta.DataPageOffset
	if d := meta.DictionaryPageOffset; d != 0 {
		start = d
	}
	size := int64(len(content))
	if rows < 0 || rows > maxTrials || start < 0 || start > size || meta.TotalCompressedSize < 0 || meta.TotalCompressedSize > size-start {
		return errCorrupt
	}
	found := int64(0)
	for rest := content[start : start+meta.TotalCompressedSize]; len(rest) > 0; {
		walk := compact{rest: rest}
		if err := walk.value(thriftStruct); err != nil {
			return fmt.Errorf("header of a page: %w", err)
		}
		var head format.PageHeader
		if err := thrift.Unmarshal(new(thrift.CompactProtocol), rest[:len(rest)-len(walk.rest)], &head); err != nil {
			return fmt.Errorf("header of a page: %w", err)
		}
		if head.CompressedPageSize < 0 || int(head.CompressedPageSize) > len(walk.rest) || head.UncompressedPageSize < 0 ||
			head.UncompressedPageSize > maxParquetPage {
			return fmt.Errorf("has a page of %d bytes, decompressed %d: want pages within their column, of at most %d bytes",
				head.CompressedPageSize, head.UncompressedPageSize, maxParquetPage)
		}
		page := page{optional: leaf.Optional(), codec: meta.Codec, size: int(head.UncompressedPageSize),
			data: walk.rest[:head.CompressedPageSize]}
		rest = walk.rest[head.CompressedPageSize:]
		n, err := page.check(&head)
		if err != nil {
			return err
		}
		if found += n; found > rows {
			return fmt.Errorf("%d values or more for %d rows: %w", found, rows, errCorrupt)
		}
	}
	return nil
}

// page is a page of a column.
type page struct {
	optional bool
	codec    format.CompressionCodec
	size     int // when decompressed
	data     []byte
}

// check checks a page and returns the number of its values, 0 for a dictionary.
func (p *page) check(head *format.PageHeader) (int64, error) {
	switch {
	case head.Type == format.DictionaryPage && head.DictionaryPageHeader.Valid:
		h := &head.DictionaryPageHeader.V
		if err := p.decompress(); err != nil {
			return 0, err
		}
		if h.NumValues < 0 || int(h.NumValues) > len(p.data) ||
			h.Encoding != format.Plain && h.Encoding != format.PlainDictionary { //nolint:staticcheck // files of earlier versions have it
			return 0, fmt.Errorf("a dictionary of %d values, %s: %w", h.NumValues, h.Encoding, errCorrupt)
		}
		return 0, nil
	case head.Type == format.DataPage && head.DataPageHeader.Valid:
		h := &head.DataPageHeader.V
		if err := p.decompress(); err != nil {
			return 0, err
		}
		if p.optional {
			levels, err := p.prefixed()
			if err == nil && h.DefinitionLevelEncoding != format.RLE {
				err = errCorrupt
			}
			if err == nil {
				err = checkRuns(levels, 1, h.NumValues)
			}
			if err != nil {
				return 0, fmt.Errorf("levels: %w", err)
			}
		}
		return int64(h.NumValues), p.checkValues(h.Encoding, h.NumValues)
	case head.Type == format.DataPageV2 && head.DataPageHeaderV2.Valid:
		h := &head.DataPageHeaderV2.V
		if h.RepetitionLevelsByteLength != 0 || h.DefinitionLevelsByteLength < 0 ||
			int(h.DefinitionLevelsByteLength) > min(len(p.data), p.size) || h.NumNulls < 0 || h.NumNulls > h.NumValues {
			return 0, fmt.Errorf("levels: %w", errCorrupt)
		}
		if err := checkRuns(p.data[:h.DefinitionLevelsByteLength], 1, h.NumValues); err != nil {
			return 0, fmt.Errorf("levels: %w", err)
		}
		p.data, p.size = p.data[h.DefinitionLevelsByteLength:], p.size-int(h.DefinitionLevelsByteLength)
		if !h.IsCompressed.Valid || h.IsCompressed.V {
			if err := p.decompress(); err != nil {
				return 0, err
			}
		}
		return int64(h.NumValues), p.checkValues(h.Encoding, h.NumValues)
	default:
		return 0, fmt.Errorf("a page of type %s: %w", head.Type, errCorrupt)
	}
}

// prefixed takes data off the page that is preceded by its length.
func (p *page) prefixed() ([]byte, error) {
	if len(p.data) < 4 {
		return nil, errCorrupt
	}
	n := int64(binary.LittleEndian.Uint32(p.data))
	if n > int64(len(p.data)-4) {
		return nil, errCorrupt
	}
	taken := p.data[4 : 4+n]
	p.data = p.data[4+n:]
	return taken, nil
}

// checkValues checks that n values in an encoding do not claim to be many more.
func (p *page) checkValues(encoding format.Encoding, n int32) error {
	if n < 0 {
		return errCorrupt
	}
	switch encoding {
	case format.Plain, format.ByteStreamSplit:
		return nil
	case format.PlainDictionary, format.RLEDictionary: //nolint:staticcheck // files of earlier versions have it
		if len(p.data) == 0 {
			return nil
		}
		return checkRuns(p.data[1:], p.data[0], n)
	case format.RLE: // of booleans
		runs, err := p.prefixed()
		if err != nil {
			return err
		}
		return checkRuns(runs, 1, n)
	case format.DeltaBinaryPacked, format.DeltaLengthByteArray:
		walk := compact{rest: p.data}
		var total uint64
		for range 3 { // the sizes of blocks, the blocks' parts, the number of values
			total = walk.uvarint()
		}
		if walk.short || total > uint64(n) {
			return fmt.Errorf("%d values: %w", total, errCorrupt)
		}
		return nil
	default: // a few bytes of DELTA_BYTE_ARRAY can be long texts
		return fmt.Errorf("is encoded as %s: want another encoding, such as PLAIN", encoding)
	}
}

// checkRuns checks data in the run-length encoding for about n values of some bits each.
func checkRuns(data []byte, bits byte, n int32) error {
	// Writers fill up the last run.
	most := uint64(max(n, 0)) + 1024
	if bits > 32 {
		return errCorrupt
	}
	walk := compact{rest: data}
	for len(walk.rest) > 0 {
		head := walk.uvarint()
		count, size := head>>1, uint64(bits+7)/8
		if head&1 == 1 { // groups of eight, packed
			if count > most {
				return errCorrupt
			}
			count, size = 8*count, count*uint64(bits)
		}
		walk.skip(size)
		if walk.short || count > most {
			return errCorrupt
		}
		most -= count
	}
	return nil
}

// decompress replaces the data by what it decompresses to, which must have the size that the
// header says.
func (p *page) decompress() error {
	var r io.Reader
	var err error
	switch p.codec {
	case format.Uncompressed:
		return nil
	case format.Snappy:
		n, failed := snappy.DecodedLen(p.data)
		if failed != nil || n != p.size {
			return errCorrupt
		}
		p.data, err = snappy.Decode(nil, p.data)
		return err
	case format.Lz4Raw:
		out := make([]byte, p.size)
		n, failed := lz4.UncompressBlock(p.data, out)
		if failed != nil || n != p.size {
			return errCorrupt
		}
		p.data = out
		return nil
	case format.Gzip:
		r, err = gzip.NewReader(bytes.NewReader(p.data))
	case format.Zstd:
		decoder, failed := zstd.NewReader(bytes.NewReader(p.data), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxParquetPage))
		if failed == nil {
			defer decoder.Close()
		}
		r, err = decoder, failed
	case format.Brotli:
		r = brotli.NewReader(bytes.NewReader(p.data))
	default:
		return fmt.Errorf("is compressed with %s: want SNAPPY, GZIP, ZSTD, BROTLI, LZ4_RAW or nothing", p.codec)
	}
	if err == nil {
		p.data, err = io.ReadAll(io.LimitReader(r, int64(p.size)+1))
	}
	if err != nil {
		return fmt.Errorf("decompress a page: %w", err)
	}
	if len(p.data) != p.size {
		return errCorrupt
	}
	return nil
}
