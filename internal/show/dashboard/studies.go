package dashboard

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/fantasia-hpo/fantasia/api/server"
	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/internal/base/each"
	"github.com/fantasia-hpo/fantasia/study"
)

const (
	// studiesPage is the number of studies on a page.
	studiesOnPage = 50
	// maxScanned bounds how many studies are read for a page.
	maxScanned = 1000
	// listPoll is how often the list of studies is asked for again, in seconds.
	listPoll = 3
)

// studiesData is what the list of studies shows.
type studiesData struct {
	page
	Studies []studyItem
	// State and Name are the filters.
	State, Name string
	States      []study.State
	// Next is the address of the next page, First that of the first; empty for none.
	Next, First string
	Narrowed    bool
}

// studyItem is a study in the list.
type studyItem struct {
	view.Study
	Objective study.Objective // the first
	// Objectives is how many there are.
	Objectives int
	Algorithm  string
	Budget     int
	Ended      int
	Open       int
	Rate       string
	Elapsed    time.Duration
	Reason     string
}

func (d *Dashboard) studiesPage(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	data := studiesData{
		page:  page{Title: "Studies", Here: "studies", Poll: listPoll},
		State: q.Get("state"), Name: q.Get("name"),
		States: []study.State{study.Running, study.Completed, study.Stopped, study.Failed},
	}
	if data.State != "" && !slices.Contains(data.States, study.State(data.State)) {
		return badRequest("state is %q; want one of %s", data.State, each.Join(data.States, ", ", text))
	}
	data.Narrowed = data.State != "" || data.Name != ""
	after, now := q.Get("after"), d.o.Now()
	for scanned := 0; ; {
		list, err := d.backend.Studies(r.Context(), after, studiesOnPage)
		if err != nil {
			return err
		}
		for i := range list {
			after = list[i].Spec.Definition.Metadata.Name
			if data.wants(&list[i]) {
				data.Studies = append(data.Studies, newStudyItem(&list[i], now))
			}
			if len(data.Studies) == studiesOnPage {
				break
			}
		}
		scanned += len(list)
		if len(list) < studiesOnPage {
			break
		}
		if len(data.Studies) == studiesOnPage || scanned >= maxScanned {
			data.Next = data.address(after)
			break
		}
	}
	if q.Get("after") != "" {
		data.First = data.address("")
	}
	d.show(w, r, http.StatusOK, &data)
	return nil
}

func (s *studiesData) wants(st *server.Study) bool {
	return (s.State == "" || st.Status.State == study.State(s.State)) && strings.Contains(st.Spec.Definition.Metadata.Name, s.Name)
}

// address returns the address of the page after a study, with the same filters.
func (s *studiesData) address(after string) string {
	q := url.Values{}
	for key, value := range map[string]string{"state": s.State, "name": s.Name, "after": after} {
		if value != "" {
			q.Set(key, value)
		}
	}
	return "?" + q.Encode()
}

func newStudyItem(s *server.Study, now time.Time) studyItem {
	spec := &s.Spec.Definition.Spec
	elapsed := view.Elapsed(s.Status, now)
	return studyItem{
		Study:     view.OfStudy(s.Spec, s.Status, s.Best, s.Recommended, now),
		Objective: *spec.FirstObjective(), Objectives: len(spec.Objectives()), Algorithm: spec.Algorithm.Name, Budget: spec.Budget.MaxTrials,
		Ended: s.Status.Counts.Ended(), Open: s.Status.Counts.Open(),
		Rate: rate(s.Status.Counts.Ended(), elapsed), Elapsed: elapsed, Reason: s.Status.Reason,
	}
}
