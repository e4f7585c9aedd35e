package damage

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
)

// groups are the kinds of files, with how often each is damaged.
var groups = []struct {
	name   string
	weight int
	has    func(path string) bool
}{
	{"database", 9, func(p string) bool { return strings.HasSuffix(p, "snap/db") }},
	{"log", 6, func(p string) bool { return strings.HasSuffix(p, ".wal") }},
	{"NATS", 3, func(p string) bool { return strings.HasPrefix(p, "nats/data/") }},
	{"results", 1, func(p string) bool { return !strings.Contains(p, "/") && p != "lock" }},
	{"others", 1, func(p string) bool {
		return strings.HasPrefix(p, "worker/") || p == "lock" || strings.HasPrefix(p, "etcd/") && !strings.HasPrefix(p, "etcd/data") ||
			p == "nats/lock"
	}},
}

const block = 4096

// hit is a damage.
type hit struct{ group, kind, path, where string }

// String says what was damaged.
func (h hit) String() string { return fmt.Sprintf("%s of %s %s", h.kind, h.path, h.where) }

// damage damages one of the files.
func (l *lab) damage(random *rand.Rand, all files) hit {
	group := pick(random)
	var paths []string
	for _, path := range slices.Sorted(maps.Keys(all)) {
		if groups[group].has(path) && len(all[path]) > 0 {
			paths = append(paths, path)
		}
	}
	if len(paths) == 0 {
		l.t.Fatalf("the state has no %s", groups[group].name)
	}
	h := hit{group: groups[group].name, path: paths[random.IntN(len(paths))]}
	content := slices.Clone(all[h.path])
	used := blocksOf(content)
	at := used[random.IntN(len(used))]*block + random.IntN(block)
	at = min(at, len(content)-1)
	switch random.IntN(5) {
	case 0, 1:
		bit := random.IntN(8)
		content[at] ^= 1 << bit
		h.kind, h.where = "flipped bit", fmt.Sprintf("at byte %d, bit %d", at, bit)
	case 2: // in text, such as a record's
		if text := bytes.IndexByte(content[at:], '"'); text >= 0 {
			at += text
		}
		content[at] ^= 2
		h.kind, h.where = "flipped bit", fmt.Sprintf("at byte %d, bit 1", at)
	case 3:
		content = content[:at]
		h.kind, h.where = "cut", fmt.Sprintf("at byte %d", at)
	case 4:
		from := at / block * block
		clear(content[from:min(from+block, len(content))])
		h.kind, h.where = "zeroed page", fmt.Sprintf("at byte %d", from)
	}
	all[h.path] = content
	return h
}

// pick draws a group by its weight.
func pick(random *rand.Rand) int {
	sum := 0
	for _, g := range groups {
		sum += g.weight
	}
	n := random.IntN(sum)
	for i, g := range groups {
		if n -= g.weight; n < 0 {
			return i
		}
	}
	return 0
}

// blocksOf returns the blocks of a file that are not all zero; the first one if all are.
func blocksOf(content []byte) []int {
	var used []int
	for i := 0; i < len(content); i += block {
		if part := content[i:min(i+block, len(content))]; len(bytes.Trim(part, "\x00")) > 0 {
			used = append(used, i/block)
		}
	}
	if len(used) == 0 {
		used = []int{0}
	}
	return used
}

// table counts outcomes by the kind of file and of damage.
type table map[[2]string]map[string]int

func (t *table) add(h hit, outcome string) {
	if *t == nil {
		*t = table{}
	}
	key := [2]string{h.group, h.kind}
	if (*t)[key] == nil {
		(*t)[key] = map[string]int{}
	}
	(*t)[key][outcome]++
}

// String is the table as Markdown.
func (t table) String() string {
	outcomes := []string{"same", "error", "wrong", "crash", "slow", "unclear"}
	var b strings.Builder
	b.WriteString("| file | damage | same result | error that names a file | another result | crash | slow | unclear error |\n| --- | --- " +
		"| --- | --- | --- | --- | --- | --- |\n")
	keys := slices.SortedFunc(maps.Keys(t), func(a, b [2]string) int { return strings.Compare(a[0]+a[1], b[0]+b[1]) })
	for _, key := range keys {
		fmt.Fprintf(&b, "| %s | %s |", key[0], key[1])
		for _, o := range outcomes {
			fmt.Fprintf(&b, " %d |", t[key][o])
		}
		b.WriteByte('\n')
	}
	return b.String()
}
