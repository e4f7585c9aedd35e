package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/internal/app/local"
	"github.com/fantasia-hpo/fantasia/internal/base/each"
	"github.com/fantasia-hpo/fantasia/internal/exchange/fetch"
	"github.com/fantasia-hpo/fantasia/internal/show/diagnosis"
	studyfile "github.com/fantasia-hpo/fantasia/study/file"
)

func newStudyCommand(a *app) *cobra.Command {
	r := &remote{}
	c := &cobra.Command{
		Use:   "study",
		Short: "Create, follow and stop studies on a server, and read local ones",
		Example: `  fantasia study create -f digits.yaml
  fantasia study list --server http://coordinator:8080
  fantasia study watch digits
  fantasia study get digits -o json | jq .best
  fantasia study list --state .fantasia   # those of fantasia run`,
	}
	r.flags(c)
	return group(c,
		newStudyCreateCommand(a, r), newStudyUpdateCommand(a, r), newStudyEditCommand(a, r), newStudyListCommand(a, r), newStudyGetCommand(a, r),
		newStudyWatchCommand(a, r), newStudyDiagnoseCommand(a, r), newStudyCompareCommand(a, r), newStudyExportCommand(a, r),
		newStudyImportTrialsCommand(a, r),
		newStudyStopCommand(a, r), newStudyResumeCommand(a, r), newStudyDeleteCommand(a, r),
		newStudyArchiveCommand(a, r), newStudyUnarchiveCommand(a, r))
}

func newStudyCreateCommand(a *app, r *remote) *cobra.Command {
	var file, sources string
	var learnFrom []string
	c := &cobra.Command{
		Use:   "create -f FILE",
		Short: "Create a study from a study file",
		Long: `Sends a study file to the server, which checks it and starts the study. Every
problem of the file is shown with its line and column.

--learn-from names a file of trials that an earlier study has evaluated, such as
fantasia study export writes. The new study begins where they were good, and trusts
them as far as its own trials agree. Their parameters may have other ranges.
--suggest-sources creates nothing: it lists the server's studies from which the study
of a file could learn, and what to write into the file.`,
		Example: `  fantasia study create -f digits.yaml
  fantasia study create -f digits.yaml --learn-from march.csv
  fantasia study create --suggest-sources digits.yaml
  sed 's/maxTrials: 64/maxTrials: 128/' digits.yaml | fantasia study create -f -`,
	}
	c.Flags().StringVarP(&file, "file", "f", "", "the study `FILE`; - is standard input")
	learnFlag(c, &learnFrom)
	c.Flags().StringVar(&sources, "suggest-sources", "", "list the studies from which the study of this `FILE` could learn, and create none")
	return a.shows(c, func(cmd *cobra.Command, _ []string) (shown, error) {
		if sources != "" {
			if file != "" || len(learnFrom) > 0 {
				return shown{}, usagef(cmd, "--suggest-sources creates no study: leave --file and --learn-from out")
			}
			return a.suggestSources(cmd, r, sources)
		}
		text, err := a.readStudyFile(cmd, file)
		if err == nil && len(learnFrom) > 0 {
			text, err = a.withEarlier(file, text, learnFrom)
		}
		if err != nil {
			return shown{}, err
		}
		resp, err := ask(cmd, r, service.CreateStudy, &fantasiav1.CreateStudyRequest{StudyFile: text})
		s := view.FromStudy(resp.GetStudy())
		return line(s, "study %s created\nfollow it with: fantasia study watch %[1]s", s.Study), inFile(file, err)
	})
}

func newStudyUpdateCommand(a *app, r *remote) *cobra.Command {
	var file string
	c := &cobra.Command{
		Use:   "update -f FILE",
		Short: "Change a running study",
		Long: `Replaces the file of a study. The budget, the goal, the parallelism, the pool, the
algorithm's wait and fallbackAfter, how trials are run (mode, workdir, env,
timeout, grace, retries), and the ranges, values and priors of parameters may change;
anything that changes the meaning of results may not. A larger budget continues a study
that had completed. For single changes, see fantasia study edit.`,
		Example: "  fantasia study update -f digits.yaml",
	}
	c.Flags().StringVarP(&file, "file", "f", "", "the complete, changed study `FILE`; - is standard input")
	return a.shows(c, func(cmd *cobra.Command, _ []string) (shown, error) {
		text, err := a.readStudyFile(cmd, file)
		if err != nil {
			return shown{}, err
		}
		parsed, err := studyfile.Parse([]byte(text), studyfile.WithFile(file))
		if err != nil {
			return shown{}, err
		}
		resp, err := ask(cmd, r, service.UpdateStudy, &fantasiav1.UpdateStudyRequest{Name: "studies/" + parsed.Metadata.Name, StudyFile: text})
		return line(view.FromStudy(resp.GetStudy()), "study %s updated", parsed.Metadata.Name), inFile(file, err)
	})
}

