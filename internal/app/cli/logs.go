package cli

import (
	"context"
	"strconv"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/api/view"
)

// maxLines is the largest number of lines that trial logs shows at first.
const maxLines = 100_000

// logFlags are the flags of trial logs.
type logFlags struct {
	lines, attempt int32
	follow         bool
	stream         string
}

func newTrialLogsCommand(a *app, r *remote) *cobra.Command {
	var f logFlags
	c := r.reads(&cobra.Command{
		Use:   "logs STUDY TRIAL",
		Short: "Print the log of a trial",
		Long: `Prints the last lines that a trial's program wrote: its standard output to standard
output, its standard error to standard error. The log is that of the last attempt,
unless --attempt names an earlier one. The worker that ran the trial sends it; with
--state it is read from the disk.`,
		Example: `  fantasia trial logs digits 7 --follow
  fantasia trial logs 7 --state .fantasia/digits   # of fantasia run
  fantasia trial logs digits 7 --attempt 1 --stream stderr --lines 1000`,
		RunE: func(cmd *cobra.Command, args []string) error {
			name, number, err := r.trialIn(cmd, args)
			if err != nil {
				return err
			}
			request, err := f.request(cmd, name, number)
			if err != nil {
				return err
			}
			return r.printLog(cmd, a, request)
		},
	})
	flags := c.Flags()
	flags.Int32Var(&f.lines, "lines", 100, "how many of the last lines of each stream to print, 1 to 100000")
	flags.BoolVarP(&f.follow, "follow", "f", false, "also print what the program writes from now on, until the attempt ends")
	flags.StringVar(&f.stream, "stream", "", "print only this `STREAM`: stdout or stderr (default: both)")
	flags.Int32Var(&f.attempt, "attempt", 0, "`NUMBER` of the attempt (default: the last one)")
	choices(c, "stream", "stdout", "stderr")
	return c
}

// request returns what the flags ask for, of a trial.
func (f *logFlags) request(cmd *cobra.Command, name string, number int) (*fantasiav1.TailTrialLogsRequest, error) {
	stream, ok := map[string]fantasiav1.LogStream{
		"": fantasiav1.LogStream_LOG_STREAM_UNSPECIFIED, "stdout": fantasiav1.LogStream_LOG_STREAM_STDOUT,
		"stderr": fantasiav1.LogStream_LOG_STREAM_STDERR,
	}[f.stream]
	switch {
	case !ok:
		return nil, usagef(cmd, "--stream is %q; want stdout or stderr", f.stream)
	case f.lines < 1 || f.lines > maxLines:
		return nil, usagef(cmd, "--lines is %d; want 1 to %d", f.lines, maxLines)
	case f.attempt < 0 || f.attempt == 0 && cmd.Flags().Changed("attempt"):
		return nil, usagef(cmd, "--attempt is %d; want a number, 1 or more", f.attempt)
	}
	return &fantasiav1.TailTrialLogsRequest{
		Name: view.TrialName(name, number), Attempt: f.attempt, Stream: stream, Lines: f.lines, Follow: f.follow,
	}, nil
}

// trialIn returns the study and the number of the trial that the arguments STUDY TRIAL name.
func (r *remote) trialIn(cmd *cobra.Command, args []string) (name string, number int, err error) {
	name, rest, err := r.studyIn(cmd, args, 1)
	if err != nil {
		return "", 0, err
	}
	if _, err := studyName(cmd, name); err != nil {
		return "", 0, err
	}
	n, err := strconv.ParseInt(rest[0], 10, 32)
	if err != nil || n < 1 {
		return "", 0, usagef(cmd, "trial is %q; want a number, 1 or more", rest[0])
	}
	return name, int(n), nil
}

// printLog prints what the server sends of a log. A log whose server goes away is not
// taken up again: its lines would be printed twice.
func (r *remote) printLog(cmd *cobra.Command, a *app, request *fantasiav1.TailTrialLogsRequest) error {
	client, done, err := r.client(cmd)
	if err != nil {
		return err
	}
	defer done()
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	stream, err := client.TailTrialLogs(ctx, connect.NewRequest(request))
	if err == nil {
		err = follow(stream, func(p *fantasiav1.TailTrialLogsResponse) error {
			w := a.Stdout
			if p.GetStream() == fantasiav1.LogStream_LOG_STREAM_STDERR {
				w = a.Stderr
			}
			_, err := w.Write(p.GetData())
			return err
		})
	}
	return r.explain(err)
}
