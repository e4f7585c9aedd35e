package server

import (
	"context"
	"slices"
	"strings"

	"connectrpc.com/connect"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/coordinator/archive"
)

// ArchiveStudy moves an ended study to the archive.
func (s *service) ArchiveStudy(
	ctx context.Context, req *connect.Request[fantasiav1.ArchiveStudyRequest],
) (*connect.Response[fantasiav1.ArchiveStudyResponse], error) {
	archived, err := s.backend.Archive(ctx, studyOf(req.Msg.GetName()))
	return respond(&fantasiav1.ArchiveStudyResponse{Study: toArchived(archived)}, err)
}

// UnarchiveStudy moves a study back from the archive.
func (s *service) UnarchiveStudy(
	ctx context.Context, req *connect.Request[fantasiav1.UnarchiveStudyRequest],
) (*connect.Response[fantasiav1.UnarchiveStudyResponse], error) {
	m, err := s.study(s.backend.Unarchive(ctx, studyOf(req.Msg.GetName())))
	return respond(&fantasiav1.UnarchiveStudyResponse{Study: m}, err)
}

// ListArchivedStudies returns a page of archived studies.
func (s *service) ListArchivedStudies(
	ctx context.Context, req *connect.Request[fantasiav1.ListArchivedStudiesRequest],
) (*connect.Response[fantasiav1.ListArchivedStudiesResponse], error) {
	after, err := readToken(req.Msg.GetPageToken())
	if err != nil {
		return nil, err
	}
	all, err := s.backend.Archived(ctx)
	if err != nil {
		return nil, toConnect(err)
	}
	place := func(a archive.Entry) string { return a.Name + " " + a.ID }
	slices.SortFunc(all, func(a, b archive.Entry) int { return strings.Compare(place(a), place(b)) })
	size := pageSize(req.Msg.GetPageSize())
	page := &fantasiav1.ListArchivedStudiesResponse{}
	for i, a := range all {
		if place(a) <= after {
			continue
		}
		if len(page.Studies) == size {
			page.NextPageToken = writeToken(place(all[i-1]))
			break
		}
		page.Studies = append(page.Studies, toArchived(a))
	}
	return respond(page, nil)
}

func toArchived(a archive.Entry) *fantasiav1.ArchivedStudy {
	return &fantasiav1.ArchivedStudy{
		Name: studiesPrefix + a.Name, Uid: a.ID, State: toStudyState(a.State), Trials: int32(a.Trials),
		CreateTime: toTime(a.Started), EndTime: toTime(a.Ended), ArchiveTime: toTime(a.Archived), Bytes: a.Bytes,
	}
}