func newStudyListCommand(a *app, r *remote) *cobra.Command {
	var labels []string
	var archived bool
	c := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List studies",
	}
	labelFilter(c, &labels)
	r.stateFlag(c)
	c.Flags().BoolVar(&archived, "archived", false, "list the studies in the server's archive instead")
	return a.shows(c, func(cmd *cobra.Command, _ []string) (shown, error) {
		wanted, err := wantedLabels(cmd, labels)
		switch {
		case err != nil:
			return shown{}, err
		case archived && (len(labels) > 0 || r.state != ""):
			return shown{}, usagef(cmd, "--archived lists all of a server's archive: want neither --label nor --state")
		case archived:
			return r.archived(cmd)
		}
		studies, err := r.studies(cmd, wanted)
		return shown{each.Of(studies, found.view), func(w screen) error { return studyTable(w, studies) }}, err
	})
}

// studies are those of the server, or those below --state, that have all of the labels.
func (r *remote) studies(cmd *cobra.Command, labels map[string]string) (studies []found, err error) {
	list := func() error {
		return r.call(cmd, func(ctx context.Context, c service) error {
			return fetch.EveryPage(func(token string) (string, error) {
				page, err := fetch.Send(ctx, c, service.ListStudies, &fantasiav1.ListStudiesRequest{PageSize: fetch.PageSize, PageToken: token,
					Labels: labels})
				for _, s := range page.GetStudies() {
					studies = append(studies, found{Study: s, directory: r.state, idle: r.idle})
				}
				return page.GetNextPageToken(), err
			})
		})
	}
	if r.state == "" {
		err = list()
		return studies, err
	}
	if err := readable(cmd, r.state); err != nil {
		return nil, err
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
	c := r.reads(&cobra.Command{
		Use:   "get STUDY",
		Short: "Show a study: its progress, its best and its recommended point",
	})
	return a.shows(c, func(cmd *cobra.Command, args []string) (shown, error) {
		name, _, err := r.studyIn(cmd, args, 0)
		if err != nil {
			return shown{}, err
		}
		got, err := r.get(cmd, name)
		if err != nil {
			return shown{}, err
		}
		s := found{Study: got, directory: r.state, idle: r.idle}
		s.front, err = r.front(cmd, got)
		return shown{s.view(), func(w screen) error {
			s.promising = r.promising(cmd, name, s.view())
			return studyBlock(w, s)
		}}, err
	})
}

// promising returns the stopped trial of a study on a server that is worth finishing, once the study has ended; nil if there is none.
// It is an extra: if it cannot be found out, the study is shown without it.
func (r *remote) promising(cmd *cobra.Command, name string, v view.Study) *diagnosis.Unfinished {
	if v.Directory != "" || !v.State.Terminal() {
		return nil
	}
	u, err := fetch.Promising(cmd.Context(), r.within(cmd), strings.TrimPrefix(name, "studies/"), v)
	if err != nil {
		return nil
	}
	return u
}

// onStudy makes a command print what it returns about the study that its first argument names.
func (a *app) onStudy(r *remote, c *cobra.Command, run func(cmd *cobra.Command, name string, args []string) (shown, error)) *cobra.Command {
	c.ValidArgsFunction = r.completeStudy
	return a.shows(c, func(cmd *cobra.Command, args []string) (shown, error) {
		name, err := studyName(cmd, args[0])
		if err != nil {
			return shown{}, err
		}
		return run(cmd, name, args)
	})
}

func newStudyStopCommand(a *app, r *remote) *cobra.Command {
	var reason string
	c := &cobra.Command{
		Use:   "stop STUDY",
		Short: "Stop a study; running trials are cancelled, results are kept",
	}
	c.Flags().StringVar(&reason, "reason", "", "the reason, which is kept with the study")
	return a.onStudy(r, c, func(cmd *cobra.Command, name string, _ []string) (shown, error) {
		resp, err := ask(cmd, r, service.StopStudy, &fantasiav1.StopStudyRequest{Name: name, Reason: reason})
		s := view.FromStudy(resp.GetStudy())
		return line(s, "study %s is %s", s.Study, s.State), err
	})
}

func newStudyResumeCommand(a *app, r *remote) *cobra.Command {
	c := r.reads(&cobra.Command{
		Use:   "resume STUDY",
		Short: "Continue a study that has ended, such as one whose trials failed",
		Long: `Continues a study that has failed or was stopped. Trials that have failed by then no
longer count for its end, so mend their cause first. A study whose budget is used up
needs a larger one: fantasia study edit. With --state, which names the state directory
of fantasia run or serve, run or serve it again afterwards.`,
		Example: `  fantasia study resume digits
  fantasia study resume digits --state .fantasia && fantasia run digits.yaml`,
	})
	return a.shows(c, func(cmd *cobra.Command, args []string) (shown, error) {
		name, _, err := r.studyIn(cmd, args, 0)
		if err != nil {
			return shown{}, err
		}
		if r.state != "" {
			if err := local.Resume(cmd.Context(), r.state, strings.TrimPrefix(name, "studies/"), a.Version); err != nil {
				return shown{}, err
			}
			got, err := r.get(cmd, name)
			s := view.FromStudy(got)
			return line(s, "study %s goes on when it is run again", s.Study), err
		}
		resp, err := ask(cmd, r, service.ResumeStudy, &fantasiav1.ResumeStudyRequest{Name: name})
		s := view.FromStudy(resp.GetStudy())
		return line(s, "study %s is %s", s.Study, s.State), err
	})
}

// deleted is the output of `fantasia study delete`.
type deleted struct {
	Study   string `json:"study"`
	Deleted bool   `json:"deleted"`
}

func newStudyDeleteCommand(a *app, r *remote) *cobra.Command {
	var force, ignore bool
	c := &cobra.Command{
		Use:     "delete STUDY",
		Aliases: []string{"rm"},
		Short:   "Delete a study and its trials",
	}
	c.Flags().BoolVar(&force, "force", false, "stop the study first if it is running")
	c.Flags().BoolVar(&ignore, "ignore-not-found", false, "succeed if the study does not exist")
	return a.onStudy(r, c, func(cmd *cobra.Command, name string, args []string) (shown, error) {
		_, err := ask(cmd, r, service.DeleteStudy, &fantasiav1.DeleteStudyRequest{Name: name, Force: force})
		if ignore && connect.CodeOf(err) == connect.CodeNotFound {
			return line(deleted{Study: args[0]}, "study %s does not exist", args[0]), nil
		}
		return line(deleted{Study: args[0], Deleted: true}, "study %s deleted", args[0]), err
	})
}

// readStudyFile reads the file of -f.
func (a *app) readStudyFile(cmd *cobra.Command, file string) (string, error) {
	if file == "" {
		return "", usagef(cmd, "no study file; want -f FILE")
	}
	from, err := a.open(file)
	if err != nil {
		return "", exitWith(ExitUsage, fmt.Errorf("read the study file: %w", err))
	}
	defer func() { _ = from.Close() }() // opened for reading only
	// One byte more than allowed detects a file that is too large.
	text, err := io.ReadAll(io.LimitReader(from, studyfile.MaxSize+1))
	switch {
	case err != nil:
		return "", exitWith(ExitUsage, fmt.Errorf("read the study file: %w", err))
	case len(text) == 0:
		return "", exitWith(ExitUsage, fmt.Errorf("%s is empty; want a study file", file))
	case len(text) > studyfile.MaxSize:
		return "", exitWith(ExitUsage, fmt.Errorf("%s is larger than %d bytes", file, studyfile.MaxSize))
	case !utf8.Valid(text):
		return "", exitWith(ExitUsage, fmt.Errorf("%s is not UTF-8 text", file))
	}
	return string(text), nil
}

// say writes formatted text.
func say(w io.Writer, format string, args ...any) error {
	if _, err := fmt.Fprintf(w, strings.TrimSuffix(format, "\n")+"\n", args...); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}
