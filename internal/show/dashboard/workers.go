package dashboard

import (
	"context"
	"errors"
	"net/http"
	"time"

	"connectrpc.com/connect"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/internal/base/each"
	"github.com/fantasia-hpo/fantasia/study"
)

// workersPoll is how often the list of workers is asked for again, in seconds.
const workersPoll = 3

// workersData is what the page of workers shows.
type workersData struct {
	page
	Workers []workerItem
	Now     time.Time
	// Slots and Free are the sums over all workers.
	Slots, Free int
}

// workerItem is a worker with what it runs.
type workerItem struct {
	view.Worker
	Trials []workerTrial
	// Others is how many trials it runs of studies that the token does not show.
	Others int
}

// workerTrial is a trial that a worker runs.
type workerTrial struct {
	Study          string
	Trial, Attempt int
}

func (d *Dashboard) workersPage(w http.ResponseWriter, r *http.Request) error {
	list, err := d.workers(r.Context())
	if err != nil {
		return err
	}
	data := workersData{page: page{Title: "Workers", Here: "workers", Poll: workersPoll}, Now: d.o.Now()}
	names := map[string]string{} // of studies by id; "" for those that are not shown
	for _, worker := range list {
		item := workerItem{Worker: worker}
		data.Slots, data.Free = data.Slots+worker.Slots, data.Free+worker.Free
		for _, a := range worker.Running {
			name, known := names[a.Study]
			if !known {
				var err error
				name, err = d.backend.Name(r.Context(), a.Study)
				if err != nil && !errors.Is(err, study.ErrNotFound) {
					return err
				}
				names[a.Study] = name
			}
			if name == "" {
				item.Others++
				continue
			}
			item.Trials = append(item.Trials, workerTrial{name, a.Trial, a.Attempt})
		}
		data.Workers = append(data.Workers, item)
	}
	d.show(w, r, http.StatusOK, &data)
	return nil
}

// workers asks the leader for the workers, through the API and with the caller's token.
func (d *Dashboard) workers(ctx context.Context) ([]view.Worker, error) {
	req := connect.NewRequest(&fantasiav1.ListWorkersRequest{})
	if s, _ := ctx.Value(sessionKey{}).(session); !s.open {
		req.Header().Set("Authorization", "Bearer "+s.token)
	}
	resp, err := d.api.ListWorkers(ctx, req)
	if err != nil {
		return nil, err
	}
	return each.Of(resp.Msg.GetWorkers(), view.FromWorker), nil
}
