package pt

import (
	"embed"
	"fmt"
	"slices"
	"sync"

	"github.com/fantasia-hpo/fantasia/optimizer/papers/pt/network"
)

//go:embed weights/*.safetensors
var weights embed.FS

// Models are transformers for different numbers of columns. They are safe for concurrent
// use and read weights when they are first needed.
type Models struct {
	read func() ([]*network.Model, error)
}

// Embedded returns the models that are part of the program.
func Embedded() *Models {
	return &Models{sync.OnceValues(func() ([]*network.Model, error) {
		entries, err := weights.ReadDir("weights")
		if err != nil {
			return nil, err
		}
		var files [][]byte
		for _, e := range entries {
			data, err := weights.ReadFile("weights/" + e.Name())
			if err != nil {
				return nil, err
			}
			files = append(files, data)
		}
		return parse(files)
	})}
}

// FromFiles returns the models in the given contents of files, instead of the embedded ones.
func FromFiles(files ...[]byte) (*Models, error) {
	models, err := parse(files)
	if err != nil {
		return nil, err
	}
	return &Models{func() ([]*network.Model, error) { return models, nil }}, nil
}

// parse returns the models of the files, those of the fewest columns first.
func parse(files [][]byte) ([]*network.Model, error) {
	var models []*network.Model
	for _, data := range files {
		m, err := network.Load(data)
		if err != nil {
			return nil, err
		}
		models = append(models, m)
	}
	slices.SortFunc(models, func(a, b *network.Model) int { return a.Columns() - b.Columns() })
	return models, nil
}

// of returns the model for points of the given number of columns, which is used with the
// given number of observations. A nil model means that none was trained for them; why says
// so.
func (m *Models) of(columns, observations int) (model *network.Model, why string, err error) {
	models, err := m.read()
	if err != nil {
		return nil, "", err
	}
	most := 0
	for _, one := range models {
		most = max(most, one.Columns())
		if columns > one.Columns() || columns < one.LeastColumns() {
			continue
		}
		if observations > one.MostObservations() {
			return nil, fmt.Sprintf("no transformer was trained for more than %d evaluations", one.MostObservations()), nil
		}
		return one, "", nil
	}
	return nil, fmt.Sprintf("no transformer was trained for %d columns; the most is %d", columns, most), nil
}
