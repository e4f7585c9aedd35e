package report

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Numbers that people print, beyond those that parseFloat reads: with thousands apart, and with a
// comma before their fraction. Since 1,180.3 may also be two numbers, only a group that spells such
// numbers out, as wide does, reads them. Spaces are those of a keyboard, of web pages and of ISO 31-0.
const (
	space3  = `[ \x{a0}\x{202f}'’_]`
	wide    = `[-+]?\d+(?:[.,'’_]\d+|[ \x{a0}\x{202f}]\d{3}\b)*(?:[eEdD][-+]?\d+)?`
	exptail = `(?:[eEdD][-+]?\d+)?`
)

var (
	// wholes finds the numbers of a line, each as long as it can be.
	wholes = longest(`[-+]?(?:\d+\.?\d*` + exptail + `|\.\d+` + exptail + `|\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+,\d+` + exptail +
		`|\d{1,3}(?:\.\d{3})+,\d+|\d{1,3}(?:` + space3 + `\d{3})+(?:[.,]\d+)?)`)
	// english has a point before its fraction, and thousands apart; german a comma, and spaced either.
	english = regexp.MustCompile(`^[-+]?\d{1,3}(?:,\d{3}(?:(?:,\d{3})+|(?:,\d{3})*\.\d+))$`)
	german  = regexp.MustCompile(`^[-+]?\d{1,3}(?:\.\d{3}(?:(?:\.\d{3})+|(?:\.\d{3})*,\d+))$`)
	spaced  = regexp.MustCompile(`^[-+]?\d{1,3}(?:` + space3 + `\d{3})+(?:[.,]\d+)?$`)
	// comma is a fraction for sure: nobody writes thousands so.
	comma = regexp.MustCompile(`^[-+]?(?:0,\d+|\d{4,},\d+|\d+,(?:\d{1,2}|\d{4,}))` + exptail + `$`)
	apart = regexp.MustCompile(space3)
)

func longest(expr string) *regexp.Regexp {
	re := regexp.MustCompile(expr)
	re.Longest()
	return re
}

// wideFloat reads what the group wide has matched, if there is only one way to read it. There are two of
// 1,180.
func wideFloat(text string) (float64, error) {
	switch {
	case english.MatchString(text):
		text = strings.ReplaceAll(text, ",", "")
	case german.MatchString(text):
		text = strings.Replace(strings.ReplaceAll(text, ".", ""), ",", ".", 1)
	case spaced.MatchString(text):
		text = strings.Replace(apart.ReplaceAllString(text, ""), ",", ".", 1)
	case comma.MatchString(text):
		text = strings.Replace(text, ",", ".", 1)
	}
	return parseFloat(text)
}

// wholeNumber returns the number of a line of which line[from:to] is only a part; empty if it is all of
// it and it was read. openStart and openEnd say that the pattern has nothing before or after that part: otherwise its
// author has said where the number begins or ends.
func wholeNumber(line []byte, from, to int, read, openStart, openEnd bool) string {
	for _, at := range wholes.FindAllIndex(line, -1) {
		start, end := at[0], at[1]
		if c := line[start]; c == '-' || c == '+' {
			if before, _ := utf8.DecodeLastRune(line[:start]); unicode.IsLetter(before) || unicode.IsDigit(before) || before == rune(c) {
				start++ // a range, or a dash in a word
			}
		}
		if start > from || end < to || listed(line, start, end) {
			continue
		}
		if end > to && openEnd || start < from && openStart || start == from && end == to && !read {
			return string(line[start:end])
		}
	}
	return ""
}

// listed reports whether more numbers follow or come before without a space, as in 1,2,3.
func listed(line []byte, start, end int) bool {
	digit := func(i int) bool { return i >= 0 && i < len(line) && line[i] >= '0' && line[i] <= '9' }
	mark := func(i int) bool { return i >= 0 && i < len(line) && strings.IndexByte(".,'_", line[i]) >= 0 }
	return mark(end) && digit(end+1) || mark(start-1) && digit(start-2)
}

// cutAdvice says what a pattern has read of a number, and which pattern reads all of it.
func (p *Pattern) cutAdvice(group, part, whole string, line []byte) string {
	text, only := "; it", ""
	if part != whole {
		only = fmt.Sprintf("; metrics.pattern reads only %s of it", strconv.Quote(part))
		text = only + ": all of it"
	}
	if wider := widen(p.expr.String(), group); wider != "" {
		if w, err := NewPattern(wider); err == nil {
			for _, at := range w.expr.FindAllSubmatchIndex(line, -1) {
				i := w.expr.SubexpIndex(group)
				if at[2*i] < 0 || string(line[at[2*i]:at[2*i+1]]) != whole {
					continue
				}
				if _, err := wideFloat(whole); err == nil {
					return text + " can be read with spec.trial." + Setting(wider)
				}
			}
		}
	}
	return only + "; print it without marks between its digits, as in 1180.3, since it can be read in two ways"
}

// widen returns a pattern whose group matches a whole number; empty if the group cannot be found.
func widen(expr, group string) string {
	for _, head := range []string{"(?P<" + group + ">", "(?<" + group + ">"} {
		start := strings.Index(expr, head)
		if start < 0 {
			continue
		}
		depth, class := 0, false
		for i := start; i < len(expr); i++ {
			switch c := expr[i]; {
			case c == '\\':
				i++
			case class:
				class = c != ']'
			case c == '[':
				class = true
				if strings.HasPrefix(expr[i+1:], "]") || strings.HasPrefix(expr[i+1:], "^]") {
					i += 1 + strings.IndexByte(expr[i+1:], ']') // a bracket that is in the class
				}
			case c == '(':
				depth++
			case c == ')':
				if depth--; depth == 0 {
					return expr[:start] + "(?P<" + group + ">" + wide + expr[i:]
				}
			}
		}
	}
	return ""
}
