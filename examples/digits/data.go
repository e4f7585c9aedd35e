package main

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
)

const (
	pixels  = 64 // an image is 8×8
	classes = 10
	images  = 1797
)

//go:embed digits.csv.gz
var digitsCSV []byte

// dataset is a set of images: pixels row-major, each scaled to [0,1].
type dataset struct {
	x []float64 // len(y) × pixels
	y []int
}

// load reads the embedded images: a row has 64 counts in 0–16 and the digit.
func load() (dataset, error) {
	zr, err := gzip.NewReader(bytes.NewReader(digitsCSV))
	if err != nil {
		return dataset{}, fmt.Errorf("open the images: %w", err)
	}
	r := csv.NewReader(zr)
	r.FieldsPerRecord = pixels + 1
	var d dataset
	for {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return dataset{}, fmt.Errorf("read the images: %w", err)
		}
		for _, field := range row[:pixels] {
			v, err := strconv.ParseFloat(field, 64)
			if err != nil {
				return dataset{}, fmt.Errorf("read a pixel: %w", err)
			}
			d.x = append(d.x, v/16)
		}
		label, err := strconv.ParseFloat(row[pixels], 64)
		if err != nil {
			return dataset{}, fmt.Errorf("read a label: %w", err)
		}
		d.y = append(d.y, int(label))
	}
	if len(d.y) != images {
		return dataset{}, fmt.Errorf("read %d images, want %d", len(d.y), images)
	}
	return d, nil
}

// fold returns the k-th of n folds of d for validation and the rest for
// training. The split does not depend on the trial's seed: every trial is
// measured on the same images.
func (d dataset) fold(k, n int) (train, validation dataset) {
	order := rand.New(rand.NewPCG(1797, 8)).Perm(len(d.y))
	for place, i := range order {
		into := &train
		if place%n == k {
			into = &validation
		}
		into.x = append(into.x, d.x[i*pixels:(i+1)*pixels]...)
		into.y = append(into.y, d.y[i])
	}
	return train, validation
}
