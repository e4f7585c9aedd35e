package backend

import (
	"context"
	"errors"
	"iter"
	"regexp"

	"github.com/fantasia-hpo/fantasia/api/server"
	"github.com/fantasia-hpo/fantasia/study"
)

// named returns an answer about a study, with an error that calls the study as the caller did: the ledger
// knows only ids, which people have never seen.
func named[T any](ctx context.Context, b *Backend, as string, v T, err error) (T, error) {
	if err == nil || errors.Is(err, study.ErrAway) || ctx.Err() != nil {
		return v, err
	}
	id, errID := b.l.id(ctx, as)
	if errID != nil || id == as {
		return v, err
	}
	// A key of the ledger stays as it is: operators look there.
	text := regexp.MustCompile(`\bstudy ("?)`+regexp.QuoteMeta(id)+`\b`).ReplaceAllString(err.Error(), "study ${1}"+as)
	if text == err.Error() {
		return v, err
	}
	return v, &server.Reworded{Text: text, Cause: err}
}

// namedAll is named for each error of a sequence.
func namedAll[T any](ctx context.Context, b *Backend, as string, all iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for v, err := range all {
			if v, err = named(ctx, b, as, v, err); !yield(v, err) {
				return
			}
		}
	}
}
