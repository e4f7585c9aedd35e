package server

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/study"
)

// internalError is an error that callers are not told: it may hold addresses
// and keys that are none of theirs.
type internalError struct{ cause error }

// Error says nothing of the cause.
func (*internalError) Error() string { return "internal error: see the coordinator's log" }

// plainError is an error in other words.
type plainError struct {
	text  string
	cause error
}

// Error is the other words.
func (e *plainError) Error() string { return e.text }

// Unwrap is the error itself.
func (e *plainError) Unwrap() error { return e.cause }

// toConnect gives a Backend's error the code that tells callers what to do.
func toConnect(err error) error {
	if err == nil {
		return nil
	}
	if connected, ok := errors.AsType[*connect.Error](err); ok {
		return connected
	}
	if problems, ok := errors.AsType[*study.Problems](err); ok {
		return badFile(problems)
	}
	for _, known := range []struct {
		err  error
		code connect.Code
	}{
		{ErrNotFound, connect.CodeNotFound},
		{ErrExists, connect.CodeAlreadyExists},
		{ErrPrecondition, connect.CodeFailedPrecondition},
		{ErrUnavailable, connect.CodeUnavailable},
		{ErrEtcdAway, connect.CodeUnavailable},
		{context.Canceled, connect.CodeCanceled},
		{context.DeadlineExceeded, connect.CodeDeadlineExceeded},
	} {
		if errors.Is(err, known.err) {
			// A code says what a sentinel says: callers need not read both.
			said := connect.NewError(known.code, &plainError{strings.TrimPrefix(err.Error(), known.err.Error()+": "), err})
			if errors.Is(err, ErrEtcdAway) {
				return withDetail(said, &errdetails.ErrorInfo{Reason: view.ReasonEtcdAway, Domain: view.ErrorDomain})
			}
			return said
		}
	}
	return connect.NewError(connect.CodeInternal, &internalError{cause: err})
}

// badFile is what is wrong with a study file: a line a problem in the message,
// and a violation a problem in the detail.
func badFile(problems *study.Problems) error {
	err := connect.NewError(connect.CodeInvalidArgument, &study.Problems{List: problems.List})
	bad := &errdetails.BadRequest{}
	for _, p := range problems.List {
		field := p.Path
		if field == "" {
			field = "study_file"
		}
		bad.FieldViolations = append(bad.FieldViolations, &errdetails.BadRequest_FieldViolation{
			Field: field, Description: p.String(),
		})
	}
	return withDetail(err, bad)
}

// badField is a request's field that the handlers cannot read.
func badField(field string, cause error) error {
	return withDetail(connect.NewError(connect.CodeInvalidArgument, cause), &errdetails.BadRequest{
		FieldViolations: []*errdetails.BadRequest_FieldViolation{{Field: field, Description: cause.Error()}},
	})
}

// retryAfter is how long callers wait before they send a refused request again.
const retryAfter = 500 * time.Millisecond

// again is an error of a request that nothing has been done of: it can be sent
// again, whatever it asks for.
func again(format string, args ...any) error {
	return withDetail(connect.NewError(connect.CodeUnavailable, fmt.Errorf(format+"; try again", args...)),
		&errdetails.RetryInfo{RetryDelay: durationpb.New(retryAfter)})
}

// withDetail adds a detail to an error; one that cannot be encoded is left out,
// since the message says the same.
func withDetail(err *connect.Error, message proto.Message) error {
	if detail, encodeErr := connect.NewErrorDetail(message); encodeErr == nil {
		err.AddDetail(detail)
	}
	return err
}
