package study

import (
	"errors"
	"fmt"
	"strings"
)

// The words in ${…} of a command other than names of parameters.
const (
	wordArgs      = "args"
	wordOverrides = "overrides"
	wordFile      = "file"
)

// piece is a part of a command's element: text, or the word of a ${word}.
type piece struct{ text, word string }

// splitElement splits a command's element at its ${words}; $${ stands for the
// characters ${.
func splitElement(element string) ([]piece, error) {
	var pieces []piece
	var text strings.Builder
	for rest := element; rest != ""; {
		switch {
		case strings.HasPrefix(rest, "$${"):
			text.WriteString("${")
			rest = rest[len("$${"):]
		case strings.HasPrefix(rest, "${"):
			word, after, ok := strings.Cut(rest[len("${"):], "}")
			if !ok {
				return nil, fmt.Errorf("%q has a ${ without its }: write $${ for the characters ${", element)
			}
			if text.Len() > 0 {
				pieces = append(pieces, piece{text: text.String()})
				text.Reset()
			}
			if word == "" {
				return nil, fmt.Errorf("%q has an empty ${}: write a parameter's name, args, overrides or file", element)
			}
			pieces = append(pieces, piece{word: word})
			rest = after
		default:
			text.WriteByte(rest[0])
			rest = rest[1:]
		}
	}
	if text.Len() > 0 {
		pieces = append(pieces, piece{text: text.String()})
	}
	for _, p := range pieces {
		if (p.word == wordArgs || p.word == wordOverrides) && len(pieces) > 1 {
			return nil, fmt.Errorf("${%s} is part of %q: it stands for several arguments, so make it an element of its own", p.word, element)
		}
	}
	return pieces, nil
}

// ReservedWord reports whether ${word} has a meaning of its own in a command, so that
// no parameter may have that name.
func ReservedWord(word string) bool {
	return word == wordArgs || word == wordOverrides || word == wordFile
}

// CommandWords returns the words of the ${words} in a command's element. The error
// describes an invalid element.
func CommandWords(element string) ([]string, error) {
	pieces, err := splitElement(element)
	if err != nil {
		return nil, err
	}
	var words []string
	for _, p := range pieces {
		if p.word != "" {
			words = append(words, p.word)
		}
	}
	return words, nil
}

// wordsOf returns the words that the texts use.
func wordsOf(texts []string) (map[string]bool, error) {
	named := make(map[string]bool)
	for _, text := range texts {
		words, err := CommandWords(text)
		if err != nil {
			return nil, err
		}
		for _, word := range words {
			named[word] = true
		}
	}
	return named, nil
}

// Expander expands the ${words} of related texts: the elements of a command, or the
// strings of a document such as a Kubernetes manifest. It is safe for concurrent use.
type Expander struct {
	order []string
	named map[string]bool
	point Point
	words map[string]string
}

// NewExpander returns an Expander for a point. texts are all texts that will be
// expanded: ${args} omits the parameters that any of them names. words are additional
// words, which take precedence over parameters.
func NewExpander(texts, order []string, point Point, words map[string]string) (*Expander, error) {
	named, err := wordsOf(texts)
	if err != nil {
		return nil, err
	}
	return &Expander{order: order, named: named, point: point, words: words}, nil
}

// Expand expands one text: to one text or, if it is ${args} or ${overrides}, to any
// number. It fails if a ${name} is neither a word nor an active parameter.
func (x *Expander) Expand(text string) ([]string, error) {
	pieces, err := splitElement(text)
	if err != nil {
		return nil, err
	}
	if len(pieces) == 1 && (pieces[0].word == wordArgs || pieces[0].word == wordOverrides) {
		return otherArguments(pieces[0].word, x.order, x.named, x.point), nil
	}
	var b strings.Builder
	for _, p := range pieces {
		if p.word == "" {
			b.WriteString(p.text)
		} else if word, ok := x.words[p.word]; ok {
			b.WriteString(word)
		} else if value, ok := x.point[p.word]; ok {
			b.WriteString(Format(value))
		} else {
			return nil, fmt.Errorf("the trial has no parameter %q; it has %s", p.word, strings.Join(x.order, ", "))
		}
	}
	return []string{b.String()}, nil
}

// ExpandArgument is Expand for an argument of a program whose author did not write the
// study. It refuses a text value that would become a flag: an argument that begins with
// ${name} must not begin with a dash, unless it is a number's.
func (x *Expander) ExpandArgument(text string) ([]string, error) {
	argv, err := x.Expand(text)
	if err != nil || len(argv) != 1 || !strings.HasPrefix(argv[0], "-") {
		return argv, err
	}
	pieces, err := splitElement(text)
	if err != nil {
		return nil, err
	}
	first := pieces[0].word
	value, ok := x.point[first]
	if _, word := x.words[first]; !ok || word {
		return argv, nil // its author wrote the dash, or it is no parameter
	}
	switch value.(type) {
	case float64, int64:
		return argv, nil
	}
	return nil, fmt.Errorf("the value %q of %s would become a flag: write the argument as --%s=${%s}, or let the program read "+
		"FANTASIA_PARAMETERS",
		argv[0], first, first, first)
}

// ExpandCommand expands a study's command to the argv for a point. ${name} is the value
// of that parameter, which must be active; ${file} is the given file; $${ is a literal
// ${. An element ${args} becomes one element --name=value for each active parameter, in
// the given order, that no ${name} names. ${overrides} is the same without the dashes.
// No shell is involved.
func ExpandCommand(template, order []string, point Point, file string) ([]string, error) {
	return expandCommand(template, order, point, file, (*Expander).Expand)
}

// ExpandForeignCommand is ExpandCommand for a command whose author did not write the
// study, such as a worker's own. It expands each element by ExpandArgument.
func ExpandForeignCommand(template, order []string, point Point, file string) ([]string, error) {
	return expandCommand(template, order, point, file, (*Expander).ExpandArgument)
}

func expandCommand(template, order []string, point Point, file string, expand func(*Expander, string) ([]string, error)) ([]string, error) {
	if len(template) == 0 {
		return nil, errors.New("the command is empty: give the program and its arguments")
	}
	x, err := NewExpander(template, order, point, map[string]string{wordFile: file})
	if err != nil {
		return nil, err
	}
	argv := make([]string, 0, len(template)+len(order))
	for i, element := range template {
		texts, err := expand(x, element)
		if err != nil {
			return nil, fmt.Errorf("command element %d, %q: %w", i, element, err)
		}
		argv = append(argv, texts...)
	}
	return argv, nil
}

// otherArguments expands ${args} or ${overrides}.
func otherArguments(word string, order []string, named map[string]bool, point Point) []string {
	dashes := ""
	if word == wordArgs {
		dashes = "--"
	}
	var argv []string
	for _, name := range order {
		if value, ok := point[name]; ok && !named[name] {
			argv = append(argv, dashes+name+"="+Format(value))
		}
	}
	return argv
}
