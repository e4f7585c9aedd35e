package publish

// queue holds values in the order in which their keys were first added; adding a
// key again replaces its value. The zero queue is empty and ready for use.
type queue[K comparable, V any] struct {
	keys   []K
	values map[K]V
}

func (q *queue[K, V]) add(key K, value V) {
	if q.values == nil {
		q.values = map[K]V{}
	}
	if _, ok := q.values[key]; !ok {
		q.keys = append(q.keys, key)
	}
	q.values[key] = value
}

func (q *queue[K, V]) len() int { return len(q.keys) }

// takeAll returns the values and empties the queue.
func (q *queue[K, V]) takeAll() []V {
	list := make([]V, len(q.keys))
	for i, key := range q.keys {
		list[i] = q.values[key]
	}
	*q = queue[K, V]{}
	return list
}
