package server_test

import (
	"testing"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/api/server"
	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/internal/test/servertest"
	"github.com/fantasia-hpo/fantasia/messaging"
)

// A log is sent part by part, over each protocol, of the attempt and the output that
// are asked for.
func TestTailTrialLogs(t *testing.T) {
	backend := servertest.New(t)
	create(t, backend, "logged")
	backend.Put("logged", evaluated(1, 0.5))
	backend.Put("logged", evaluated(2, 0.5))
	for _, p := range []coordinator.LogPart{
		{Attempt: 1, Stream: messaging.LogStdout, Data: []byte("first")},
		{Attempt: 2, Stream: messaging.LogStderr, Data: []byte{0xff, 0}},
		{Attempt: 2, Stream: messaging.LogStdout, Data: []byte("second")},
	} {
		backend.PutLog("logged", 1, p)
	}
	type part struct {
		Attempt int32
		Stream  fantasiav1.LogStream
		Data    string
	}
	const stdout, stderr = fantasiav1.LogStream_LOG_STREAM_STDOUT, fantasiav1.LogStream_LOG_STREAM_STDERR
	for protocol := range protocols {
		c := dial(t, serve(t, backend, server.Options{}), protocol)
		for _, tt := range []struct {
			request *fantasiav1.TailTrialLogsRequest
			want    []part
			code    connect.Code
		}{
			{&fantasiav1.TailTrialLogsRequest{Name: "studies/logged/trials/1"}, []part{{2, stderr, "\xff\x00"}, {2, stdout, "second"}}, 0},
			{&fantasiav1.TailTrialLogsRequest{Name: "studies/logged/trials/1", Stream: stdout, Lines: 1, Follow: true},
				[]part{{2, stdout, "second"}}, 0},
			{&fantasiav1.TailTrialLogsRequest{Name: "studies/logged/trials/1", Attempt: 1}, []part{{1, stdout, "first"}}, 0},
			{&fantasiav1.TailTrialLogsRequest{Name: "studies/logged/trials/2"}, nil, connect.CodeNotFound},
			{&fantasiav1.TailTrialLogsRequest{Name: "studies/logged/trials/3"}, nil, connect.CodeNotFound},
			{&fantasiav1.TailTrialLogsRequest{Name: "studies/other/trials/1"}, nil, connect.CodeNotFound},
			{&fantasiav1.TailTrialLogsRequest{Name: "studies/logged"}, nil, connect.CodeInvalidArgument},
			{&fantasiav1.TailTrialLogsRequest{Name: "studies/logged/trials/1", Lines: 100_001}, nil, connect.CodeInvalidArgument},
			{&fantasiav1.TailTrialLogsRequest{Name: "studies/logged/trials/1", Attempt: -1}, nil, connect.CodeInvalidArgument},
			{&fantasiav1.TailTrialLogsRequest{Name: "studies/logged/trials/1", Stream: 7}, nil, connect.CodeInvalidArgument},
		} {
			stream, err := c.TailTrialLogs(within(t), connect.NewRequest(tt.request))
			if err != nil {
				t.Fatal(err)
			}
			var got []part
			for stream.Receive() {
				got = append(got, part{stream.Msg().GetAttempt(), stream.Msg().GetStream(), string(stream.Msg().GetData())})
			}
			check(t, stream.Err(), tt.code, "%s: %v", protocol, tt.request)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s: %v (-want +got):\n%s", protocol, tt.request, diff)
			}
			if err := stream.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
