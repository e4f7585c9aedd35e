package cli

import (
	"context"
	"io"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/internal/show/display"
)

// LiveWatchOf is what a live watch of a server's study shows, and the error of
// asking for the study.
func LiveWatchOf(ctx context.Context, url, study string) (display.Now, error) {
	cmd := &cobra.Command{}
	cmd.SetContext(ctx)
	l := &liveWatch{
		ctx: ctx, remote: &remote{server: url, timeout: 10 * time.Second}, cmd: cmd, progress: display.NewProgress(ctx, io.Discard, false),
	}
	err := l.remote.call(cmd, func(ctx context.Context, c service) error {
		resp, err := c.GetStudy(ctx, connect.NewRequest(&fantasiav1.GetStudyRequest{Name: "studies/" + study}))
		if err == nil {
			l.show(resp.Msg.GetStudy())
		}
		return err
	})
	return l.now, err
}
