package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/api/fantasia/v1/fantasiav1connect"
	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/internal/app/local"
	"github.com/fantasia-hpo/fantasia/study"
)

// pageSize is how many results are asked for at a time.
const pageSize = 500

func newStudyCommand(a *app) *cobra.Command {
	r := &remote{}
	c := &cobra.Command{
		Use:   "study",
		Short: "Create, follow and end studies on a server, and read local ones",
		Example: `  fantasia study create -f digits.yaml
  fantasia study list --server http://coordinator:8080
  fantasia study watch digits
  fantasia study get digits -o json | jq .best
  fantasia study list --state .fantasia   # those of fantasia run`,
	}
	r.flags(c)
	return group(c,
		newStudyCreateCommand(a, r), newStudyUpdateCommand(a, r), newStudyListCommand(a, r), newStudyGetCommand(a, r),
		newStudyWatchCommand(a, r), newStudyDiagnoseCommand(a, r), newStudyStopCommand(a, r), newStudyDeleteCommand(a, r))
}

func newStudyCreateCommand(a *app, r *remote) *cobra.Command {
	var file string
	var output format
	c := &cobra.Command{
		Use:   "create -f FILE",
		Short: "Create the study of a study file",
		Long: `Create sends a study file to the server, which checks it and starts its study.
Every problem of the file is shown with its line and column.`,
		Example: `  fantasia study create -f digits.yaml
  sed 's/maxTrials: 64/maxTrials: 128/' digits.yaml | fantasia study create -f -`,
		Args: arguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			text, err := a.readStudyFile(cmd, file)
			if err != nil {
				return err
			}
			return r.call(cmd, func(ctx context.Context, c fantasiav1connect.StudyServiceClient) error {
				resp, err := c.CreateStudy(ctx, connect.NewRequest(&fantasiav1.CreateStudyRequest{StudyFile: text}))
				if err != nil {
					return inFile(file, err)
				}
				created := view.FromStudy(resp.Msg.GetStudy())
				return output.write(a.Stdout, created, func(w io.Writer) error {
					return say(w, "study %s created\nfollow it with: fantasia study watch %s", created.Study, created.Study)
				})
			})
		},
	}
	c.Flags().StringVarP(&file, "file", "f", "", "the study `FILE`; - is standard input")
	addOutput(c, &output)
	return c
}

func newStudyUpdateCommand(a *app, r *remote) *cobra.Command {
	var file string
	var output format
	c := &cobra.Command{
		Use:   "update -f FILE",
		Short: "Change a study's budget, goal, parallelism, pool, or how trials are run",
		Long: `Update replaces a study's file. The budget, the goal, the parallelism, the pool and
how trials are run (mode, workdir, env, timeout, grace, retries) may change; what the
results mean may not. A larger budget lets a study that had completed go on.`,
		Example: "  fantasia study update -f digits.yaml",
		Args:    arguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			text, err := a.readStudyFile(cmd, file)
			if err != nil {
				return err
			}
			parsed, err := study.Parse([]byte(text), study.WithFile(file))
			if err != nil {
				return err
			}
			return r.call(cmd, func(ctx context.Context, c fantasiav1connect.StudyServiceClient) error {
				resp, err := c.UpdateStudy(ctx, connect.NewRequest(&fantasiav1.UpdateStudyRequest{
					Name: "studies/" + parsed.Metadata.Name, StudyFile: text,
				}))
				if err != nil {
					return inFile(file, err)
				}
				return output.write(a.Stdout, view.FromStudy(resp.Msg.GetStudy()), func(w io.Writer) error {
					return say(w, "study %s updated", parsed.Metadata.Name)
				})
			})
		},
	}
	c.Flags().StringVarP(&file, "file", "f", "", "the whole study `FILE` with its changes; - is standard input")
	addOutput(c, &output)
	return c
}

func newStudyListCommand(a *app, r *remote) *cobra.Command {
	var output format
	c := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List the studies",
		Args:    arguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			studies, err := r.studies(cmd)
			if err != nil {
				return err
			}
			list := make([]view.Study, len(studies))
			for i, s := range studies {
				list[i] = view.FromStudy(s)
			}
			return output.write(a.Stdout, list, func(w io.Writer) error { return studyTable(w, studies) })
		},
	}
	r.stateFlag(c)
	addOutput(c, &output)
	return c
}

// studies are those of the server, or those below --state.
func (r *remote) studies(cmd *cobra.Command) (studies []*fantasiav1.Study, err error) {
	list := func() error {
		return r.call(cmd, func(ctx context.Context, c fantasiav1connect.StudyServiceClient) error {
			return everyPage(func(token string) (next string, err error) {
				page, err := c.ListStudies(ctx, connect.NewRequest(&fantasiav1.ListStudiesRequest{PageSize: pageSize, PageToken: token}))
				if err != nil {
					return "", err
				}
				studies = append(studies, page.Msg.GetStudies()...)
				return page.Msg.GetNextPageToken(), nil
			})
		})
	}
	if r.state == "" {
		err = list()
		return studies, err
	}
	states, err := local.States(r.state)
	if err != nil {
		return nil, exitWith(ExitUsage, err)
	}
	for _, r.state = range states {
		if err := list(); err != nil {
			return nil, err
		}
	}
	return studies, nil
}

