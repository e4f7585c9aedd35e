package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/fantasia-hpo/fantasia/research/lines"
	"github.com/fantasia-hpo/fantasia/study"
)

// axes are the hyperparameters of a network, in the order of the table.
var axes = []string{"lr", "alpha", "width", "layers", "batch"}

// table holds the curves that research/benchmarks/make_curves.py made;
// research/benchmarks/fantasia_bench/curves.py describes the file.
type table struct {
	Data    []string         `json:"data"`
	Seeds   int              `json:"seeds"`
	Epochs  int              `json:"epochs"`
	Grid    map[string][]any `json:"grid"`
	Seconds [][]float64      `json:"seconds"`

	networks int
	losses   []uint16
}

func readTable(path string) (*table, error) {
	content, err := lines.Unzip("table", path)
	if err != nil {
		return nil, err
	}
	head, losses, _ := bytes.Cut(content, []byte("\n"))
	t := &table{networks: 1}
	if err := json.Unmarshal(head, t); err != nil {
		return nil, fmt.Errorf("read the table %s: %w", path, err)
	}
	for _, axis := range axes {
		t.networks *= len(t.Grid[axis])
	}
	if want := 2 * len(t.Data) * t.networks * t.Seeds * t.Epochs; len(losses) != want {
		return nil, fmt.Errorf("read the table %s: %d bytes of losses, want %d", path, len(losses), want)
	}
	for ; len(losses) > 0; losses = losses[2:] {
		t.losses = append(t.losses, binary.LittleEndian.Uint16(losses))
	}
	return t, nil
}

// task is one data set with one seed of all networks.
type task struct {
	*table
	data, seed int
	// target is within 1% of the best loss, where 100% is the loss of a guess.
	target float64
}

func (t *table) task(data string, seed int) *task {
	k := &task{table: t, data: slices.Index(t.Data, data), seed: seed}
	best := math.Inf(1)
	for network := range t.networks {
		for _, loss := range k.curve(network) {
			best = min(best, loss)
		}
	}
	classes := 2.0
	if data == "digits" {
		classes = 10
	}
	k.target = best + 0.01*(math.Log(classes)-best)
	return k
}

// curve returns a network's loss after each epoch.
func (t *task) curve(network int) []float64 {
	start := ((t.data*t.networks+network)*t.Seeds + t.seed) * t.Epochs
	losses := make([]float64, t.Epochs)
	for i, loss := range t.losses[start : start+t.Epochs] {
		losses[i] = float64(loss) / 1e4
	}
	return losses
}

// parameters returns those of a network, each the index of a value of the grid.
func (t *task) parameters() []study.Parameter {
	var list []study.Parameter
	for _, axis := range axes {
		low, high := 0.0, float64(len(t.Grid[axis])-1)
		list = append(list, study.Parameter{Name: axis, Type: study.Int, Min: &low, Max: &high, Scale: study.Linear})
	}
	return list
}

// network returns the number of the network of a point.
func (t *task) network(p study.Point) int {
	number := 0
	for _, axis := range axes {
		index, _ := p[axis].(int64)
		number = number*len(t.Grid[axis]) + int(index)
	}
	return number
}

// epoch returns how long an epoch of a network takes, in seconds. It does not depend on
// the first two axes.
func (t *task) epoch(network int) float64 {
	shapes := t.Seconds[t.data]
	return shapes[network%len(shapes)]
}
