package dashboard

import (
	"context"
	"testing"
)

// A reader who opens many streams loses the own oldest ones, and nobody else's.
func TestSeatsAreShared(t *testing.T) {
	s := &seats{total: 6, share: 3}
	open := func(reader string) context.Context {
		t.Helper()
		ctx, _, ok := s.admit(t.Context(), reader)
		if !ok {
			t.Fatalf("%s gets no seat", reader)
		}
		return ctx
	}
	ended := func(all ...context.Context) (n int) {
		for _, ctx := range all {
			if ctx.Err() != nil {
				n++
			}
		}
		return n
	}
	b := open("b")
	var a []context.Context
	for range 50 {
		a = append(a, open("a"))
	}
	if ended(a[:47]...) != 47 || ended(a[47:]...) != 0 || b.Err() != nil {
		t.Errorf("50 streams of a: %d have ended, b's: %v; want all but the last three", ended(a...), b.Err())
	}
	// All seats are taken: a, who has the most, gives way to newcomers until all have as many.
	c, d, e := open("c"), open("d"), open("e")
	if ended(a...) != 48 || ended(b, c, d, e) != 0 {
		t.Errorf("%d streams of a have ended, and %d of the others; want 48 and none", ended(a...), ended(b, c, d, e))
	}
	f := open("f")
	if ended(a...) != 49 || ended(b, c, d, e, f) != 0 {
		t.Errorf("%d streams of a have ended, and %d of the others; want 49 and none", ended(a...), ended(b, c, d, e, f))
	}
	if _, _, ok := s.admit(t.Context(), "g"); ok {
		t.Error("a seventh reader got a seat from one who has only one; want none")
	}
	if again := open("b"); b.Err() == nil || again.Err() != nil {
		t.Errorf("b's second stream: %v, its first: %v; want that the first gives way", again.Err(), b.Err())
	}
}

// A seat is free again once its stream has ended.
func TestSeatsAreGivenBack(t *testing.T) {
	s := &seats{total: 1, share: 1}
	for _, reader := range []string{"a", "b", "a"} {
		ctx, leave, ok := s.admit(t.Context(), reader)
		if !ok || ctx.Err() != nil {
			t.Fatalf("%s gets no seat", reader)
		}
		leave()
		if ctx.Err() == nil {
			t.Errorf("the stream of %s has left and goes on", reader)
		}
	}
}