func newStudyGetCommand(a *app, r *remote) *cobra.Command {
	var output format
	c := &cobra.Command{
		Use:               "get STUDY",
		Short:             "Show a study, by name or id: how far it has come, its best and its recommended point",
		Args:              r.argumentsOrState,
		ValidArgsFunction: r.completeStudy,
		RunE: func(cmd *cobra.Command, args []string) error {
			given, _, err := r.studyIn(cmd, args, 0)
			if err != nil {
				return err
			}
			name, err := studyName(cmd, given)
			if err != nil {
				return err
			}
			return r.call(cmd, func(ctx context.Context, c fantasiav1connect.StudyServiceClient) error {
				resp, err := c.GetStudy(ctx, connect.NewRequest(&fantasiav1.GetStudyRequest{Name: name}))
				if err != nil {
					return err
				}
				s := resp.Msg.GetStudy()
				return output.write(a.Stdout, view.FromStudy(s), func(w io.Writer) error { return studyBlock(w, s) })
			})
		},
	}
	r.stateFlag(c)
	addOutput(c, &output)
	return c
}

func newStudyStopCommand(a *app, r *remote) *cobra.Command {
	var reason string
	var output format
	c := &cobra.Command{
		Use:               "stop STUDY",
		Short:             "End a study: running trials are cancelled, results are kept",
		Args:              arguments,
		ValidArgsFunction: r.completeStudy,
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := studyName(cmd, args[0])
			if err != nil {
				return err
			}
			return r.call(cmd, func(ctx context.Context, c fantasiav1connect.StudyServiceClient) error {
				resp, err := c.StopStudy(ctx, connect.NewRequest(&fantasiav1.StopStudyRequest{Name: name, Reason: reason}))
				if err != nil {
					return err
				}
				s := view.FromStudy(resp.Msg.GetStudy())
				return output.write(a.Stdout, s, func(w io.Writer) error { return say(w, "study %s is %s", s.Study, s.State) })
			})
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "why, for whoever looks at the study later")
	addOutput(c, &output)
	return c
}

// deleted is what `fantasia study delete` prints.
type deleted struct {
	Study   string `json:"study"`
	Deleted bool   `json:"deleted"`
}

func newStudyDeleteCommand(a *app, r *remote) *cobra.Command {
	var force, ignore bool
	var output format
	c := &cobra.Command{
		Use:               "delete STUDY",
		Aliases:           []string{"rm"},
		Short:             "Forget a study and its trials",
		Args:              arguments,
		ValidArgsFunction: r.completeStudy,
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := studyName(cmd, args[0])
			if err != nil {
				return err
			}
			return r.call(cmd, func(ctx context.Context, c fantasiav1connect.StudyServiceClient) error {
				_, err := c.DeleteStudy(ctx, connect.NewRequest(&fantasiav1.DeleteStudyRequest{Name: name, Force: force}))
				if ignore && connect.CodeOf(err) == connect.CodeNotFound {
					return output.write(a.Stdout, deleted{Study: args[0]}, func(w io.Writer) error { return say(w, "there is no study %s", args[0]) })
				}
				if err != nil {
					return err
				}
				return output.write(a.Stdout, deleted{Study: args[0], Deleted: true}, func(w io.Writer) error {
					return say(w, "study %s deleted", args[0])
				})
			})
		},
	}
	c.Flags().BoolVar(&force, "force", false, "stop the study first where it runs")
	c.Flags().BoolVar(&ignore, "ignore-not-found", false, "succeed where there is no such study")
	addOutput(c, &output)
	return c
}

// readStudyFile reads the file that -f gives.
func (a *app) readStudyFile(cmd *cobra.Command, file string) (string, error) {
	if file == "" {
		return "", usagef(cmd, "no study file: give one with -f FILE")
	}
	from := a.Stdin
	if file != "-" {
		opened, err := os.Open(file)
		if err != nil {
			return "", exitWith(ExitUsage, fmt.Errorf("read the study file: %w", err))
		}
		defer func() { _ = opened.Close() }() // only read
		from = opened
	}
	// One byte more than is allowed, so that what is too large is seen to be.
	text, err := io.ReadAll(io.LimitReader(from, study.MaxSize+1))
	switch {
	case err != nil:
		return "", exitWith(ExitUsage, fmt.Errorf("read the study file: %w", err))
	case len(text) == 0:
		return "", exitWith(ExitUsage, fmt.Errorf("%s is empty; want a study file", file))
	case len(text) > study.MaxSize:
		return "", exitWith(ExitUsage, fmt.Errorf("%s is larger than %d bytes", file, study.MaxSize))
	case !utf8.Valid(text):
		return "", exitWith(ExitUsage, fmt.Errorf("%s is not UTF-8 text", file))
	}
	return string(text), nil
}

// say writes a line or several.
func say(w io.Writer, format string, args ...any) error {
	if _, err := fmt.Fprintf(w, strings.TrimSuffix(format, "\n")+"\n", args...); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}
