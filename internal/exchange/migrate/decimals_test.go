package migrate

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// "1.234" can be a fraction, or 1234 with its thousands apart. The other cells of its column decide. If
// they do not tell, all cells of the file decide. If cells contradict each other, or no cell tells, the file is
// refused, and the error names the row.
func TestDecimals(t *testing.T) {
	spec := specOf(t, "loss", "name: x, type: float, min: 0, max: 5000", `name: c, type: ordinal, values: [1.234, 2.5]`)
	const alike = ": want the same decimal sign in all cells, and no separators of thousands"
	const either = ", which can be a fraction, or a whole number with a separator of thousands: want a decimal point"
	for name, c := range map[string]struct {
		separator string
		rows      []string // x, c and loss
		want      []string
	}{
		"points":           {";", []string{"0.5 1.234 1.234"}, []string{"1.234: map[c:1.234 x:0.5]"}},
		"commas":           {";", []string{"0,5 2,5 1,234"}, []string{"1.234: map[c:2.5 x:0.5]"}},
		"whole":            {";", []string{"3 2,5 1,5", "4 2,5 1000"}, []string{"1.5: map[c:2.5 x:3]", "1000: map[c:2.5 x:4]"}},
		"a zero, exponent": {"\t", []string{"0.123 2.5 1.234e3"}, []string{"1234: map[c:2.5 x:0.123]"}},
		"a point among commas": {";", []string{"0,5 2,5 0,25", "0,5 2,5 1.234"},
			[]string{`cannot be imported: line 3: loss is "1.234", and at line 2 loss is "0,25"` + alike}},
		"a sure point among commas": {";", []string{"0.5 2,5 1", "0,5 2,5 1"},
			[]string{`cannot be imported: line 2: x is "0.5", and at line 3 x is "0,5"` + alike}},
		"another column": {";", []string{"0,5 2,5 1.234"},
			[]string{`cannot be imported: line 2: loss is "1.234", and at line 2 c is "2,5"` + alike}},
		"a metric": {";", []string{"0,5 2,5 1;1.234"},
			[]string{`cannot be imported: line 2: metric:m is "1.234", and at line 2 c is "2,5"` + alike}},
		"each column its own": {";", []string{"0,5 2,5 0.25"}, []string{"0.25: map[c:2.5 x:0.5]"}},
		"a choice's text":     {";", []string{"0,5 1.234 2"}, []string{"2: map[c:1.234 x:0.5]"}},
		"English thousands": {"\t", []string{"0.5 2.5 1,234"},
			[]string{`cannot be imported: line 2: loss is "1,234", and at line 2 x is "0.5"` + alike}},
		"nothing says it":    {";", []string{"1 2.5 2"}, []string{"2: map[c:2.5 x:1]"}},
		"nothing says which": {";", []string{"1,234 2 2"}, []string{`cannot be imported: line 2: x is "1,234"` + either}},
		"both signs": {";", []string{"0,5 2,5 1.234,5", "0,5 2,5 1.234"},
			[]string{`cannot be imported: line 3: loss is "1.234", and at line 2 loss is "1.234,5"` + alike}},
		"several signs": {";", []string{"1 2 1.234.567", "1 2 1.234"},
			[]string{`cannot be imported: line 3: loss is "1.234", and at line 2 loss is "1.234.567"` + alike}},
		"quoted, between commas": {",", []string{`"0,5" 2.5 1`, "1.234 2.5 1"},
			[]string{`cannot be imported: line 3: x is "1.234", and at line 2 x is "0,5"` + alike}},
		"quoted thousands": {",", []string{`1 2.5 "1,234"`, "1 2.5 999.5"},
			[]string{"999.5: map[c:2.5 x:1]", `line 2: loss is "1,234": want a finite number, such as 0.5`}},
		"underscores": {",", []string{"1 2.5 1_000", "0x1p4 2.5 1"}, []string{
			`line 2: loss is "1_000": want a finite number, such as 0.5`, `line 3: parameter x is "0x1p4": want a number from 0 to 5000`}},
	} {
		text := "x c loss;metric:m\n"
		for _, row := range c.rows {
			if !strings.Contains(row, ";") {
				row += ";"
			}
			text += row + "\n"
		}
		text = strings.NewReplacer(" ", c.separator, ";", c.separator).Replace(text)
		if diff := cmp.Diff(c.want, points(CSV(strings.NewReader(text), spec))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	objects := points(JSON(strings.NewReader(`{"x": "0,5", "c": 2.5, "loss": 1} {"x": "1.234", "c": 2.5, "loss": 1}`), spec))
	if diff := cmp.Diff([]string{`cannot be imported: object 2: x is "1.234", and at object 1 x is "0,5"` + alike}, objects); diff != "" {
		t.Errorf("JSON (-want +got):\n%s", diff)
	}
}
