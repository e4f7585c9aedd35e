package migrate

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/study"
)

// specOf returns a study of the parameters, each a line of YAML.
func specOf(t testing.TB, metric string, parameters ...string) *study.Spec {
	t.Helper()
	return specFrom(t, fmt.Sprintf(`
apiVersion: fantasia.dev/v1
kind: Study
metadata: {name: s}
spec:
  objective: {metric: %q, direction: minimize}
  parameters:
    - {%s}
  budget: {maxTrials: 10}
`, metric, strings.Join(parameters, "}\n    - {")))
}

// points returns each trial that was read, as "value: point", and why others were left out.
func points(trials []Evaluated, skipped []Skipped, err error) []string {
	var lines []string
	for _, one := range trials {
		lines = append(lines, fmt.Sprintf("%v: %v", one.Values.First(), map[string]any(one.Point)))
	}
	for _, one := range skipped {
		lines = append(lines, one.Place+": "+one.Why)
	}
	if err != nil {
		lines = append(lines, err.Error())
	}
	return lines
}

// A choice is the one with the same text. Other spellings are accepted of numbers and
// booleans only.
func TestChoices(t *testing.T) {
	spec := specOf(t, "loss",
		`name: version, type: categorical, values: ["3.1", "3.10"]`,
		`name: size, type: ordinal, values: [1, 2.5, 9007199254740991, "9007199254740993"]`,
		`name: flag, type: categorical, values: [true, false, "None"]`)
	for _, c := range []struct{ row, want string }{
		{"3.1,1,true", "0: map[flag:true size:1 version:3.1]"},
		{"3.10,2.50,True", "0: map[flag:true size:2.5 version:3.10]"},
		{"3.10,9007199254740993,FALSE", "0: map[flag:false size:9007199254740993 version:3.10]"},
		{"3.1,01.0,None", "0: map[flag:None size:1 version:3.1]"},
		{"03.1,1,true", `line 2: parameter version is "03.1": want 3.1, 3.10`},
		{"3.100,1,true", `line 2: parameter version is "3.100": want 3.1, 3.10`},
		{"3.1,9007199254740993.0,true", `line 2: parameter size is "9007199254740993.0": want 1, 2.5, 9007199254740991, 9007199254740993`},
		{"3.1,1,1", `line 2: parameter flag is "1": want true, false, None`},
	} {
		if got := points(CSV(strings.NewReader("version,size,flag,loss\n"+c.row+",0\n"), spec)); !slices.Equal(got, []string{c.want}) {
			t.Errorf("%s: %q, want %q", c.row, got, c.want)
		}
	}
	const object = `{"version": "3.10", "size": 9007199254740993, "flag": true, "loss": 0}`
	if got, want := points(JSON(strings.NewReader(object), spec)),
		"0: map[flag:true size:9007199254740993 version:3.10]"; !slices.Equal(got, []string{want}) {
		t.Errorf("%s: %q, want %q", object, got, want)
	}
}

