package dashboard_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/fantasia-hpo/fantasia/api/server"
	"github.com/fantasia-hpo/fantasia/study"
)

// The page of a trial shows the model as it was when the point was chosen: fitted to what
// had ended by then, with what was pending then.
func TestWhyThisPoint(t *testing.T) {
	s := serve(t, after(190), "")
	create(t, s.Backend, "digits", 60, 8)
	// Trial 40 was chosen at position 77. By then the trials 1 to 31 had ended at 76, and 39
	// had been created.
	body := s.eventually(t, "/ui/studies/digits/trials/40", "with 8 pending points")
	_, around, _ := strings.Cut(body, `id="around"`)
	around, _, _ = strings.Cut(around, `id="attempts-title"`)
	for _, want := range []string{
		"The model is the Gaussian process of hebo, fitted again to 30 of the 31 trials that had ended", // 17 failed
		"expected improvement, as a share of the highest", "pending (8)", "trial 40", `id="title-around-0">rate<`,
	} {
		if !strings.Contains(around, want) {
			t.Errorf("the page lacks %q:\n%.3000s", want, around)
		}
	}
	for _, trial := range []string{"32", "39"} {
		if !strings.Contains(around, `<circle class="sign c1"`) || !strings.Contains(around, `data-trial="`+trial+`"`) {
			t.Errorf("trial %s is not marked as pending", trial)
		}
	}
	if strings.Contains(around, `data-trial="41"`) {
		t.Error("a later trial is marked")
	}
}

func TestNoPictureOfThePoint(t *testing.T) {
	s := serve(t, after(190), "")
	create(t, s.Backend, "digits", 40, 0)
	s.eventually(t, "/ui/studies/digits/trials/3", "no model chose this point")
	s.Change("digits", func(st *server.Study) { st.Spec.Definition.Spec.Algorithm = study.Algorithm{Name: "random"} })
	s.eventually(t, "/ui/studies/digits/trials/30", "There is no picture of the model: random chooses points without a model.")
	s.Change("digits", func(st *server.Study) { st.Spec.Definition.Spec.Algorithm = study.Algorithm{Name: "tpe"} })
	s.eventually(t, "/ui/studies/digits/trials/20", "its model needs 20")
	body := s.eventually(t, "/ui/studies/digits/trials/39", "which did not choose the point")
	if strings.Contains(body, "as a share of the highest") {
		t.Error("an acquisition function of tpe is shown")
	}
	if resp, body := s.ask(t, http.MethodGet, "/ui/studies/digits/trials/39", nil); !strings.Contains(body, `data-poll="0"`) {
		t.Errorf("the page of an ended trial asks again: %s", resp.Status)
	}
}
