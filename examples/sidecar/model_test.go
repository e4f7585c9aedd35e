package main

import (
	"math"
	"path/filepath"
	"testing"
)

func TestTrainingLearns(t *testing.T) {
	data := spirals()
	m := newModel(0.5, 1e-6, 1)
	if loss := m.loss(data); math.Abs(loss-math.Ln2) > 1e-12 {
		t.Errorf("the loss of an untrained model is %v, want ln 2: it knows nothing", loss)
	}
	for range 20 {
		m.epoch(data)
	}
	if loss := m.loss(data); loss > 0.1 {
		t.Errorf("the loss after 20 epochs is %v: the arms are apart, and the features can part them", loss)
	}
}

func TestTrainingResumes(t *testing.T) {
	data, path := spirals(), filepath.Join(t.TempDir(), "new", "model.json")
	m := newModel(0.5, 1e-6, 1)
	m.epoch(data)
	if err := m.save(path, 1); err != nil {
		t.Fatal(err)
	}
	again := newModel(0.5, 1e-6, 1)
	if epoch := again.resume(path); epoch != 1 || again.loss(data) != m.loss(data) {
		t.Errorf("resumed at epoch %d with loss %v, want 1 and %v", epoch, again.loss(data), m.loss(data))
	}
	if epoch := newModel(0.5, 1e-6, 1).resume(filepath.Join(t.TempDir(), "none")); epoch != 0 {
		t.Errorf("resumed at epoch %d from nothing", epoch)
	}
}
