package messaging_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/fantasia-hpo/fantasia/messaging"
)

var recordAs = flag.String("earlier.record", "", "write a message of each kind into testdata/earlier/NAME first")

// TestMessagesOfEarlierVersions reads the messages that each released version sent, which
// testdata/earlier keeps. All that they said is understood: written again, it is there, so
// an earlier version reads it too. Until the first release there are none.
func TestMessagesOfEarlierVersions(t *testing.T) {
	if *recordAs != "" {
		recordMessages(t, filepath.Join("testdata", "earlier", *recordAs))
	}
	files, err := filepath.Glob("testdata/earlier/*/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		read := zeroes()[strings.TrimSuffix(filepath.Base(file), ".json")]
		if err := messaging.Decode(data, read); err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		again, err := messaging.Encode(read)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		var was, is any
		if err := json.Unmarshal(data, &was); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(again, &is); err != nil {
			t.Fatal(err)
		}
		if what := missing(was, is, ""); what != "" {
			t.Errorf("%s: %s", file, what)
		}
	}
}

// missing says which part of a JSON value another one lacks; empty if none.
func missing(was, is any, at string) string {
	fields, ok := was.(map[string]any)
	if !ok {
		if reflect.DeepEqual(was, is) {
			return ""
		}
		return fmt.Sprintf("%s was %v, and is %v", at, was, is)
	}
	now, _ := is.(map[string]any)
	for k, v := range fields {
		if what := missing(v, now[k], at+"."+k); what != "" {
			return what
		}
	}
	return ""
}

// recordMessages writes what this version sends.
func recordMessages(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	for name, e := range envelopes() {
		data, err := messaging.Encode(e)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name+".json"), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
