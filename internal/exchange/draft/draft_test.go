package draft

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/file"
)

func TestRead(t *testing.T) {
	tests := []struct {
		name, argv, want string
		lines            []string
	}{
		{"three ways of writing", "python3 train.py --lr=0.1 -C 5 depth=3", "python3 train.py --lr=${lr} -C ${C} depth=${depth}", []string{
			"{name: lr, type: float, min: 0.001, max: 1, scale: log}",
			"{name: C, type: int, min: 1, max: 20, scale: log}",
			"{name: depth, type: int, min: 1, max: 12, scale: log}",
		}},
		{"kinds of numbers", "p a=0 b=0.0 c=0.5 d=-1.5 e=2.5 f=1e-6", "p a=${a} b=${b} c=${c} d=${d} e=${e} f=${f}", []string{
			"{name: a, type: int, min: 0, max: 10}",
			"{name: b, type: float, min: 0, max: 1}",
			"{name: c, type: float, min: 0, max: 1}",
			"{name: d, type: float, min: -3, max: 0}",
			"{name: e, type: float, min: 0.25, max: 25, scale: log}",
			"{name: f, type: float, min: 1e-08, max: 0.0001, scale: log}",
		}},
		{"booleans", "p --bias=true --gate=False", "p --bias=${bias} --gate=${gate}", []string{
			"{name: bias, type: bool}", `{name: gate, type: categorical, values: ["True", "False"]}`,
		}},
		{"what stays", "p --seed=3 --epochs 10 n_jobs=4 --patience=-1 --data=/d --opt adam --far=inf x=1",
			"p --seed=3 --epochs 10 n_jobs=4 --patience=-1 --data=/d --opt adam --far=inf x=${x}",
			[]string{"{name: x, type: int, min: 1, max: 4, scale: log}"}},
		{"flags without values", "p --fast --lr 0.1 --slow", "p --fast --lr ${lr} --slow",
			[]string{"{name: lr, type: float, min: 0.001, max: 1, scale: log}"}},
		{"the same twice", "p a=1 a=2", "p a=${a} a=2", []string{"{name: a, type: int, min: 1, max: 4, scale: log}"}},
		{"a group of Hydra", "p model.lr=0.1", "p model.lr=${model.lr}",
			[]string{"{name: model.lr, type: float, min: 0.001, max: 1, scale: log}"}},
		{"the characters of a value", "p ${x} n=${y} a=1", "p $${x} n=$${y} a=${a}",
			[]string{"{name: a, type: int, min: 1, max: 4, scale: log}"}},
		{"nothing", "p", "p", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := Read(strings.Fields(tt.argv))
			var lines []string
			for _, s := range c.Tuned() {
				lines = append(lines, s.Line)
			}
			if diff := cmp.Diff(tt.lines, lines); diff != "" {
				t.Errorf("parameters (-want +got):\n%s", diff)
			}
			if got := strings.Join(c.Argv, " "); got != tt.want {
				t.Errorf("command %s, want %s", got, tt.want)
			}
		})
	}
}

// The file is a study, whose first trial is the command line itself.
func TestFile(t *testing.T) {
	for _, argv := range [][]string{
		{"python3", "train.py", "--lr=0.1", "--opt", "adam", "--bias=true", "--gate=True", "a b"},
		{"./p", "model.lr=1e-3", "no=5", "-y", "3", "it's=0.5"},
	} {
		c := Read(argv)
		text := c.File(Study{
			Name: Name(argv), Trials: 12, Workdir: "a b", Pattern: `it's (?P<loss>\S+) (?P<val_acc>\S+)`,
			Objectives: []study.Objective{{Metric: "loss", Direction: study.Minimize}, {Metric: "val/acc", Direction: study.Maximize}},
		})
		s, err := file.Parse(text)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		values := map[string]any{}
		order := []string{}
		for _, p := range s.Spec.Parameters {
			v, ok := s.Spec.Initial[0][p.Name]
			if !ok {
				t.Errorf("the first trial lacks %s", p.Name)
			}
			values[p.Name] = v
			order = append(order, p.Name)
		}
		got, err := study.ExpandCommand(s.Spec.Trial.Command, order, values, "")
		if err != nil || !slices.Equal(got, plain(argv)) {
			t.Errorf("the first trial runs %q, want %q (%v)", got, argv, err)
		}
		if s.Spec.Trial.Workdir != "a b" || s.Spec.Budget.MaxTrials != 12 || len(s.Spec.Objectives()) != 2 {
			t.Errorf("the study is\n%s", text)
		}
	}
}

// plain writes floats as a study does.
func plain(argv []string) []string {
	return strings.Split(strings.ReplaceAll(strings.Join(argv, "\x00"), "1e-3", "0.001"), "\x00")
}

func TestName(t *testing.T) {
	for argv, want := range map[string]string{
		"python3 -u src/Train_Net.py --lr=1": "train-net", "./a.out x=1": "a-out", "Rscript fit.R": "fit", "java -jar x/App.jar": "app",
		"python3 -m pkg.train": "python3", "/": "study", strings.Repeat("a", 80): strings.Repeat("a", 63), "sh run.sh conf.py=3": "run",
	} {
		if got := Name(strings.Fields(argv)); got != want {
			t.Errorf("%s is named %s, want %s", argv, got, want)
		}
	}
}

func TestMetrics(t *testing.T) {
	got := Metrics("epoch 1/3 - loss: 0.5 - val_loss=nan\n{\"acc\": .5, 'f1': 1e-3, \"name\": \"x\"} time: 3s loss: 0.25\n")
	if diff := cmp.Diff([]string{"loss", "val_loss", "f1", "time"}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
