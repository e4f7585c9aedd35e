package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/coordinator/quota"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/telemetry"
)

// internalError is an error whose text is hidden from callers, since it may hold
// addresses and keys.
type internalError struct{ cause error }

// Error returns a text without the cause.
func (*internalError) Error() string { return "internal error: see the coordinator's log" }

// Reworded is an error with another text.
type Reworded struct {
	Text  string
	Cause error
}

// Error returns the new text.
func (e *Reworded) Error() string { return e.Text }

// Unwrap returns the original error.
func (e *Reworded) Unwrap() error { return e.Cause }

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
	if full, ok := errors.AsType[*quota.Exceeded](err); ok {
		return withDetail(connect.NewError(connect.CodeResourceExhausted, full), &errdetails.QuotaFailure{
			Violations: []*errdetails.QuotaFailure_Violation{{Subject: "quotas/" + string(full.Name), Description: full.Error()}},
		})
	}
	for _, known := range []struct {
		err  error
		code connect.Code
	}{
		{study.ErrDamaged, connect.CodeDataLoss}, // also of a study that cannot be loaded for that
		{study.ErrNotFound, connect.CodeNotFound},
		{study.ErrExists, connect.CodeAlreadyExists},
		{study.ErrPrecondition, connect.CodeFailedPrecondition},
		{study.ErrInvalid, connect.CodeInvalidArgument},
		{study.ErrBusy, connect.CodeResourceExhausted},
		{study.ErrUnavailable, connect.CodeUnavailable},
		{study.ErrAway, connect.CodeUnavailable},
		{context.Canceled, connect.CodeCanceled},
		{context.DeadlineExceeded, connect.CodeDeadlineExceeded},
	} {
		if errors.Is(err, known.err) {
			// The code already says what the sentinel's text says.
			said := connect.NewError(known.code, &Reworded{strings.TrimPrefix(err.Error(), known.err.Error()+": "), err})
			if errors.Is(err, study.ErrAway) {
				return withDetail(said, &errdetails.ErrorInfo{Reason: view.ReasonEtcdAway, Domain: view.ErrorDomain})
			}
			return said
		}
	}
	return connect.NewError(connect.CodeInternal, &internalError{cause: err})
}

// The bounds of an invalid study file's error, in bytes.
const (
	maxProblemText   = 1 << 10
	maxProblemDetail = 32 << 10
)

// badFile returns the error for an invalid study file. Each problem is a violation in the
// detail. The message has a line for each, or for the first ones if there are many.
func badFile(problems *study.Problems) error {
	bad := &errdetails.BadRequest{}
	var text strings.Builder
	size, said := 0, 0
	for i, p := range problems.List {
		line := p.String()
		if size += len(line) + len(p.Path); i > 0 && size > maxProblemDetail {
			bad.FieldViolations = append(bad.FieldViolations, &errdetails.BadRequest_FieldViolation{
				Field: "study_file", Description: fmt.Sprintf("and more: these are the first %d problems", i),
			})
			break
		}
		bad.FieldViolations = append(bad.FieldViolations, &errdetails.BadRequest_FieldViolation{
			Field: cmp.Or(p.Path, "study_file"), Description: line,
		})
		if i == 0 || said == i && text.Len()+len(line) < maxProblemText {
			said++
			text.WriteString(line + "\n")
		}
	}
	if more := len(problems.List) - said; more > 0 {
		fmt.Fprintf(&text, "and %d more problems: see the error's details\n", more)
	}
	return withDetail(connect.NewError(connect.CodeInvalidArgument, errors.New(strings.TrimSuffix(text.String(), "\n"))), bad)
}

// badField returns the error for a field of a request that a handler cannot parse.
func badField(field string, cause error) error {
	return withDetail(connect.NewError(connect.CodeInvalidArgument, cause), &errdetails.BadRequest{
		FieldViolations: []*errdetails.BadRequest_FieldViolation{{Field: field, Description: cause.Error()}},
	})
}

// errorWriter writes errors in the protocols of RPCs.
var errorWriter = connect.NewErrorWriter()

// refuse answers a request with an error in the request's protocol, or, where it speaks
// none, with a text and a status of HTTP.
func refuse(w http.ResponseWriter, r *http.Request, logger *slog.Logger, err error, status int, text string) {
	if !errorWriter.IsSupported(r) {
		http.Error(w, text, status)
		return
	}
	if err := errorWriter.Write(w, r, err); err != nil {
		logger.DebugContext(r.Context(), "the caller is gone", slog.Any(telemetry.LogError, err))
	}
}

// message returns an error's text without its code.
func message(err error) string {
	if e, ok := errors.AsType[*connect.Error](err); ok {
		return e.Message()
	}
	return err.Error()
}

// retryAfter is how long callers should wait before they retry a refused request.
const retryAfter = 500 * time.Millisecond

// again returns the error for a request that has had no effect, so that the caller can
// safely retry it even if it is not idempotent.
func again(format string, args ...any) error {
	return withDetail(connect.NewError(connect.CodeUnavailable, fmt.Errorf(format+"; try again", args...)),
		&errdetails.RetryInfo{RetryDelay: durationpb.New(retryAfter)})
}

// withDetail adds a detail to an error. It leaves out a detail that cannot be encoded,
// since the message says the same.
func withDetail(err *connect.Error, message proto.Message) error {
	if detail, encodeErr := connect.NewErrorDetail(message); encodeErr == nil {
		err.AddDetail(detail)
	}
	return err
}
