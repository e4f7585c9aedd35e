package scale

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/study"
	"github.com/google/go-cmp/cmp"
)

func TestNeeded(t *testing.T) {
	target := Target{Min: 1, Max: 5, Slots: 4}
	for useful, want := range map[int]int{0: 1, 1: 1, 4: 1, 5: 2, 8: 2, 9: 3, 20: 5, 1000: 5} {
		if got := target.Needed(useful); got != want {
			t.Errorf("%d useful slots need %d pods, want %d", useful, got, want)
		}
	}
	if got := (&Target{Min: 0, Max: 5, Slots: 4}).Needed(0); got != 0 {
		t.Errorf("nothing useful needs %d pods", got)
	}
}

func TestRead(t *testing.T) {
	read := func(text string) (Targets, error) {
		path := filepath.Join(t.TempDir(), "scale.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return Read(path)
	}
	got, err := read("default: {namespace: n, kind: Deployment, name: w, min: 0, max: 3, slots: 2}\ngpu: {namespace: n, kind: StatefulSet, " +
		"name: g, min: 1, max: 1, slots: 1, downAfter: 30s}\n")
	want := Targets{
		"default": {Namespace: "n", Kind: Deployment, Name: "w", Max: 3, Slots: 2, DownAfter: study.Duration(DefaultDownAfter)},
		"gpu":     {Namespace: "n", Kind: StatefulSet, Name: "g", Min: 1, Max: 1, Slots: 1, DownAfter: study.Duration(30 * time.Second)},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	for text, says := range map[string]string{
		"default: {namespace: n, kind: Pod, name: w, max: 3, slots: 2}":                        `kind is "Pod"`,
		"default: {namespace: n, kind: Deployment, name: w, min: 4, max: 3, slots: 2}":         "min is 4 and max 3",
		"default: {namespace: n, kind: Deployment, name: w, max: 3}":                           "slots is 0",
		"default: {kind: Deployment, max: 3, slots: 1}":                                        "namespace is missing",
		"default: {namespace: n, kind: Deployment, name: w, max: 3, slots: 2, replicas: 1}":    "replicas",
		"default: {namespace: n, kind: Deployment, name: w, max: 3, slots: 2, downAfter: -1s}": "downAfter is -1s",
		"- default": "want a map from pools",
	} {
		if _, err := read(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", text, err, says)
		}
	}
}