// Tables are read as pandas, Optuna, spreadsheets and people write them.
func TestTables(t *testing.T) {
	plain := specOf(t, "loss", "name: x, type: float, min: 0, max: 9", `name: kind, type: categorical, values: [a, b c, ""]`,
		"name: deep, type: bool, when: {kind: [a]}")
	empty := specOf(t, "loss", `name: kind, type: categorical, values: [a, ""]`,
		`name: rest, type: categorical, values: ["", z], when: {kind: [a]}`)
	named := specOf(t, "loss", `name: state, type: categorical, values: ["on", "off"]`, "name: value, type: int, min: 1, max: 9")
	same := specOf(t, "x", "name: x, type: float, min: 0, max: 9")
	const first = "2: map[deep:true kind:a x:0.5]"
	wide := utf16.Encode([]rune("\ufeffx\tkind\tdeep\tloss\n0,5\ta\tTrue\t2\n"))
	var little, big bytes.Buffer
	for _, unit := range wide {
		little.Write([]byte{byte(unit), byte(unit >> 8)})
		big.Write([]byte{byte(unit >> 8), byte(unit)})
	}
	for name, c := range map[string]struct {
		spec *study.Spec
		text string
		want []string
	}{
		"byte-order mark":       {plain, "\ufeffx,kind,deep,loss\r\n0.5,a,True,2\r\n", []string{first}},
		"UTF-16, little-endian": {plain, little.String(), []string{first}},
		"UTF-16, big-endian":    {plain, big.String(), []string{first}},
		"semicolons":            {plain, "x;kind;deep;loss\n0,5;a;TRUE;2\n0,5;b c;;1e-3\n", []string{first, "0.001: map[kind:b c x:0.5]"}},
		"thousands": {plain, "x;kind;deep;loss\n0,5;a;TRUE;1.234,5\n",
			[]string{`line 2: loss is "1.234,5": want a finite number, such as 0.5`}},
		"decimal commas": {plain, "x,kind,deep,loss\n\"0,5\",a,TRUE,2\n",
			[]string{`line 2: parameter x is "0,5": want a number from 0 to 9`}},
		"commas not quoted": {plain, "x,kind,deep,loss\n0,5,a,TRUE,2\n",
			[]string{"cannot be imported: line 2 has 5 cells, the header 4: want as many, and quotes around a cell with a separator in it"}},
		"tabs":               {plain, "x\tkind\tdeep\tloss\n0.5\ta\ttrue\t2\n", []string{first}},
		"spaces":             {plain, "x, kind, deep, loss\n0.5, \"a\", true, 2\n .5 , b c, , 3\n", []string{first, "3: map[kind:b c x:0.5]"}},
		"spaces in a header": {plain, "x ,kind ,deep , loss\n0.5,a ,true,2\n", []string{first}},
		"empty rows":         {plain, "x;kind;deep;loss\n0.5;a;true;2\n;;;\n;;;\n", []string{first}},
		"empty choices": {empty, "kind,rest,loss\n,,3\na,,4\na,z,5\n,z,6\n",
			[]string{"3: map[kind:]", "4: map[kind:a rest:]", "5: map[kind:a rest:z]",
				"line 5: not a point of the space: parameter rest: it is not active here: rest is active only where kind is one of a"}},
		"NaN of pandas": {plain, "x,kind,deep,loss\n1,,nan,3\n1,b c,NaN,4\n1,a,NaN,5\nNaN,a,true,6\n1,a,true,NaN\n",
			[]string{"3: map[kind: x:1]", "4: map[kind:b c x:1]",
				"line 4: not a point of the space: parameter deep is missing: true or false",
				"line 5: not a point of the space: parameter x is missing: a number from 0 to 9",
				`line 6: loss is "NaN": want a finite number, such as 0.5`}},
		"infinity": {plain, "x,kind,deep,loss,metric:m\n1,a,true,inf,1\n0.5,a,true,2,inf\n",
			[]string{first, `line 2: loss is "inf": want a finite number, such as 0.5`}},
		"an enumeration": {plain, "x,kind,deep,value,state\n0.5,a,1,2,TrialState.COMPLETE\n0.5,a,true,2,TrialState.PRUNED\n",
			[]string{first, "line 3: its state is TrialState.PRUNED: only completed trials have a value"}},
		"names of columns": {named, "state,value,loss\non,3,0.5\n", []string{"0.5: map[state:on value:3]"}},
		"with prefixes": {named, "state,value,params_state,params_value\nCOMPLETE,0.5,on,3\nFAIL,0.5,on,3\n",
			[]string{"0.5: map[state:on value:3]", "line 3: its state is FAIL: only completed trials have a value"}},
		"only one value":     {named, "state,value\non,3\n", []string{"cannot be imported: no column is the parameter value, got state, value"}},
		"metric a parameter": {same, "x,value\n1,2\n", []string{"2: map[x:1]"}},
		"both the metric":    {same, "parameter:x,x\n1,2\n", []string{"2: map[x:1]"}},
		"a column twice": {plain, "x,x,kind,deep,loss\n",
			[]string{"cannot be imported: the columns x and x are both the parameter x: want one"}},
		"two columns": {plain, "x,params_x,parameter:x,kind,deep,loss\n",
			[]string{"cannot be imported: the columns params_x and parameter:x are both the parameter x: want one"}},
		"two values": {plain, "x,kind,deep,loss,loss\n", []string{"cannot be imported: two columns are named loss: want one"}},
	} {
		got := points(CSV(strings.NewReader(c.text), c.spec))
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// A choice keeps its returns and newlines, and a text from Windows can be one with newlines.
func TestReturns(t *testing.T) {
	spec := specOf(t, "loss", `name: c, type: categorical, values: ["a\r\nb", "a\nb", "c\nd"]`)
	for text, want := range map[string]string{"a\r\nb": "0: map[c:a\r\nb]", "a\nb": "0: map[c:a\nb]", "c\r\nd": "0: map[c:c\nd]"} {
		for _, end := range []string{"\n", "\r\n"} {
			if got := points(CSV(strings.NewReader("c,loss"+end+`"`+text+`",0`+end), spec)); !slices.Equal(got, []string{want}) {
				t.Errorf("%q: %q, want %q", text, got, want)
			}
		}
	}
}

// A long text is not repeated in the reasons for leaving out trials.
func TestLongTexts(t *testing.T) {
	long := strings.Repeat("ü", 1<<16)
	spec := specOf(t, "loss", "name: x, type: float, min: 0, max: 9")
	for _, text := range []string{"x,loss,state\n" + long + ",1,\n1," + long + ",\n1,1," + long + "\n"} {
		_, skipped, err := CSV(strings.NewReader(text), spec)
		if err != nil || len(skipped) != 3 {
			t.Fatalf("%v, %v", skipped, err)
		}
		for _, one := range skipped {
			if len(one.Why) > 2*maxShown {
				t.Errorf("%s: a reason of %d bytes", one.Place, len(one.Why))
			}
		}
	}
}

// The files have the structure of public ones, with other names and numbers. Each is imported,
// or it is clear why not.
func TestFilesOfOthers(t *testing.T) {
	for name, c := range map[string]struct {
		spec *study.Spec
		want []string
	}{
		"optuna-conditional.csv": {specOf(t, "accuracy", "name: model, type: categorical, values: [bayes, tree, svm]",
			"name: tree_depth, type: int, min: 1, max: 30, when: {model: [tree]}",
			"name: tree_rule, type: categorical, values: [gini, entropy], when: {model: [tree]}",
			"name: svm_c, type: float, min: 0.01, max: 100, scale: log, when: {model: [svm]}",
			"name: svm_kernel, type: categorical, values: [poly, rbf], when: {model: [svm]}"),
			[]string{"0.41: map[model:bayes]", "0.73: map[model:tree tree_depth:16 tree_rule:gini]",
				"0.67: map[model:svm svm_c:0.113 svm_kernel:poly]",
				"line 5: its state is FAIL: only completed trials have a value"}},
		"optuna-dictionary.csv": {specOf(t, "accuracy", "name: model, type: categorical, values: [bayes, tree]"),
			[]string{"cannot be imported: no column is the parameter model, got trial_number, params, value"}},
		"optuna-renamed.csv": {specOf(t, "loss", "name: rate, type: float, min: 1e-6, max: 1, scale: log",
			"name: optimizer, type: categorical, values: [Adam, Ranger]", "name: depth, type: int, min: 1, max: 4"),
			[]string{"40.475: map[depth:1 optimizer:Adam rate:7.5e-05]", "25.735: map[depth:4 optimizer:Ranger rate:0.00034]"}},
		"wandb-runs.csv": {specOf(t, "test_acc", "name: bits, type: ordinal, values: [2, 4, 6]", "name: amp, type: bool"),
			[]string{"10.3: map[amp:false bits:2]", "85.7: map[amp:true bits:6]",
				"line 4: its state is crashed: only completed trials have a value"}},
		"wandb-slashes.csv": {specOf(t, "train/clean_f1", "name: probability, type: float, min: 0, max: 1"),
			[]string{"0.64: map[probability:0.2]", "0.62: map[probability:1]"}},
		"wandb-chart.csv": {specOf(t, "loss", "name: step, type: int, min: 1, max: 99"),
			[]string{"cannot be imported: no column is the objective: want one named value or loss, got step, algo: A - loss, algo: A - " +
				"loss__MIN, algo: A - loss__MAX, algo: B - loss, algo: B - loss__MIN, algo: B - loss__MAX"}},
		"tuning-log.csv": {specOf(t, "best_acc", "name: model, type: categorical, values: [vit, cnn]",
			"name: rate, type: float, min: 1e-5, max: 1", "name: strong, type: categorical, values: [true, false]"),
			[]string{"0.273: map[model:vit rate:0.0003 strong:false]", "0.8433: map[model:cnn rate:0.0003 strong:true]",
				"line 3: it has no value: want value or best_acc"}},
		"search-params.jsonl": {specOf(t, "success_rate", "name: batch_size, type: fixed, value: 512",
			"name: learning_rate, type: float, min: 1e-5, max: 1", "name: loss, type: categorical, values: [entropy, l2]"),
			[]string{"0.08: map[batch_size:512 learning_rate:0.001 loss:entropy]", "0.3: map[batch_size:512 learning_rate:0.01 loss:entropy]"}},
		"sweep-nested.jsonl": {specOf(t, "avg_score", "name: scale, type: float, min: 0, max: 9"),
			[]string{"object 1: not a point of the space: parameter scale is missing: a number from 0 to 9",
				"object 2: not a point of the space: parameter scale is missing: a number from 0 to 9"}},
		"backtests.jsonl": {specOf(t, "ratio", "name: volatility, type: float, min: 0, max: 9"),
			[]string{"object 1: it has no value: want value or ratio", "object 2: it has no value: want value or ratio"}},
	} {
		content, err := os.ReadFile(filepath.Join("testdata", "tables", name))
		if err != nil {
			t.Fatal(err)
		}
		read := CSV
		if filepath.Ext(name) == ".jsonl" {
			read = JSON
		}
		if diff := cmp.Diff(c.want, points(read(bytes.NewReader(content), c.spec))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
