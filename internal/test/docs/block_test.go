package docs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// root is the repository's, from here.
const root = "../../.."

// block is a fenced block of a document.
type block struct {
	document string
	line     int // of its fence
	language string
	// marks are the words after the language; options those of the form KEY=VALUE.
	marks   []string
	options map[string]string
	text    string
}

func (b *block) is(mark string) bool { return slices.Contains(b.marks, mark) }

// documents are the paths of all documents, from the repository's root.
func documents(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "research/*.md", "research/*/*.md", "examples/*/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range found {
			name, err := filepath.Rel(root, path)
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, name)
		}
	}
	if len(names) < 8 {
		t.Fatalf("found only the documents %q", names)
	}
	return names
}

// readPage returns a file of the repository.
func readPage(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// split returns a document's fenced blocks, and its text without them, with
// empty lines in their place.
func split(t *testing.T, document string) (blocks []block, prose string) {
	t.Helper()
	var b *block
	var rest strings.Builder
	for i, line := range strings.Split(readPage(t, document), "\n") {
		info, fence := strings.CutPrefix(line, "```")
		switch {
		case fence && b == nil:
			words := append(strings.Fields(info), "")
			b = &block{document: document, line: i + 1, language: words[0], options: map[string]string{}}
			for _, word := range words[1 : max(2, len(words))-1] {
				if key, value, ok := strings.Cut(word, "="); ok {
					b.options[key] = value
				} else {
					b.marks = append(b.marks, word)
				}
			}
		case fence:
			blocks = append(blocks, *b)
			b = nil
		case b != nil:
			b.text += line + "\n"
			line = ""
		}
		if fence {
			line = ""
		}
		rest.WriteString(line + "\n")
	}
	if b != nil {
		t.Fatalf("%s:%d: the block has no end", document, b.line)
	}
	return blocks, rest.String()
}
