package remote_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/fantasia-hpo/fantasia"
	"github.com/fantasia-hpo/fantasia/remote"
)

// Several processes may run this at the same time, and share the trials.
func ExampleServer() {
	server := standIn() // start a real one with: fantasia serve --listen :8080
	defer server.Close()

	space := fantasia.NewSpace()
	x := space.Float("x", -5, 5)
	study, err := fantasia.Minimize(space, fantasia.Options{
		Name:   "square",
		Trials: 50,
		Server: &remote.Server{URL: server.URL},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer study.Close()
	err = study.Run(context.Background(), func(_ context.Context, t *fantasia.Trial) (float64, error) {
		return x.Of(t) * x.Of(t), nil
	})
	if err != nil {
		log.Fatal(err)
	}
	best, err := study.Best()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("best:", best.Value, "of trial", best.Number)
	// Output: best: 2.25 of trial 1
}

// standIn is a server whose only trial is at x = 1.5.
func standIn() *httptest.Server {
	trial, asked := `{"number": 1, "state": "TRIAL_STATE_COMPLETED", "parameters": {"x": 1.5}, "values": [2.25], "attempts": [{"number": 1}]}`,
		false
	mux := http.NewServeMux()
	on := func(method string, answer func() string) {
		mux.HandleFunc("/fantasia.v1.StudyService/"+method, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer()) })
	}
	on("CreateStudy", func() string { return `{"study": {"id": "one"}}` })
	on("SuggestTrials", func() string {
		if asked {
			return `{"studyState": "STUDY_STATE_COMPLETED", "reason": "all trials have ended"}`
		}
		asked = true
		return `{"trials": [` + trial + `], "lease": "20s"}`
	})
	on("CompleteTrial", func() string { return `{"trial": ` + trial + `}` })
	on("GetStudy", func() string { return `{"study": {"id": "one", "best": {"trial": 1}}}` })
	on("GetTrial", func() string { return `{"trial": ` + trial + `}` })
	return httptest.NewServer(mux)
}
