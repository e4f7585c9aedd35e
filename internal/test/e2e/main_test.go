// Package e2e tests Fantasia's programs as they are deployed: real processes of
// its own and of NATS and etcd, killed at will.
package e2e

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/fantasia-hpo/fantasia/internal/test/testseed"
)

// The variables that make the test binary the program that is tuned.
const (
	programVariable = "E2E_PROGRAM" // its value is where evaluations are logged
	slowVariable    = "E2E_SLOWEST" // the longest evaluation, a duration
	stepsVariable   = "E2E_STEPS"   // how many steps it reports before its value
	levelVariable   = "E2E_LEVEL"   // if set, each step reports the value, and not -step
)

// stepTime is how long a step takes: programs may report twenty a second.
const stepTime = 60 * time.Millisecond

func TestMain(m *testing.M) {
	if log := os.Getenv(programVariable); log != "" {
		program := evaluate
		if os.Getenv(epochVariable) != "" {
			program = train
		}
		if err := program(log); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if os.Getenv("FANTASIA_TRIAL") != "" { // a trial that ran all tests would start trials that do, without end
		fmt.Fprintf(os.Stderr, "a trial's program needs %s in its environment\n", programVariable)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// evaluation is one line of the program's log: the start or the end of an attempt.
type evaluation struct {
	Trial   int     `json:"trial"`
	Attempt int     `json:"attempt"`
	Ended   bool    `json:"ended"`
	Value   float64 `json:"value"`
	Process int     `json:"process"`
}

func square(p map[string]float64) float64 { return p["x"]*p["x"] + p["y"]*p["y"] }

// task is what a program was given to evaluate.
type task struct {
	parameters     map[string]float64
	trial, attempt int
}

// readTask reads it from the program's environment.
func readTask() (t task, err error) {
	if err := json.Unmarshal([]byte(os.Getenv("FANTASIA_PARAMETERS")), &t.parameters); err != nil {
		return t, err
	}
	var errTrial, errAttempt error
	t.trial, errTrial = strconv.Atoi(os.Getenv("FANTASIA_TRIAL"))
	t.attempt, errAttempt = strconv.Atoi(os.Getenv("FANTASIA_ATTEMPT"))
	return t, errors.Join(errTrial, errAttempt)
}

// openLog opens a log to which programs append.
func openLog(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
}

// evaluate is the program: it logs its start, takes a random while, logs its end
// and reports the value. Appends of a line are atomic.
func evaluate(path string) (err error) {
	log, err := openLog(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	t, err := readTask()
	if err != nil {
		return err
	}
	slowest, err := time.ParseDuration(os.Getenv(slowVariable))
	if err != nil {
		return err
	}
	e := evaluation{Trial: t.trial, Attempt: t.attempt, Process: os.Getpid()}
	if err := json.NewEncoder(log).Encode(e); err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(testseed.Get(), uint64(t.trial)))
	time.Sleep(slowest/10 + time.Duration(rng.Int64N(int64(slowest))))
	e.Ended, e.Value = true, square(t.parameters)
	steps, _ := strconv.Atoi(os.Getenv(stepsVariable)) // none where it is not set
	for step := 1; step <= steps; step++ {
		loss := -float64(step)
		if os.Getenv(levelVariable) != "" {
			loss = e.Value
		}
		fmt.Printf(`{"fantasia": {"step": %d, "metrics": {"loss": %s}}}`+"\n", step, strconv.FormatFloat(loss, 'g', -1, 64))
		time.Sleep(stepTime)
	}
	if err := json.NewEncoder(log).Encode(e); err != nil {
		return err
	}
	fmt.Printf(`{"fantasia": {"metrics": {"loss": %s}}}`+"\n", strconv.FormatFloat(e.Value, 'g', -1, 64))
	return nil
}

// evaluations reads the log of evaluate.
func evaluations(t testing.TB, path string) []evaluation {
	t.Helper()
	all, err := logged[evaluation](path)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// logged reads the lines of a program's log. One that a kill has cut is left out.
func logged[T any](path string) (all []T, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var l T
		if json.Unmarshal(lines.Bytes(), &l) == nil {
			all = append(all, l)
		}
	}
	return all, nil
}
