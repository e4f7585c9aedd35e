package study

import "errors"

// The kinds of errors: what a caller can do about an error. An error that is of no kind is
// internal.
var (
	// ErrNotFound says that there is no such study or trial.
	ErrNotFound = errors.New("not found")
	// ErrExists says that a study with that name exists.
	ErrExists = errors.New("already exists")
	// ErrPrecondition says that the study's state forbids the change.
	ErrPrecondition = errors.New("not allowed in the study's current state")
	// ErrInvalid says that the request itself is wrong.
	ErrInvalid = errors.New("invalid")
	// ErrBusy says that too many callers wait for the same.
	ErrBusy = errors.New("busy")
	// ErrUnavailable says that trying again later may help, for example because no leader is
	// elected.
	ErrUnavailable = errors.New("unavailable")
	// ErrAway says that the store of the studies does not answer. Unlike after
	// ErrUnavailable, there is no point in trying again at once.
	ErrAway = errors.New("the studies cannot be read")
	// ErrDamaged says that what is stored of the study is damaged or missing. Trying again does
	// not help.
	ErrDamaged = errors.New("damaged")
)

// kindError is an error of a kind.
type kindError struct {
	kind error
	text string
}

// NewError returns an error of a kind, or of another error's kind. Its text is the one given.
func NewError(kind error, text string) error { return &kindError{kind, text} }

// Error returns the text.
func (e *kindError) Error() string { return e.text }

// Unwrap returns the kind.
func (e *kindError) Unwrap() error { return e.kind }
