package dashboard_test

import (
	"encoding/xml"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/fantasia-hpo/fantasia/api/server"
	"github.com/fantasia-hpo/fantasia/study"
)

// A picture is SVG of its own, with its style and the numbers of the study.
func TestPicturesOneByOne(t *testing.T) {
	s := serve(t, after(190), "")
	create(t, s.Backend, "digits", 60, 8)
	for path, want := range map[string]string{
		"history": `data-trial="60"`, "history?x=time&width=360": `width="360"`, "curves": "Curves of digits", "edf": "share of evaluations", "parallel": "solver",
		"slice?parameter=rate": "rate (log scale)",
		"importances":          "Importances", "dependence?parameter=rate": "expected by the model",
		"contour?parameter=rate&parameter=width": "standard deviation",
		"contour?parameter=width&parameter=rate": "standard deviation", "fit": "95% interval", "duration?parameter=width": "seconds",
		"importances-duration": "What decides how long trials take", "staleness": "Staleness", "workers": "worker-1",
		"pending": "Trials under way",
	} {
		resp, body := s.ask(t, http.MethodGet, "/ui/studies/digits/pictures/"+path, nil)
		if resp.StatusCode != http.StatusOK || !strings.HasPrefix(resp.Header.Get("Content-Type"), "image/svg+xml") ||
			!strings.Contains(body, want) || !strings.Contains(body, "<style>") {
			t.Errorf("%s: %s, without %q:\n%.300s", path, resp.Status, want, body)
		}
		if err := xml.Unmarshal([]byte(body), new(struct{ XMLName xml.Name })); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	for path, want := range map[string]string{
		"histogram":                             `"code":"invalid_argument","message":"picture is \"histogram\"; want one of history, edf, curves, `,
		"front":                                 "there is no picture front: it is made for studies of several objectives",
		"hypervolume":                           "it is made for studies of 2 to 4 objectives with a completed trial",
		"slice":                                 "the picture slice takes 1, of ",
		"history?parameter=rate":                "the picture history takes 0, of ",
		"slice?parameter=speed":                 `parameter is \"speed\"; want one of rate, width, dropout, solver, momentum`,
		"history?width=10":                      "want a whole number of pixels from 280 to 2000",
		"contour?parameter=rate&parameter=rate": "there is no picture contour of rate and rate",
	} {
		resp, body := s.ask(t, http.MethodGet, "/ui/studies/digits/pictures/"+path, nil)
		if resp.StatusCode/100 != 4 || !strings.Contains(body, want) {
			t.Errorf("%s: %s %s, want %q", path, resp.Status, body, want)
		}
	}
	if resp, body := s.ask(t, http.MethodGet, "/ui/studies/absent/pictures/history", nil); resp.StatusCode != http.StatusNotFound ||
		!strings.Contains(body, `"not_found"`) {
		t.Errorf("of no study: %s %s", resp.Status, body)
	}
}

// The page of diagnostics says what earlier studies are worth. The page of a trial names the earlier study that speaks for its point.
func TestEarlierStudies(t *testing.T) {
	s := serve(t, after(190), "")
	create(t, s.Backend, "digits", 60, 0)
	march := study.Earlier{Study: "march"}
	rng := rand.New(rand.NewPCG(1, 1))
	for n := range 40 {
		tr := newTrial(rng, n+1, false)
		march.Trials = append(march.Trials, study.EarlierTrial{Parameters: tr.Point, Value: errorOf(tr.Point)})
	}
	s.Change("digits", func(st *server.Study) { st.Spec.Definition.Spec.LearnFrom = []study.Earlier{march} })
	page := s.eventually(t, "/ui/studies/digits/diagnostics", "earlier studies")
	for _, want := range []string{"Ranks points as this study does: march.", "march: rank correlation 0."} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	tr, err := s.Trial(t.Context(), "digits", 20)
	if err != nil {
		t.Fatal(err)
	}
	tr.Reasons.Note += "; the prediction rests on earlier studies: march (62%)"
	s.Put("digits", tr)
	s.eventually(t, "/ui/studies/digits/trials/20", "the prediction rests on earlier studies: march (62%)")
}
