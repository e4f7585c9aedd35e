package local_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/fantasia-hpo/fantasia/internal/app/inject"
	"github.com/fantasia-hpo/fantasia/study"
	"go.uber.org/goleak"
)

// streamVariable makes the test binary act as a program in stream mode.
const streamVariable = "LOCAL_TEST_STREAM"

func TestMain(m *testing.M) {
	if os.Getenv(streamVariable) != "" {
		stream()
		return
	}
	goleak.VerifyTestMain(m)
}

// stream answers each trial at once: x squared.
func stream() {
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var line struct {
			Fantasia struct {
				Trial      int                `json:"trial"`
				Parameters map[string]float64 `json:"parameters"`
			} `json:"fantasia"`
		}
		if err := json.Unmarshal(in.Bytes(), &line); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		x := line.Fantasia.Parameters["x"]
		fmt.Printf(`{"fantasia": {"trial": %d, "metrics": {"loss": %g}, "done": true}}`+"\n", line.Fantasia.Trial, x*x)
	}
}

// parse returns the study of a file's text; COMMAND in the text becomes the test binary
// as the program.
func parse(t testing.TB, format string, args ...any) *study.Study {
	t.Helper()
	s, err := inject.ParseStudy("study.yaml", fmt.Appendf(nil, format, args...))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const streamStudy = `
apiVersion: fantasia.dev/v1
kind: Study
metadata: {name: square}
spec:
  objective: {metric: loss, direction: minimize}
  parameters: [{name: x, type: float, min: -1, max: 1}, {name: y, type: float, min: -1, max: 1}]
  algorithm: {name: %s, seed: 1}
  budget: {maxTrials: %d}
  parallelism: %d
  trial: {command: [%s], mode: stream, env: {` + streamVariable + `: "1"}}
`

func self(t testing.TB) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func stateDir(t testing.TB) string { return filepath.Join(t.TempDir(), "state") }
