package chaos

import (
	"context"
	"fmt"
	"slices"
	"time"

	"connectrpc.com/connect"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/study"
)

// objectivesFile are the objectives of a study with a front. Its programs report the loss last
// and the others, which follow from the trial's number, in an earlier line.
const objectivesFile = `objectives:
    - {metric: loss, direction: minimize}
    - {metric: size, direction: maximize}
    - {metric: time, direction: minimize}`

// front checks the front of a study that has ended, as the ledger and as any coordinator gives
// it, against what the programs logged: each trial has all values of one attempt, and the
// front are the trials that no other one beats.
func (r *round) front(ctx context.Context, g *generation, records *ledger.Records, ended map[attempt]float64) error {
	if !g.front {
		return nil
	}
	found := make([]study.Values, len(records.Trials))
	for a, loss := range ended {
		if a.trial <= len(found) {
			found[a.trial-1] = study.Values{loss, float64(a.trial % 7), float64(a.trial % 5)}
		}
	}
	for i, v := range found {
		if got := records.Trials[i].Values; !slices.Equal(got, v) {
			return fmt.Errorf("trial %d has the values %v, its program found %v", i+1, got, v)
		}
	}
	var want []int
	for i, v := range found {
		if !slices.ContainsFunc(found, func(other study.Values) bool { return beats(other, v) }) {
			want = append(want, i+1)
		}
	}
	front, err := records.Study.Front(records.Trials)
	var got []int
	for i := range front {
		got = append(got, front[i].Number)
	}
	if err != nil {
		return err
	}
	if !slices.Equal(got, want) {
		return fmt.Errorf("the ledger's front is of the trials %v, want %v", got, want)
	}
	return r.served(ctx, g, want)
}

// beats reports whether values are at least as good as others in every objective, and not equal.
func beats(a, b study.Values) bool {
	return a[0] <= b[0] && a[1] >= b[1] && a[2] <= b[2] && !slices.Equal(a, b)
}

// served checks which trials a coordinator lists on the front, by asking until one answers.
func (r *round) served(ctx context.Context, g *generation, want []int) error {
	for {
		answer, err := call(ctx, r, "ListOptimalTrials",
			func(ctx context.Context) (*connect.Response[fantasiav1.ListOptimalTrialsResponse], error) {
				return r.api().ListOptimalTrials(ctx,
					connect.NewRequest(&fantasiav1.ListOptimalTrialsRequest{Parent: "studies/" + g.study, PageSize: 1000}))
			})
		if err == nil {
			var got []int
			for _, t := range answer.Msg.GetTrials() {
				got = append(got, int(t.GetNumber()))
			}
			if !slices.Equal(got, want) {
				return fmt.Errorf("ListOptimalTrials gives the trials %v, want %v", got, want)
			}
			return nil
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}
