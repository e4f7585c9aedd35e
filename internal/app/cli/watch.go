package cli

import (
	"context"
	"errors"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/internal/app/display"
	"github.com/fantasia-hpo/fantasia/internal/base/backoff"
	"github.com/fantasia-hpo/fantasia/study"
)

// A broken watch is resumed, as a coordinator may restart.
const (
	watchRetry    = time.Second
	watchPatience = time.Minute
)

func newStudyWatchCommand(a *app, r *remote) *cobra.Command {
	var output format
	c := &cobra.Command{
		Use:   "watch STUDY",
		Short: "Follow a study until it ends",
		Long: `Follows a study until it ends: in place on a terminal, otherwise with one line
whenever trials have ended. Exits with 0 if the study completed or was stopped, and
with 3 if it failed or no trial completed, so scripts can wait for a study.`,
		ValidArgsFunction: r.completeStudy,
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := studyName(cmd, args[0])
			if err != nil {
				return err
			}
			var last view.Study
			show := func(s *fantasiav1.Study) error {
				return output.stream(a.Stdout, last, func(w screen) error { return say(w, "%s", studyLine(s)) })
			}
			_, live := terminal(a.Stdout)
			if live = live && output == formatText; live {
				l := &liveWatch{remote: r, cmd: cmd, progress: display.NewProgress(cmd.Context(), direct(a.Stdout), true)}
				line := show
				show = func(s *fantasiav1.Study) error {
					l.show(s)
					if last.State.Terminal() {
						l.progress.Close()
						return line(s)
					}
					return nil
				}
				defer l.progress.Close()
			}
			err = watch(cmd, r, func(ctx context.Context, c service) (*connect.ServerStreamForClient[fantasiav1.WatchStudyResponse], error) {
				return c.WatchStudy(ctx, connect.NewRequest(&fantasiav1.WatchStudyRequest{Name: name}))
			}, func(m *fantasiav1.WatchStudyResponse) error {
				before := last
				last = view.FromStudy(m.GetStudy())
				if !news(before, last) && !live {
					return nil
				}
				return show(m.GetStudy())
			})
			if err == nil && (last.State == study.Failed || last.State.Terminal() && last.Trials.Completed == 0) {
				return exitWith(ExitFailed, nil)
			}
			return err
		},
	}
	addOutput(c, &output)
	return c
}

// news reports whether a change is worth showing. A trial that waits or is handed out
// is not.
func news(before, now view.Study) bool {
	b, n := before.Trials, now.Trials
	b.Pending, b.Queued, b.Running = n.Pending, n.Queued, n.Running
	return before.State != now.State || b != n
}

// watch opens a stream and passes each of its messages to show until the stream ends.
// If the server goes away, it opens the stream again, for up to a minute without a
// message.
func watch[M any](cmd *cobra.Command, r *remote,
	open func(context.Context, service) (*connect.ServerStreamForClient[M], error), show func(*M) error,
) error {
	client, done, err := r.client(cmd)
	if err != nil {
		return err
	}
	defer done()
	ctx := cmd.Context()
	reached := false
	for heard := time.Now(); ; {
		stream, err := open(ctx, client)
		if err == nil {
			err = follow(stream, func(m *M) error {
				reached, heard = true, time.Now()
				return show(m)
			})
		}
		err = uncancelled(ctx, err)
		if err == nil || connect.CodeOf(err) != connect.CodeUnavailable || !reached || time.Since(heard) > watchPatience {
			return r.explain(err)
		}
		if !backoff.Sleep(ctx, watchRetry) {
			return ctx.Err()
		}
	}
}

// follow passes each message to show until the stream ends.
func follow[M any](stream *connect.ServerStreamForClient[M], show func(*M) error) (err error) {
	defer func() { err = errors.Join(err, stream.Close()) }()
	for stream.Receive() {
		if err := show(stream.Msg()); err != nil {
			return err
		}
	}
	return stream.Err()
}
