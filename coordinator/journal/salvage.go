package journal

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/internal/base/wal"
	"github.com/fantasia-hpo/fantasia/study"
)

// Salvaged is what a journal's content still holds. No value in it is a guess: a record is taken if its checksum is
// right, and Lost names the rest.
type Salvaged struct {
	// Stored has the newest sound record of each trial. A trial without one is cancelled there, and has no
	// point. Its Study has no ID if the specification is lost.
	Stored *Stored
	// Problems say, in the order of the file, where it is damaged, and whose records were there. There are
	// none in a sound file.
	Problems []string
	// Lost says, a line each, what is lost.
	Lost []string
}

// lostTrial is the reason of a cancelled trial whose records are all lost.
const lostTrial = "its record was lost when the file was damaged"

// Salvage reads the sound records of a journal's content. It returns nil if there is none, which is so for
// other files. It changes no file: Stored.Write writes a new one.
func Salvage(content []byte) *Salvaged {
	s := salvage{out: &Salvaged{Stored: &Stored{curves: map[int][][]byte{}}}, trials: map[int]record.Trial{}, at: map[int]int{}, status: -1}
	records := 0
	pieces := wal.Salvage(content, magic)
	for i, piece := range pieces {
		if piece.Record {
			records++
			s.record(i, &piece)
		} else {
			s.gap(i, &piece)
		}
	}
	if records == 0 {
		return nil
	}
	if first := &pieces[0]; first.Record && first.At == 0 {
		s.problem("its first line %q is missing", magic)
	}
	s.finish()
	if last := &pieces[len(pieces)-1]; !last.Record {
		s.lose("what was recorded after byte %d, if it was more: the end of the file, after trial %d, is cut off or damaged", last.At,
			len(s.out.Stored.Trials))
	}
	return s.out
}

// salvage is a Salvage in progress. Pieces are numbered in their order.
type salvage struct {
	out    *Salvaged
	trials map[int]record.Trial
	at     map[int]int // the piece with a trial's newest record
	status int         // the piece with the newest status; -1 for none
	gaps   []gap
}

// gap is a piece without a record.
type gap struct {
	piece int
	named []int // the trials of which its text has records, as far as it can be read
}

func (s *salvage) problem(format string, args ...any) {
	s.out.Problems = append(s.out.Problems, fmt.Sprintf(format, args...))
}

func (s *salvage) lose(format string, args ...any) {
	s.out.Lost = append(s.out.Lost, fmt.Sprintf(format, args...))
}

// record applies a record. Unlike apply, it takes what it can of a record that is not at its place.
func (s *salvage) record(piece int, p *wal.Piece) {
	var e entry
	if err := json.Unmarshal(p.Data, &e); err != nil {
		s.problem("the record at byte %d is no JSON: %v", p.At, err)
		s.gaps = append(s.gaps, gap{piece: piece})
		return
	}
	stored := s.out.Stored
	misplaced := e.outdated(&stored.Status, func(n int) study.TrialState { return s.trials[n].State })
	if misplaced != nil {
		s.problem("the record at byte %d is not at its place: %v", p.At, misplaced)
	}
	// Which of two records is misplaced cannot be told. So each takes what is newer in it.
	if e.Study != nil && (misplaced == nil || stored.Study.ID == "") {
		stored.Study = *e.Study
	}
	if e.Status != nil && e.Status.Position >= stored.Status.Position {
		stored.Status, s.status = *e.Status, piece
	}
	if e.Model != nil && e.Model.Request >= stored.Model.Request {
		stored.Model = *e.Model
	}
	for _, t := range e.Trials {
		if was := s.trials[t.Number].State; t.Number < 1 || t.Number > mostTrials || was.Terminal() && t.State != was {
			continue
		}
		s.trials[t.Number], s.at[t.Number] = t, piece
	}
	for _, c := range e.Curves {
		if misplaced != nil && s.trials[c.Trial].State.Terminal() {
			continue
		}
		if err := patch(stored.curves, c); err != nil { // a segment before it is lost
			s.lose("what trial %d had reported", c.Trial)
			delete(stored.curves, c.Trial)
		}
	}
}

