package coordinator

import (
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/metrics"
)

// observe computes the gauges and adds up how long slots were free since the last call.
// Only the loop calls it. A new term adds up from 0 again.
func (l *leader) observe(now time.Time) {
	g := &metrics.Gauges{
		At: now, Pools: map[string]metrics.Slots{},
		Best: map[string]float64{}, Recommended: map[string]float64{}, Hypervolume: map[string]float64{},
	}
	for r := range l.studies.Loaded() {
		if !r.Running() {
			continue
		}
		open := int64(r.Status.Counts.Open())
		spec := &r.Spec.Definition.Spec
		g.Studies++
		g.Pending += open
		if !spec.ByClients() {
			s := g.Pools[spec.Pool]
			s.Useful += int64(r.Useful())
			g.Pools[spec.Pool] = s
		}
		if best, ok := r.Engine.Best(); ok {
			g.Best[r.Name()] = best.Values.First()
		}
		if recommended := r.Status.Recommended; recommended.Trial > 0 && recommended.Front == nil {
			g.Recommended[r.Name()] = recommended.Mean
		}
		if f := r.Status.Front; f != nil && f.Hypervolume != nil {
			g.Hypervolume[r.Name()] = *f.Hypervolume
		}
	}
	for pool, size := range l.workers.Sizes(now) {
		s := g.Pools[pool]
		s.All, s.Free, s.Workers = int64(size.Slots), int64(size.Free), int64(size.Workers)
		g.Pools[pool] = s
	}
	if before := l.gauges; before != nil {
		for pool, was := range before.Pools {
			s := g.Pools[pool]
			s.Idle = was.Idle + max(0, now.Sub(before.At).Seconds())*float64(was.Free)
			g.Pools[pool] = s
		}
	}
	l.gauges = g
	l.c.metrics.Show(g)
}
