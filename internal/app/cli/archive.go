package cli

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/internal/base/each"
	"github.com/fantasia-hpo/fantasia/internal/exchange/fetch"
	"github.com/fantasia-hpo/fantasia/internal/show/layout"
)

const archiveLong = `Moves a study that has ended, its trials and their measurements to a file of the
server's archive. It then costs the coordinators nothing. Other commands do not find it
until fantasia study unarchive brings it back as it was.

The coordinators need --archive; fantasia serve keeps its archive in its state directory.`

// archivedStudy is a study in the archive, as commands print it.
type archivedStudy struct {
	Study    string    `json:"study"`
	ID       string    `json:"id"`
	State    string    `json:"state"`
	Trials   int       `json:"trials"`
	Created  time.Time `json:"created"`
	Ended    time.Time `json:"ended"`
	Archived time.Time `json:"archived"`
	Bytes    int64     `json:"bytes"`
}

func viewArchived(m *fantasiav1.ArchivedStudy) archivedStudy {
	return archivedStudy{
		Study: strings.TrimPrefix(m.GetName(), "studies/"), ID: m.GetUid(), State: view.EnumName(m.GetState()), Trials: int(m.GetTrials()),
		Created: m.GetCreateTime().AsTime(), Ended: m.GetEndTime().AsTime(), Archived: m.GetArchiveTime().AsTime(), Bytes: m.GetBytes(),
	}
}

func newStudyArchiveCommand(a *app, r *remote) *cobra.Command {
	return a.onStudy(r, &cobra.Command{
		Use:   "archive STUDY",
		Short: "Move an ended study to the server's archive",
		Long:  archiveLong,
	}, func(cmd *cobra.Command, name string, _ []string) (shown, error) {
		resp, err := ask(cmd, r, service.ArchiveStudy, &fantasiav1.ArchiveStudyRequest{Name: name})
		s := viewArchived(resp.GetStudy())
		return line(s, "study %s archived with its %d trials", s.Study, s.Trials), err
	})
}

func newStudyUnarchiveCommand(a *app, r *remote) *cobra.Command {
	return a.shows(&cobra.Command{
		Use:   "unarchive STUDY",
		Short: "Bring a study back from the server's archive",
		Long: `Brings a study back from the server's archive, as it was: see fantasia study archive.
If the archive has several studies of that name, the one that was archived last comes
back; give the id of another one. It fails if there is a study of that name already.`,
	}, func(cmd *cobra.Command, args []string) (shown, error) {
		name, err := studyName(cmd, args[0])
		if err != nil {
			return shown{}, err
		}
		resp, err := ask(cmd, r, service.UnarchiveStudy, &fantasiav1.UnarchiveStudyRequest{Name: name})
		s := view.FromStudy(resp.GetStudy())
		return line(s, "study %s is back: %s", s.Study, s.State), err
	})
}

// archived lists the server's archive.
func (r *remote) archived(cmd *cobra.Command) (shown, error) {
	list := []archivedStudy{}
	err := r.call(cmd, func(ctx context.Context, c service) error {
		return fetch.EveryPage(func(token string) (string, error) {
			page, err := fetch.Send(ctx, c, service.ListArchivedStudies, &fantasiav1.ListArchivedStudiesRequest{PageSize: fetch.PageSize,
				PageToken: token})
			for _, s := range page.GetStudies() {
				list = append(list, viewArchived(s))
			}
			return page.GetNextPageToken(), err
		})
	})
	return shown{list, func(w screen) error { return archivedTable(w, list) }}, err
}

// archivedTable prints archived studies, a line each.
func archivedTable(w screen, list []archivedStudy) error {
	columns := []layout.Column{
		{Head: "STUDY", Least: 8}, {Head: "STATE"}, {Head: "TRIALS"}, {Head: "ENDED", Rank: 1}, {Head: "ARCHIVED", Rank: 2},
		{Head: "ID", Rank: 3},
	}
	return w.table(columns, each.Of(list, func(s archivedStudy) []string {
		return []string{s.Study, s.State, strconv.Itoa(s.Trials), s.Ended.Format(time.DateOnly), s.Archived.Format(time.DateOnly), s.ID}
	}))
}
