package server

import (
	"context"
	"slices"
	"strings"

	"connectrpc.com/connect"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/study"
)

// The prefixes of resource names.
const (
	studiesPrefix = "studies/"
	workersPrefix = "workers/"
)

// CreateStudy starts a study.
func (s *service) CreateStudy(
	ctx context.Context, req *connect.Request[fantasiav1.CreateStudyRequest],
) (*connect.Response[fantasiav1.CreateStudyResponse], error) {
	m, err := s.study(s.backend.Create(ctx, []byte(req.Msg.GetStudyFile())))
	return respond(&fantasiav1.CreateStudyResponse{Study: m}, err)
}

// GetStudy returns a study as it is now.
func (s *service) GetStudy(
	ctx context.Context, req *connect.Request[fantasiav1.GetStudyRequest],
) (*connect.Response[fantasiav1.GetStudyResponse], error) {
	m, err := s.study(s.backend.Study(ctx, studyOf(req.Msg.GetName())))
	return respond(&fantasiav1.GetStudyResponse{Study: m}, err)
}

// UpdateStudy replaces a study's file with a compatible one, or sets some of its attributes.
func (s *service) UpdateStudy(
	ctx context.Context, req *connect.Request[fantasiav1.UpdateStudyRequest],
) (*connect.Response[fantasiav1.UpdateStudyResponse], error) {
	if attributes := req.Msg.GetAttributes(); attributes != nil {
		m, err := s.study(s.backend.Annotate(ctx, studyOf(req.Msg.GetName()), attributes.AsMap()))
		return respond(&fantasiav1.UpdateStudyResponse{Study: m}, err)
	}
	m, err := s.study(s.backend.Update(ctx, studyOf(req.Msg.GetName()), []byte(req.Msg.GetStudyFile()), int(req.Msg.GetSpaceVersion())))
	return respond(&fantasiav1.UpdateStudyResponse{Study: m}, err)
}

// StopStudy ends a study.
func (s *service) StopStudy(
	ctx context.Context, req *connect.Request[fantasiav1.StopStudyRequest],
) (*connect.Response[fantasiav1.StopStudyResponse], error) {
	m, err := s.study(s.backend.Stop(ctx, studyOf(req.Msg.GetName()), req.Msg.GetReason()))
	return respond(&fantasiav1.StopStudyResponse{Study: m}, err)
}

// ResumeStudy continues a study that has ended.
func (s *service) ResumeStudy(
	ctx context.Context, req *connect.Request[fantasiav1.ResumeStudyRequest],
) (*connect.Response[fantasiav1.ResumeStudyResponse], error) {
	m, err := s.study(s.backend.Resume(ctx, studyOf(req.Msg.GetName())))
	return respond(&fantasiav1.ResumeStudyResponse{Study: m}, err)
}

// DeleteStudy deletes a study and its trials.
func (s *service) DeleteStudy(
	ctx context.Context, req *connect.Request[fantasiav1.DeleteStudyRequest],
) (*connect.Response[fantasiav1.DeleteStudyResponse], error) {
	err := s.backend.Delete(ctx, studyOf(req.Msg.GetName()), req.Msg.GetForce())
	return respond(&fantasiav1.DeleteStudyResponse{}, err)
}

// ListStudies returns a page of studies.
func (s *service) ListStudies(
	ctx context.Context, req *connect.Request[fantasiav1.ListStudiesRequest],
) (*connect.Response[fantasiav1.ListStudiesResponse], error) {
	after, err := readToken(req.Msg.GetPageToken())
	if err != nil {
		return nil, err
	}
	size := pageSize(req.Msg.GetPageSize())
	// One more than is asked for tells whether there is another page.
	studies, err := s.labelled(ctx, after, size+1, req.Msg.GetLabels())
	if err != nil {
		return nil, toConnect(err)
	}
	page := &fantasiav1.ListStudiesResponse{}
	if len(studies) > size {
		studies = studies[:size]
		page.NextPageToken = writeToken(studies[size-1].Spec.Definition.Metadata.Name)
	}
	for _, found := range studies {
		m, err := toStudy(found, s.now(), false)
		if err != nil {
			return nil, toConnect(err)
		}
		page.Studies = append(page.Studies, m)
	}
	return respond(page, nil)
}

// labelled returns up to limit studies after a name, with all of the labels.
func (s *service) labelled(ctx context.Context, after string, limit int, labels map[string]string) ([]Study, error) {
	if len(labels) == 0 {
		return s.backend.Studies(ctx, after, limit)
	}
	return scan(after, limit,
		func(after string, limit int) ([]Study, error) { return s.backend.Studies(ctx, after, limit) },
		func(found Study) string { return found.Spec.Definition.Metadata.Name },
		func(found Study) bool { return study.HasLabels(found.Spec.Definition.Metadata.Labels, labels) })
}

// WatchStudy sends a study whenever it changes, until it has ended.
func (s *service) WatchStudy(
	ctx context.Context, req *connect.Request[fantasiav1.WatchStudyRequest], stream *connect.ServerStream[fantasiav1.WatchStudyResponse],
) error {
	ctx, end := s.watch(ctx)
	defer end()
	for now, err := range s.backend.WatchStudy(ctx, studyOf(req.Msg.GetName())) {
		if err != nil {
			return watchError(ctx, err)
		}
		m, err := toStudy(now, s.now(), false)
		if err != nil {
			return toConnect(err)
		}
		if err := stream.Send(&fantasiav1.WatchStudyResponse{Study: m}); err != nil {
			return err
		}
		if now.Status.State.Terminal() {
			return nil
		}
	}
	return watchError(ctx, nil)
}

// ListWorkers returns the workers by name.
func (s *service) ListWorkers(
	ctx context.Context, req *connect.Request[fantasiav1.ListWorkersRequest],
) (*connect.Response[fantasiav1.ListWorkersResponse], error) {
	workers, err := s.backend.Workers(ctx)
	if err != nil {
		return nil, toConnect(err)
	}
	list := &fantasiav1.ListWorkersResponse{}
	for _, w := range workers {
		if pool := req.Msg.GetPool(); pool == "" || pool == w.Heartbeat.Pool {
			list.Workers = append(list.Workers, toWorker(w))
		}
	}
	slices.SortFunc(list.Workers, func(a, b *fantasiav1.Worker) int { return strings.Compare(a.GetName(), b.GetName()) })
	return respond(list, nil)
}

// study converts a backend's study to a message with its file, or returns err.
func (s *service) study(found Study, err error) (*fantasiav1.Study, error) {
	if err != nil {
		return nil, err
	}
	return toStudy(found, s.now(), true)
}

// studyOf returns the study's name or id in a resource name, which has been validated.
func studyOf(name string) string { return strings.TrimPrefix(name, studiesPrefix) }

// respond returns the message as a response, or the error as a Connect error.
func respond[T any](m *T, err error) (*connect.Response[T], error) {
	if err != nil {
		return nil, toConnect(err)
	}
	return connect.NewResponse(m), nil
}
