package study

import (
	"errors"
	"fmt"
	"strings"
)

// The words that a command's ${…} can hold beside the names of parameters.
const (
	wordArgs      = "args"
	wordOverrides = "overrides"
	wordFile      = "file"
)

// piece is a part of an element of a command: text, or the word of a ${word}.
type piece struct{ text, word string }

// splitElement splits an element of a command at its ${words}; $${ stands for
// the characters ${.
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
			return nil, fmt.Errorf("${%s} is inside of %q: it stands for several arguments and must be an element of its own", p.word, element)
		}
	}
	return pieces, nil
}

// splitCommand splits every element, and tells which parameters the template
// names.
func splitCommand(template []string) (elements [][]piece, named map[string]bool, err error) {
	named = make(map[string]bool)
	for _, element := range template {
		pieces, err := splitElement(element)
		if err != nil {
			return nil, nil, err
		}
		elements = append(elements, pieces)
		for _, p := range pieces {
			if p.word != "" {
				named[p.word] = true
			}
		}
	}
	return elements, named, nil
}

// ExpandCommand is the argv that a study's command becomes for a point.
// ${name} is the value of that parameter, which must be active; ${file} is the
// file given; $${ is literal. An element ${args} becomes one element
// --name=value for each active parameter, in the order given, that no ${name}
// names; ${overrides} the same without the dashes. Nothing passes through a
// shell.
func ExpandCommand(template, order []string, point Point, file string) ([]string, error) {
	if len(template) == 0 {
		return nil, errors.New("the command is empty: give the program and its arguments")
	}
	elements, named, err := splitCommand(template)
	if err != nil {
		return nil, err
	}
	argv := make([]string, 0, len(template)+len(order))
	for i, pieces := range elements {
		if len(pieces) == 1 && (pieces[0].word == wordArgs || pieces[0].word == wordOverrides) {
			argv = append(argv, otherArguments(pieces[0].word, order, named, point)...)
			continue
		}
		var b strings.Builder
		for _, p := range pieces {
			switch value, ok := point[p.word]; {
			case p.word == "":
				b.WriteString(p.text)
			case p.word == wordFile:
				b.WriteString(file)
			case ok:
				b.WriteString(Format(value))
			default:
				return nil, fmt.Errorf("command element %d, %q: the trial has no parameter %q; it has %s",
					i, template[i], p.word, strings.Join(order, ", "))
			}
		}
		argv = append(argv, b.String())
	}
	return argv, nil
}

// otherArguments is what ${args} or ${overrides} becomes.
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