// mostTrials bounds how many places of trials are filled, so that a wrong number in a record does not fill the
// memory.
const mostTrials = 1 << 24

// ofTrial matches the beginning of a trial's record, and ofCurve the beginning of its reports. numbers
// compiles them when it needs them: as variables they would bring package regexp into every program.
const (
	ofTrial = `"number":(\d{1,9}),"state":"[A-Z]+","point"`
	ofCurve = `\{"trial":(\d{1,9}),"segments":`
)

// gap notes bytes that hold no record. Records are JSON, so some of their text can often be read: it names the trials
// that may have lost a record. Nothing of it is taken as a record, since its checksum is wrong.
func (s *salvage) gap(piece int, p *wal.Piece) {
	g := gap{piece: piece, named: numbers(ofTrial, p.Data)}
	whose := ""
	if len(g.named) > 0 {
		whose += "; they had a record of " + list(g.named)
	}
	if reported := numbers(ofCurve, p.Data); len(reported) > 0 {
		whose += "; they had reports of " + list(reported)
	}
	s.problem("%d bytes at byte %d hold no whole record%s", len(p.Data), p.At, whose)
	s.gaps = append(s.gaps, g)
}

// numbers returns the numbers that a pattern finds in a text, each once.
func numbers(pattern string, text []byte) []int {
	found := map[int]bool{}
	for _, m := range regexp.MustCompile(pattern).FindAllSubmatch(text, -1) {
		if n, err := strconv.Atoi(string(m[1])); err == nil {
			found[n] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// list names trials.
func list(numbers []int) string {
	var words []string
	for _, n := range numbers {
		words = append(words, strconv.Itoa(n))
	}
	if len(words) == 1 {
		return "trial " + words[0]
	}
	return "the trials " + strings.Join(words, ", ")
}

// Fill puts a cancelled trial without a point in the place of each trial that is missing, and returns the numbers of
// those. The trials MUST be in the order of their numbers. A journal has no gaps (see apply), and the optimiser must
// learn nothing from a trial of which nobody knows how it ended.
func (s *Stored) Fill() (missing []int) {
	known := s.Trials
	s.Trials = nil
	for n := 1; len(known) > 0 || n <= min(s.Status.Trials, mostTrials); n++ {
		if len(known) > 0 && known[0].Number == n {
			s.Trials, known = append(s.Trials, known[0]), known[1:]
			continue
		}
		missing = append(missing, n)
		s.Trials = append(s.Trials, record.Trial{Number: n, State: study.TrialCancelled, Cancelled: lostTrial})
	}
	s.Status.Trials = len(s.Trials)
	return missing
}

// finish says what is lost, and makes the records fit together.
func (s *salvage) finish() {
	stored := s.out.Stored
	for _, n := range slices.Sorted(maps.Keys(s.trials)) {
		stored.Trials = append(stored.Trials, s.trials[n])
	}
	for _, n := range stored.Fill() {
		s.lose("trial %d", n)
	}
	// If a status after the last gap has as many open trials, none of them has ended in a gap.
	open, _ := record.Count(stored.Trials)
	settled := len(s.gaps) == 0 || s.status > s.gaps[len(s.gaps)-1].piece && open.Open() <= stored.Status.Counts.Open()
	for i := range stored.Trials {
		t := &stored.Trials[i]
		if !settled && !t.State.Terminal() && s.hit(t.Number) {
			s.lose("how trial %d went on: its newest sound record has it as %s", t.Number, t.State)
		}
	}
	if stored.Study.ID == "" {
		s.lose("the study's specification, and with it what its trials mean")
	}
	// A study that had ended goes on if trials are lost, so that others take their place.
	if state := &stored.Status.State; *state == "" || *state == study.Completed && len(s.out.Lost) > 0 {
		*state, stored.Status.Reason, stored.Status.Ended = study.Running, "", time.Time{}
	}
}

// hit reports whether newer records of an open trial may be among those that are lost: not if the text of all
// later gaps can be read and is of other trials.
func (s *salvage) hit(number int) bool {
	return slices.ContainsFunc(s.gaps, func(g gap) bool {
		return g.piece > s.at[number] && (len(g.named) == 0 || s.status > g.piece || slices.Contains(g.named, number))
	})
}
