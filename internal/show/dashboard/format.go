package dashboard

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/internal/show/figure"
	"github.com/fantasia-hpo/fantasia/study"
)

// lower is a state or a direction as people read it.
func lower[S ~string](s S) string { return strings.ToLower(string(s)) }

// share is how many percent n is.
func share(n, of int) string {
	if of == 0 {
		return "0"
	}
	return strconv.FormatFloat(100*float64(n)/float64(of), 'f', 1, 64)
}

// number is a value as people see it.
func number(v float64) string {
	if math.IsNaN(v) {
		return "–"
	}
	return view.Number(v)
}

// count formats a number of things, with its noun.
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return thousands(n) + " " + many
}

// thousands groups digits by a narrow space.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "\u202f" + s[i:]
	}
	return s
}

// ago says how long ago a time was.
func ago(t, now time.Time) string {
	if t.IsZero() {
		return "–"
	}
	if d := now.Sub(t); d >= time.Second {
		return figure.Duration(d.Truncate(time.Second)) + " ago"
	}
	return "now"
}

// stamp formats a time for people: in UTC, since the server does not know their zone.
func stamp(t time.Time) string {
	if t.IsZero() {
		return "–"
	}
	return t.UTC().Format("2006-01-02 15:04:05") + " UTC"
}

// rate is how many trials have ended a minute.
func rate(ended int, elapsed time.Duration) string {
	if ended == 0 || elapsed <= 0 {
		return "–"
	}
	return view.Short(float64(ended)/elapsed.Minutes(), 3)
}

// badge is the class of a state's badge, which gives it a colour; the text says it too.
func badge[S ~string](state S) string {
	switch string(state) {
	case string(study.Running), string(study.TrialClaimed):
		return "running"
	case string(study.TrialCompleted):
		return "good"
	case string(study.TrialFailed), string(study.TrialInfeasible):
		return "bad"
	}
	return "quiet"
}

// The widths for which pictures are drawn, in pixels. Their text has the same size at
// every width.
const (
	phoneWidth   = 340
	defaultWidth = 860
	widestWidth  = 1120
	widthStep    = 20
	widthCookie  = "fantasia_width"
)

// widthOf returns the width for pictures. The script reports how wide the page is; before
// that, only phones are known by their name.
func widthOf(r *http.Request) int {
	if c, err := r.Cookie(widthCookie); err == nil {
		if w, err := strconv.Atoi(c.Value); err == nil {
			return max(phoneWidth, min(widestWidth, w)) / widthStep * widthStep
		}
	}
	if strings.Contains(r.UserAgent(), "Mobi") {
		return phoneWidth
	}
	return defaultWidth
}
