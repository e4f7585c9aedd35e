// Command uses tunes a number with the library: see TestLibraryGrowsProgramsLittle.
package main

import (
	"context"
	"os"

	"github.com/fantasia-hpo/fantasia"
)

func main() {
	space := fantasia.NewSpace()
	x := space.Float("x", 0, 1)
	study, err := fantasia.Minimize(space, fantasia.Options{State: os.Args[1]})
	if err != nil {
		panic(err)
	}
	defer study.Close()
	if err := study.Run(context.Background(), func(_ context.Context, t *fantasia.Trial) (float64, error) {
		return x.Of(t), nil
	}); err != nil {
		panic(err)
	}
}
