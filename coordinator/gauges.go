package coordinator

import (
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/lease"
)

// gauges are the values of the leader's gauges at one time.
type gauges struct {
	at               time.Time
	pending, studies int64
	pools            map[string]slots
	// best and recommended are, by study, the best value and the posterior mean at
	// the recommended point.
	best, recommended map[string]float64
}

type slots struct {
	all, free, workers, useful int64
	idle                       float64 // seconds, since the term began
}

// observer updates the gauges about once a second. The loop owns it.
type observer struct {
	metrics *metrics
	studies *studies
	workers *lease.Workers
	last    *gauges // nil before the first time
}

// observe computes the gauges and adds up how long slots were free since the last call.
// Only the loop calls it.
func (o *observer) observe(now time.Time) {
	g := &gauges{at: now, pools: map[string]slots{}, best: map[string]float64{}, recommended: map[string]float64{}}
	for _, r := range o.studies.loaded {
		if !r.running() {
			continue
		}
		open := int64(r.status.Counts.Open())
		spec := &r.spec.Definition.Spec
		g.studies++
		g.pending += open
		if !spec.ByClients() {
			s := g.pools[spec.Pool]
			s.useful += int64(r.useful())
			g.pools[spec.Pool] = s
		}
		if best, ok := r.engine.Best(); ok {
			g.best[r.name()] = best.Values.First()
		}
		if recommended := r.status.Recommended; recommended.Trial > 0 && recommended.Front == nil {
			g.recommended[r.name()] = recommended.Mean
		}
	}
	for pool, size := range o.workers.Sizes(now) {
		s := g.pools[pool]
		s.all, s.free, s.workers = int64(size.Slots), int64(size.Free), int64(size.Workers)
		g.pools[pool] = s
	}
	if before := o.last; before != nil {
		for pool, was := range before.pools {
			s := g.pools[pool]
			s.idle = was.idle + max(0, now.Sub(before.at).Seconds())*float64(was.free)
			g.pools[pool] = s
		}
	}
	o.last = g
	o.metrics.gauges.Store(g)
}
