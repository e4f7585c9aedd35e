package etcdfile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"hash/fnv"
	"os"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// The format of bbolt's file: https://github.com/etcd-io/bbolt, internal/common. Its
// numbers are in the byte order of the machine, which is little-endian wherever Fantasia runs.
const (
	boltMagic   = 0xED0CDAED
	boltVersion = 2
	headerBytes = 16 // of a page: id, flags, count, overflow
	elemBytes   = 16 // of an element, in branches and in leaves
	branchFlag  = 0x01
	leafFlag    = 0x02
	metaFlag    = 0x04
	listFlag    = 0x10
	bucketFlag  = 0x01 // of a leaf's element
	noFreelist  = ^uint64(0)
	maxDepth    = 32
	maxPageSize = 1 << 16
)

// meta is the root of a version of the database.
type meta struct {
	pageSize, root, freelist, pages, txid uint64
}

// database is a bbolt file.
type database struct {
	path string
	file *os.File
	size uint64
	meta
	seen []bool // the pages that were reached
}

func openDatabase(path string) (*database, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	d := &database{path: path, file: file}
	info, err := file.Stat()
	if err == nil {
		d.size = uint64(info.Size())
		err = d.readMeta()
	}
	if err != nil {
		_ = file.Close() // it was only read
		return nil, err
	}
	return d, nil
}

func (d *database) close() error { return d.file.Close() }

func (d *database) damage(format string, args ...any) error {
	return &Damage{d.path, fmt.Sprintf(format, args...)}
}

// readMeta finds the latest valid root, as bbolt does: a process that is killed while it writes one
// leaves the other.
func (d *database) readMeta() error {
	found := false
	for _, at := range d.metaPlaces() {
		m, ok := d.metaAt(at)
		if ok && (!found || m.txid > d.txid) {
			d.meta, found = m, true
		}
	}
	switch {
	case !found:
		return d.damage("it has %d bytes and no valid root", d.size)
	case d.pages > d.size/d.pageSize:
		return d.damage("it has %d bytes, but its %d pages take %d: it was cut off", d.size, d.pages, d.pages*d.pageSize)
	case d.pages < 3:
		return d.damage("its root says that it has %d pages, want 3 or more", d.pages)
	}
	d.seen = make([]bool, d.pages)
	return nil
}

// metaPlaces are where a root may be: at the start, and a page later for each size of pages.
func (d *database) metaPlaces() []uint64 {
	places := []uint64{0}
	for size := uint64(1 << 9); size <= maxPageSize; size *= 2 {
		places = append(places, size)
	}
	return places
}

func (d *database) metaAt(at uint64) (m meta, ok bool) {
	b := make([]byte, headerBytes+64)
	if _, err := d.file.ReadAt(b, int64(at)); err != nil {
		return m, false
	}
	if binary.LittleEndian.Uint16(b[8:]) != metaFlag {
		return m, false
	}
	b = b[headerBytes:]
	sum := fnv.New64a()
	_, _ = sum.Write(b[:56]) // never fails
	number := binary.LittleEndian.Uint64
	m = meta{pageSize: uint64(binary.LittleEndian.Uint32(b[8:])), root: number(b[16:]), freelist: number(b[32:]), pages: number(b[40:]),
		txid: number(b[48:])}
	ok = binary.LittleEndian.Uint32(b) == boltMagic && binary.LittleEndian.Uint32(b[4:]) == boltVersion && number(b[56:]) == sum.Sum64() &&
		m.pageSize >= 1<<9 && m.pageSize <= maxPageSize && (at == 0 || at == m.pageSize)
	return m, ok
}

// page is a page with those that it continues on.
type page struct {
	id    uint64
	flags uint16
	count int
	data  []byte // with the header
}

// page reads a page.
func (d *database) page(id uint64) (p page, err error) {
	if id < 2 || id >= d.pages {
		return p, d.damage("it refers to page %d, want 2 to %d", id, d.pages-1)
	}
	header := make([]byte, headerBytes)
	if _, err := d.file.ReadAt(header, int64(id*d.pageSize)); err != nil {
		return p, fmt.Errorf("read %s: %w", d.path, err)
	}
	overflow := uint64(binary.LittleEndian.Uint32(header[12:]))
	if is := binary.LittleEndian.Uint64(header); is != id {
		return p, d.damage("page %d says that it is page %d", id, is)
	}
	if overflow >= d.pages-id {
		return p, d.damage("page %d continues on %d pages, beyond the end", id, overflow)
	}
	p = page{id: id, flags: binary.LittleEndian.Uint16(header[8:]), count: int(binary.LittleEndian.Uint16(header[10:]))}
	p.data = make([]byte, (overflow+1)*d.pageSize)
	if _, err := d.file.ReadAt(p.data, int64(id*d.pageSize)); err != nil {
		return p, fmt.Errorf("read %s: %w", d.path, err)
	}
	return p, nil
}

// reach reads a page that must not have been reached yet.
func (d *database) reach(id uint64) (page, error) {
	p, err := d.page(id)
	if err != nil {
		return p, err
	}
	for i := range uint64(len(p.data)) / d.pageSize {
		if d.seen[id+i] {
			return p, d.damage("page %d is used twice", id+i)
		}
		d.seen[id+i] = true
	}
	return p, nil
}

