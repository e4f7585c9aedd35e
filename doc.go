// Package fantasia tunes the parameters of anything that a Go function can evaluate: it looks for
// the point of a [Space] at which an objective is smallest or largest, with as few evaluations as
// it can. It is Fantasia's engine with all of its optimisers, in the process that uses it. It
// needs no server, opens no port, and writes only the file that [Options].State names.
//
// A program declares a space, opens a study, runs it, and reads the result:
//
//	space := fantasia.NewSpace()
//	rate := space.Float("rate", 1e-5, 1e-1, fantasia.Log)
//	width := space.Int("width", 16, 512)
//	study, err := fantasia.Minimize(space, fantasia.Options{State: "tuning.study", Parallel: 4, Trials: 60})
//	if err != nil {
//		return err
//	}
//	defer study.Close()
//	err = study.Run(ctx, func(ctx context.Context, t *fantasia.Trial) (float64, error) {
//		return train(ctx, rate.Of(t), width.Of(t))
//	})
//	best, err := study.Best()
//	fmt.Println(best.Value, rate.Of(best), width.Of(best))
//
// # What is kept
//
// With [Options].State, everything about the study is in one file, and a result is on the disk
// when [Study.Tell] returns. A program that is killed at any time, and started again, goes on
// where it was: nothing that was told is lost or evaluated again, and trials that were being
// evaluated are evaluated again. When the program opens the study again, budget, goal and
// parallelism may have changed, and so may the bounds of parameters. Other changes are
// refused: see [ErrDifferent].
//
// # Several objectives, and limits
//
// [Optimize] opens a study that judges trials by several criteria. Its evaluations return a struct, or
// whatever type suits the program, and each criterion reads its value from it:
//
//	type model struct{ loss, seconds, bytes float64 }
//	loss := fantasia.Lowest("loss", func(m model) float64 { return m.loss })
//	seconds := fantasia.Lowest("seconds", func(m model) float64 { return m.seconds })
//	small := fantasia.AtMost("bytes", 1e9, func(m model) float64 { return m.bytes })
//	study, err := fantasia.Optimize(space, fantasia.Options{Trials: 100}, loss, seconds, small)
//	err = study.Run(ctx, func(ctx context.Context, t *fantasia.Trial) (model, error) {
//		return train(ctx, rate.Of(t), width.Of(t))
//	})
//	front, err := study.Front()
//	for _, o := range front {
//		fmt.Println(loss.Of(o.Trial), seconds.Of(o.Trial), rate.Of(o.Trial), o.Knee)
//	}
//
// No trial is best: the result is the front, the trials that no other one within all limits beats. A
// single objective can have limits, too. A criterion that is known before a trial ends, such as bytes
// here, can be [Criterion.Early]: then trials that fail count for it, too.
//
// # On a server
//
// With [Options].Server, a server leads the study in place of this process, and keeps it. All
// processes that open a study of the same name share its trials: see package
// github.com/fantasia-hpo/fantasia/remote.
//
// # Without Run
//
// A program that has its own loop uses [Study.Ask] and [Study.Tell] in place of [Study.Run].
//
// # What is not there
//
// https://github.com/fantasia-hpo/fantasia/blob/main/docs/tune/go.md lists what study files have besides, and
// what takes its place. For programs in other languages, use the coordinator:
// https://github.com/fantasia-hpo/fantasia/tree/main/docs.
package fantasia
