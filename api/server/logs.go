package server

import (
	"cmp"
	"context"

	"connectrpc.com/connect"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/messaging"
)

// defaultLines is how many lines of each output are sent by default.
const defaultLines = 100

// TailTrialLogs sends the end of a trial's output.
func (s *service) TailTrialLogs(
	ctx context.Context, req *connect.Request[fantasiav1.TailTrialLogsRequest], stream *connect.ServerStream[fantasiav1.TailTrialLogsResponse],
) error {
	ctx, end := s.watch(ctx)
	defer end()
	study, number, err := view.ParseTrialName(req.Msg.GetName())
	if err != nil {
		return badField("name", err)
	}
	o := coordinator.LogTail{
		Attempt: int(req.Msg.GetAttempt()), Streams: logStreams(req.Msg.GetStream()),
		Lines: int(req.Msg.GetLines()), Follow: req.Msg.GetFollow(),
	}
	o.Lines = cmp.Or(o.Lines, defaultLines)
	for p, err := range s.backend.TailLogs(ctx, study, number, o) {
		if err != nil {
			return watchError(ctx, err)
		}
		if err := stream.Send(&fantasiav1.TailTrialLogsResponse{Attempt: int32(p.Attempt), Stream: toLogStream(p.Stream),
			Data: p.Data}); err != nil {
			return err
		}
	}
	return watchError(ctx, nil)
}

// logStreams returns the outputs that a request asks for.
func logStreams(s fantasiav1.LogStream) []messaging.LogStream {
	switch s {
	case fantasiav1.LogStream_LOG_STREAM_STDOUT:
		return []messaging.LogStream{messaging.LogStdout}
	case fantasiav1.LogStream_LOG_STREAM_STDERR:
		return []messaging.LogStream{messaging.LogStderr}
	default:
		return []messaging.LogStream{messaging.LogStdout, messaging.LogStderr}
	}
}

func toLogStream(s messaging.LogStream) fantasiav1.LogStream {
	if s == messaging.LogStderr {
		return fantasiav1.LogStream_LOG_STREAM_STDERR
	}
	return fantasiav1.LogStream_LOG_STREAM_STDOUT
}