// element is an element of a page.
type element struct {
	flags      uint32
	child      uint64 // in a branch
	key, value []byte
}

// element returns the i-th element of a page, if all of it is in the page.
func (p *page) element(i int) (e element, ok bool) {
	at := headerBytes + i*elemBytes
	if at+elemBytes > len(p.data) {
		return e, false
	}
	b := p.data[at:]
	short := func(n int) uint64 { return uint64(binary.LittleEndian.Uint32(b[n:])) }
	var from, keyBytes, valueBytes uint64
	if p.flags == branchFlag {
		from, keyBytes, e.child = short(0), short(4), binary.LittleEndian.Uint64(b[8:])
	} else {
		e.flags = uint32(short(0))
		from, keyBytes, valueBytes = short(4), short(8), short(12)
	}
	from += uint64(at)
	if from < uint64(headerBytes+p.count*elemBytes) || from+keyBytes+valueBytes > uint64(len(p.data)) {
		return e, false
	}
	e.key = p.data[from : from+keyBytes]
	e.value = p.data[from+keyBytes : from+keyBytes+valueBytes]
	return e, true
}

// walk visits all keys of all buckets in order, and checks that the pages make a tree.
func (d *database) walk(visit func(bucket, key, value []byte) error) error {
	err := d.tree(d.root, nil, nil, 0, func(e element) error {
		if e.flags != bucketFlag || len(e.value) < 16 {
			return d.damage("the entry %q of its root is not a bucket", e.key)
		}
		bucket := bytes.Clone(e.key)
		leaf := func(e element) error {
			if e.flags != 0 {
				return d.damage("the entry %x of bucket %s has the flags %x, want none", e.key, bucket, e.flags)
			}
			return visit(bucket, e.key, e.value)
		}
		if root := binary.LittleEndian.Uint64(e.value); root != 0 {
			return d.tree(root, nil, nil, 0, leaf)
		}
		inline := page{data: e.value[16:]}
		if len(inline.data) < headerBytes {
			return d.damage("the bucket %s is cut off", bucket)
		}
		inline.flags, inline.count = binary.LittleEndian.Uint16(inline.data[8:]), int(binary.LittleEndian.Uint16(inline.data[10:]))
		if inline.flags != leafFlag {
			return d.damage("the bucket %s has the flags %x, want %x", bucket, inline.flags, leafFlag)
		}
		return d.elements(&inline, nil, nil, leaf)
	})
	if err != nil {
		return err
	}
	return d.checkFreelist()
}

// tree visits the leaves' elements of a page and of those below it. All keys are at least low
// and below high, unless these are nil.
func (d *database) tree(id uint64, low, high []byte, depth int, leaf func(element) error) error {
	if depth > maxDepth {
		return d.damage("its tree is more than %d pages deep at page %d", maxDepth, id)
	}
	p, err := d.reach(id)
	if err != nil {
		return err
	}
	switch {
	case p.flags == leafFlag:
		return d.elements(&p, low, high, leaf)
	case p.flags != branchFlag:
		return d.damage("page %d has the flags %x, want those of a branch (%x) or a leaf (%x)", id, p.flags, branchFlag, leafFlag)
	case p.count == 0:
		return d.damage("page %d is a branch without elements", id)
	}
	var last *element
	below := func(next []byte) error {
		if last == nil {
			return nil
		}
		return d.tree(last.child, last.key, next, depth+1, leaf)
	}
	err = d.elements(&p, low, high, func(e element) error {
		err := below(e.key)
		last = &e
		return err
	})
	if err != nil {
		return err
	}
	return below(high)
}

// elements visits the elements of a page, whose keys must ascend.
func (d *database) elements(p *page, low, high []byte, visit func(element) error) error {
	var before []byte
	for i := range p.count {
		e, ok := p.element(i)
		switch {
		case !ok || len(e.key) == 0:
			return d.damage("element %d of page %d is outside of its page", i, p.id)
		case i > 0 && bytes.Compare(before, e.key) >= 0, i == 0 && low != nil && bytes.Compare(low, e.key) > 0,
			high != nil && bytes.Compare(e.key, high) >= 0:
			return d.damage("element %d of page %d is not in its order", i, p.id)
		}
		before = e.key
		if err := visit(e); err != nil {
			return err
		}
	}
	return nil
}

// checkFreelist checks that no page in use is listed as free. On Linux etcd does not write the
// list.
func (d *database) checkFreelist() error {
	if d.freelist == noFreelist {
		return nil
	}
	p, err := d.reach(d.freelist)
	if err != nil {
		return err
	}
	if p.flags != listFlag {
		return d.damage("page %d has the flags %x, want those of a list of free pages (%x)", p.id, p.flags, listFlag)
	}
	ids, n := p.data[headerBytes:], uint64(p.count)
	if n == 0xFFFF { // the number does not fit into the header
		n, ids = binary.LittleEndian.Uint64(ids), ids[8:]
	}
	if n > uint64(len(ids))/8 {
		return d.damage("page %d lists %d free pages, for which it has no room", p.id, n)
	}
	for i := range n {
		if id := binary.LittleEndian.Uint64(ids[8*i:]); id < 2 || id >= d.pages || d.seen[id] {
			return d.damage("page %d lists page %d as free, which is not", p.id, id)
		}
	}
	return nil
}
