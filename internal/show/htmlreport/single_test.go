package htmlreport

import (
	"errors"
	"strings"
	"testing"

	"github.com/fantasia-hpo/fantasia/internal/show/figure"
	"github.com/fantasia-hpo/fantasia/internal/show/picture"
	"github.com/fantasia-hpo/fantasia/study"
)

// Every picture that can be had by itself is that of the whole report, or one like it.
func TestSingle(t *testing.T) {
	src := source(t, 40)
	names := study.Names(figure.AxesOf(src.Study))
	for _, n := range figure.Single {
		if n.For != "" && n.Name != "allocation" { // this study is none of these
			if _, err := Single(t.Context(), src, n.Name, names[:n.Parameters]); !none(err) || !strings.Contains(err.Error(), n.For) {
				t.Errorf("%s: %v, want that it is made for %s", n.Name, err, n.For)
			}
			continue
		}
		f, err := Single(t.Context(), src, n.Name, names[:n.Parameters])
		if none(err) && n.Name == "contour" {
			f, err = Single(t.Context(), src, n.Name, []string{names[1], names[2]})
		}
		if err != nil {
			t.Errorf("%s: %v", n.Name, err)
			continue
		}
		if svg := string(f.Pictures[0].SVG(picture.Frame{})); !strings.Contains(svg, "</svg>") {
			t.Errorf("%s is %.60s", n.Name, svg)
		}
	}
	for _, test := range []struct {
		name       string
		parameters []string
		want       string
	}{
		{"cake", nil, `picture is "cake"; want one of history, edf, curves`},
		{"slice", nil, "the picture slice takes 1, of " + names[0]},
		{"history", names[:1], "the picture history takes 0"},
		{"slice", []string{"nothing"}, `parameter is "nothing"; want one of ` + names[0]},
	} {
		if _, err := Single(t.Context(), src, test.name, test.parameters); !none(err) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s of %q: %v, want a *figure.NoPicture that says %q", test.name, test.parameters, err, test.want)
		}
	}
	if _, err := Single(t.Context(), source(t, 5), "importances", nil); !none(err) || !strings.Contains(err.Error(), "not enough data") {
		t.Errorf("a model of 5 trials: %v", err)
	}
}

// none reports whether an error says that there is no such picture.
func none(err error) bool {
	_, is := errors.AsType[*figure.NoPicture](err)
	return is
}
