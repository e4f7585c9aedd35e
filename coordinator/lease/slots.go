package lease

import "time"

// pool is a pool's capacity.
type pool struct {
	// version grows with each heartbeat in the pool and each other change of its capacity.
	version int64
	// slots and free are those of the counted workers.
	slots, free int
}

// Size is what the workers of a pool that are alive offer.
type Size struct{ Workers, Slots, Free int }

func (w *Workers) pool(name string) *pool {
	p := w.pools[name]
	if p == nil {
		p = &pool{}
		w.pools[name] = p
	}
	return p
}

// count adds a worker's slots to its pool's, unless it leaves.
func (w *Workers) count(m *worker) {
	if m.beat.Leaving {
		return
	}
	m.counted = true
	p := w.pool(m.beat.Pool)
	p.slots, p.free = p.slots+m.beat.Slots, p.free+m.beat.Free
}

// discount takes a worker's slots out of its pool's.
func (w *Workers) discount(m *worker) {
	if !m.counted {
		return
	}
	m.counted = false
	p := w.pool(m.beat.Pool)
	p.slots, p.free = p.slots-m.beat.Slots, p.free-m.beat.Free
}

// Touch marks a pool's capacity as changed, so that its studies are told it again.
func (w *Workers) Touch(name string) { w.pool(name).version++ }

// TouchAll does so for every pool.
func (w *Workers) TouchAll() {
	for _, p := range w.pools {
		p.version++
	}
}

// Version returns the version of a pool's capacity; 0 if nothing is known of the pool.
func (w *Workers) Version(name string) int64 {
	if p := w.pools[name]; p != nil {
		return p.version
	}
	return 0
}

// Slots returns how many slots a pool has for a study that avoids some workers, and how many of
// these are free. A silent worker counts until Due has noticed its silence.
func (w *Workers) Slots(name string, avoided map[string]string) (slots, free int) {
	if p := w.pools[name]; p != nil {
		slots, free = p.slots, p.free
	}
	for worker := range avoided {
		if m := w.workers[worker]; m != nil && m.counted && m.beat.Pool == name {
			slots, free = slots-m.beat.Slots, free-m.beat.Free
		}
	}
	return slots, free
}

// Sizes returns, by pool, what the workers offer that are neither silent nor leaving.
func (w *Workers) Sizes(now time.Time) map[string]Size {
	sizes := map[string]Size{}
	for _, m := range w.workers {
		if w.silent(m, now) || m.beat.Leaving {
			continue
		}
		s := sizes[m.beat.Pool]
		sizes[m.beat.Pool] = Size{s.Workers + 1, s.Slots + m.beat.Slots, s.Free + m.beat.Free}
	}
	return sizes
}
