package hebo

import (
	"slices"
	"strings"
	"testing"
)

// Every so many-th trial is the lowest of a drawn function, where evaluations are
// known to be noisy.
func TestThompsonNowAndThen(t *testing.T) {
	options := func(change func(o *Options)) Options {
		o := DefaultOptions()
		o.Thompson = 4
		change(&o)
		return o
	}
	fourth := []bool{false, false, false, true, false, false, false, true} // trials 40 and 44
	none := make([]bool, 8)
	for name, c := range map[string]struct {
		options Options
		noise   float64
		want    []bool
	}{
		"with noise":          {options(func(*Options) {}), 0.1, fourth},
		"that is said":        {options(func(o *Options) { o.Noise = NoiseYes }), 0, fourth},
		"without noise":       {options(func(*Options) {}), 0, none},
		"that is denied":      {options(func(o *Options) { o.Noise = NoiseNo }), 0.1, none},
		"every third":         {options(func(o *Options) { o.Thompson = 3 }), 0.1, []bool{false, false, true, false, false, true, false, false}},
		"never":               {options(func(o *Options) { o.Thompson = 0 }), 0.1, none},
		"with another choice": {options(func(o *Options) { o.Acquisition = UCB }), 0.1, fourth},
		"with an ensemble":    {options(func(o *Options) { o.Acquisition = MACE }), 0.1, none},
	} {
		t.Run(name, func(t *testing.T) {
			var drawn []bool
			for _, b := range contracted(t, c.options, c.noise, nil).Ask(8) {
				is := strings.HasSuffix(b.Reasons.Note, lowestDrawn)
				drawn = append(drawn, is)
				if _, told := b.Reasons.Acquisition["thompson"]; told != is || is && (b.Repeat || b.Reasons.SD == nil) {
					t.Errorf("drawn is %v, reasons %+v", is, b.Reasons)
				}
			}
			if !slices.Equal(drawn, c.want) {
				t.Errorf("drawn from the model: %v, want %v", drawn, c.want)
			}
		})
	}
}
