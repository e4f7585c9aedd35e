package chaos

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/study"
)

// family is a kind of study, of which one runs at a time. When it has ended, the next one
// begins.
type family struct {
	name      string
	algorithm string
	// parallelism is how many trials are open at once.
	parallelism int
	// script is what a trial's program does between its first and its last line; "" if
	// clients of the API evaluate the trials.
	script string
	// clients is how many clients there are.
	clients int
	// levels is how many levels the study's fidelity has, each of reduction times the
	// one below; 0 if it has none.
	levels int
	// front says that the study has the objectives of objectivesFile.
	front bool
}

// reduction is the default of a fidelity.
const reduction = 3

var families = []family{
	{name: "quick", algorithm: "random", parallelism: 10, script: `sleep 0.03
[ "$FANTASIA_ATTEMPT" = 1 ] && [ $((FANTASIA_TRIAL % 16)) = 0 ] && exit 1`},
	{name: "steps", algorithm: "tpe", parallelism: 6, script: `for step in 1 2 3; do
  echo '{"fantasia": {"step": '$step', "metrics": {"loss": '$step'}}}'
  sleep 0.06
done`},
	{name: "front", algorithm: "nsga2", parallelism: 6, front: true, script: `sleep 0.05
echo '{"fantasia": {"metrics": {"size": '$((FANTASIA_TRIAL % 7))', "time": '$((FANTASIA_TRIAL % 5))'}}}'
sleep 0.02`},
	{name: "promoted", algorithm: "random", parallelism: 6, levels: 3, script: `sleep 0.05`},
	{name: "asked", algorithm: "sobol", parallelism: 8, clients: 6},
}

// generation is one study of a family.
type generation struct {
	family
	study  string // its name
	trials int    // its budget
	log    string // of the programs
	// history is what clients called.
	history history
	// counted is whether the report has the study's trials.
	counted bool
}

// file is the study's file. The program logs its beginning and its end, and reports its
// parameter as its value.
func (g *generation) file() string {
	fidelity := ""
	if g.levels > 0 {
		fidelity = fmt.Sprintf(", {name: epochs, type: fidelity, min: 1, max: %g}", math.Pow(reduction, float64(g.levels-1)))
	}
	objective := "objective: {metric: loss, direction: minimize}"
	if g.front {
		objective = objectivesFile
	}
	trial := "{retries: {lost: 100, failed: 10}}"
	if g.script != "" {
		script := fmt.Sprintf(`line="$FANTASIA_TRIAL $FANTASIA_ATTEMPT"
echo "$line begin" >> '%[1]s'
%[2]s
echo "$line end $1" >> '%[1]s'
echo '{"fantasia": {"metrics": {"loss": '$1'}}}'`, g.log, g.script)
		trial = fmt.Sprintf(`{command: [/bin/sh, -c, %s, sh, "${x}"], retries: {lost: 100, failed: 10}}`, strconv.Quote(script))
	}
	return fmt.Sprintf(`
apiVersion: fantasia.dev/v1
kind: Study
metadata: {name: %s}
spec:
  %s
  parameters: [{name: x, type: float, min: 0, max: 1}%s]
  algorithm: {name: %s, seed: 1}
  budget: {maxTrials: %d}
  parallelism: %d
  trial: %s
`, g.study, objective, fidelity, g.algorithm, g.trials, g.parallelism, trial)
}

// round is all studies of a run of faults.
type round struct {
	*fleet
	trials int // the budget of each study

	mu      sync.Mutex
	running map[string]*generation // by family
	ended   []*generation
	report  *report
	// recovering waits for studies to go on after faults.
	recovering sync.WaitGroup
}

// names are the studies that run now.
func (r *round) names() (all []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, g := range r.running {
		all = append(all, g.study)
	}
	return all
}

// play runs studies of a family one after the other, and verifies each when it has ended,
// until last is closed: then it ends after the one that runs.
func (r *round) play(ctx context.Context, fam family, last <-chan struct{}) {
	for n := 1; ; n++ {
		g := &generation{
			family: fam, study: fmt.Sprintf("%s-%d", fam.name, n), trials: r.trials,
			log:     filepath.Join(r.dir, fmt.Sprintf("%s-%d.log", fam.name, n)),
			history: history{began: time.Now()},
		}
		if err := r.create(ctx, g); err != nil {
			r.t.Errorf("create %s: %v", g.study, err)
			return
		}
		r.mu.Lock()
		r.running[fam.name] = g
		r.mu.Unlock()
		var clients sync.WaitGroup
		for i := range fam.clients {
			clients.Go(func() { r.evaluate(ctx, g, i) })
		}
		err := r.await(ctx, g)
		clients.Wait()
		if err == nil {
			err = r.verify(ctx, g, true)
		}
		if err != nil {
			r.t.Errorf("%s: %v", g.study, err)
			return
		}
		r.mu.Lock()
		delete(r.running, fam.name)
		r.ended = append(r.ended, g)
		r.mu.Unlock()
		select {
		case <-last:
			return
		case <-ctx.Done():
			return
		default:
		}
	}
}

// create creates a study, by asking again until somebody says that it is there.
func (r *round) create(ctx context.Context, g *generation) error {
	for {
		_, err := call(ctx, r, "CreateStudy", func(ctx context.Context) (*connect.Response[fantasiav1.CreateStudyResponse], error) {
			return r.api().CreateStudy(ctx, connect.NewRequest(&fantasiav1.CreateStudyRequest{StudyFile: g.file()}))
		})
		switch connect.CodeOf(err) {
		case connect.CodeAlreadyExists:
			return nil
		case connect.CodeInvalidArgument:
			return err
		default:
		}
		if err == nil {
			return nil
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

// await waits until a study has ended.
func (r *round) await(ctx context.Context, g *generation) error {
	for {
		s, err := readLedger(ctx, r.fleet, func(ctx context.Context, l *ledger.Ledger) (ledger.Summary, error) { return l.Study(ctx, g.study) })
		if err != nil {
			return err
		}
		if s.Status.State != study.Running {
			return nil
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return fmt.Errorf("it has not ended: %+v: %w", s.Status.Counts, err)
		}
	}
}

// attempt names an attempt of a study's trial.
type attempt struct{ trial, number int }

// logged are the attempts that programs began, how often, and the values with which they
// ended.
func (g *generation) logged() (begun map[attempt]int, ended map[attempt]float64, err error) {
	begun, ended = map[attempt]int{}, map[attempt]float64{}
	file, err := os.Open(g.log)
	if errors.Is(err, os.ErrNotExist) {
		return begun, ended, nil
	}
	if err != nil {
		return nil, nil, err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) < 3 {
			return nil, nil, fmt.Errorf("%s: cannot read the line %q", g.log, lines.Text())
		}
		trial, errTrial := strconv.Atoi(words[0])
		number, errNumber := strconv.Atoi(words[1])
		if err := errors.Join(errTrial, errNumber); err != nil {
			return nil, nil, err
		}
		a := attempt{trial, number}
		if words[2] == "begin" {
			begun[a]++
			continue
		}
		if ended[a], err = strconv.ParseFloat(words[3], 64); err != nil {
			return nil, nil, err
		}
	}
	return begun, ended, lines.Err()
}
