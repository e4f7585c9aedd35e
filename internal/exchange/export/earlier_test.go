package export_test

import (
	"bytes"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/internal/exchange/export"
	"github.com/fantasia-hpo/fantasia/internal/exchange/migrate"
	"github.com/fantasia-hpo/fantasia/study"
)

// A study of the same space learns from every completed trial that was exported, in each format. One whose space has
// only the last of the parameters learns from its values.
func TestEarlierReadsWhatIsExported(t *testing.T) {
	for form, write := range map[string]func(*export.Table, io.Writer) error{
		"csv": (*export.Table).CSV, "json": (*export.Table).JSONLines, "parquet": (*export.Table).Parquet,
	} {
		rapid.Check(t, func(t *rapid.T) {
			spec, s := drawSpec(t)
			if len(spec.Several) > 0 {
				t.Skip("one objective only")
			}
			trials, want := drawTrials(t, spec, s)
			var out bytes.Buffer
			if err := write(export.Of(spec, view.List(trials)), &out); err != nil {
				t.Fatal(err)
			}
			smaller := *spec
			smaller.Parameters = spec.Parameters[len(spec.Parameters)-1:]
			if p := &smaller.Parameters[0]; p.When != nil {
				*p = study.Parameter{Name: "free of others", Type: study.Bool}
			}
			for _, learns := range []*study.Spec{spec, &smaller} {
				var expected []study.EarlierTrial
				for _, e := range want {
					point := study.Point{}
					for i := range learns.Parameters {
						p := &learns.Parameters[i]
						if v, ok := e.Point[p.Name]; ok && p.Type != study.Fixed {
							point[p.Name] = v
						}
					}
					if len(point) > 0 {
						expected = append(expected, study.EarlierTrial{Parameters: point, Value: e.Values.First(), Seconds: 0.001})
					}
				}
				got, _, err := migrate.Earlier(form, bytes.NewReader(out.Bytes()), learns)
				if (err != nil) != (expected == nil) {
					t.Fatalf("%v, want %v", err, expected)
				}
				if diff := cmp.Diff(expected, got); diff != "" {
					t.Fatalf("%s (-want +got):\n%s%q", form, diff, out.Bytes())
				}
			}
		})
	}
}
