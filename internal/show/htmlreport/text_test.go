package htmlreport

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/fantasia-hpo/fantasia/internal/test/outline"
	"github.com/fantasia-hpo/fantasia/messaging"
)

// named returns a study in which every text that a user can set is the given one.
func named(t testing.TB, n int, text string) *Source {
	src := source(t, n)
	src.Reason, src.Version = text, text
	src.Study.Metadata.Name = text
	src.Study.Spec.Objective.Metric = text
	for i := range src.Study.Spec.Parameters {
		p := &src.Study.Spec.Parameters[i]
		for k, v := range p.Values {
			if v == hostile {
				p.Values[k] = text
			}
		}
	}
	for i := range list(src) {
		trial := &list(src)[i]
		if trial.Parameters["kind"] == hostile {
			trial.Parameters["kind"] = text
		}
		trial.Worker, trial.Note = text, text
		trial.Metrics = map[string]float64{text: 1}
		if trial.Failure != nil {
			trial.Failure = &messaging.Failure{Reason: text, Message: text}
		}
		if trial.Stopped != nil {
			trial.Stopped.Reason = text
		}
		for k := range trial.Measurements {
			trial.Measurements[k].Metric = text
		}
		for k := range trial.Runs {
			trial.Runs[k].Worker = text
		}
	}
	return src
}

// outlines returns the outlines of the pages of such a study: of its report and of a comparison.
func outlines(t testing.TB, ctx context.Context, text string) (all [2][]string) {
	t.Helper()
	src := named(t, 20, text)
	pages := []string{pageOf(t, ctx, src)}
	c, err := Compare([]string{text, "other"}, []*Source{src, src})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := WriteComparison(&b, c, epoch, text); err != nil {
		t.Fatal(err)
	}
	for i, page := range append(pages, b.String()) {
		if all[i], err = outline.Of(page); err != nil {
			t.Fatalf("the text %q: %v", text, err)
		}
		if len(all[i]) < 50 || !strings.Contains(page, "</footer>") {
			t.Fatalf("a page has %d elements", len(all[i]))
		}
	}
	return all
}

// Whatever the texts of users are, the page has the elements that it has with plain ones.
func FuzzTextStaysText(f *testing.F) {
	for _, text := range []string{hostile, "<", "&lt;b&gt;", `" onmouseover="x`, "' style='x", "--><!--", "]]>", "</title></style></svg>",
		"javascript:x", "\x00\xff\u2028", "{{.}}", "`x`"} {
		f.Add(text)
	}
	// No time for a model: its figures are in the test below.
	hurried, cancel := context.WithCancel(f.Context())
	cancel()
	plain := outlines(f, hurried, "text")
	f.Fuzz(func(t *testing.T, text string) {
		text = "t" + text // an empty text is left out
		if text == "tplain" {
			t.Skip() // another value of a parameter
		}
		for i, got := range outlines(t, hurried, text) {
			if !slices.Equal(plain[i], got) {
				t.Errorf("with the text %q page %d has the elements\n%s\nwant\n%s", text, i, strings.Join(got, "\n"), strings.Join(plain[i], "\n"))
			}
		}
	})
}

// So it is with the figures of the model.
func TestTextStaysTextInFiguresOfTheModel(t *testing.T) {
	plain := outlines(t, t.Context(), "text")
	for i, got := range outlines(t, t.Context(), hostile) {
		if !slices.Equal(plain[i], got) {
			t.Errorf("page %d has the elements\n%s\nwant\n%s", i, strings.Join(got, "\n"), strings.Join(plain[i], "\n"))
		}
	}
}
