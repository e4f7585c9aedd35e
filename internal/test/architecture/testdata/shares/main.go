// Command shares tunes a number with the library and a server: see TestLibraryGrowsProgramsLittle.
package main

import (
	"context"
	"os"

	"github.com/fantasia-hpo/fantasia"
	"github.com/fantasia-hpo/fantasia/remote"
)

func main() {
	space := fantasia.NewSpace()
	x := space.Float("x", 0, 1)
	study, err := fantasia.Minimize(space, fantasia.Options{Name: "number", Server: &remote.Server{URL: os.Args[1]}})
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
