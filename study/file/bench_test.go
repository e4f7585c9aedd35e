package file_test

import (
	"os"
	"testing"

	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/file"
	"github.com/fantasia-hpo/fantasia/study/space/celspace"
)

func BenchmarkParse(b *testing.B) {
	data, err := os.ReadFile("testdata/good/everything.yaml")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := file.Parse(data); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSpace(b *testing.B) {
	s, err := parseFile(b, "testdata/good/everything.yaml")
	if err != nil {
		b.Fatal(err)
	}
	space, err := celspace.Of(s)
	if err != nil {
		b.Fatal(err)
	}
	draw := func() study.Point {
		p := make(study.Point)
		for _, param := range space.Parameters() {
			if space.Active(p, param.Name) {
				p[param.Name] = param.FromUnit(0.3)
			}
		}
		return p
	}
	point := draw()
	b.Run("draw", func(b *testing.B) {
		for b.Loop() {
			draw()
		}
	})
	b.Run("feasible", func(b *testing.B) {
		for b.Loop() {
			space.Feasible(point)
		}
	})
	b.Run("key", func(b *testing.B) {
		for b.Loop() {
			space.Key(point)
		}
	})
}
