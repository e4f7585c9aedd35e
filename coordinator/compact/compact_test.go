package compact

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// origin is when the tests' study began.
var origin = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// there packs a record and restores it.
func there(c *Codec, t record.Trial) record.Trial {
	back := record.Trial{Number: t.Number}
	c.Unpack(c.Pack(&t), &back)
	return back
}

// compare fails unless a record comes back as it was: the same values, the same JSON.
func compare(t interface {
	Helper()
	Errorf(format string, args ...any)
	Fatal(args ...any)
}, c *Codec, trial record.Trial) {
	t.Helper()
	back := there(c, trial)
	if diff := cmp.Diff(trial, back, cmp.Comparer(func(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) })); diff != "" {
		t.Errorf("a record changed (-packed +unpacked):\n%s", diff)
	}
	want, err := json.Marshal(trial)
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(back)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("a record's JSON changed:\n%s\nwas\n%s", got, want)
	}
}

// fill sets everything that v holds to something else than its zero value.
func fill(v reflect.Value, n *int) {
	*n++
	switch {
	case v.Type() == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(origin.Add(time.Duration(*n) * time.Millisecond)))
		return
	case v.Type() == reflect.TypeFor[study.Point]():
		v.Set(reflect.ValueOf(study.Point{"x": 0.5}))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), n)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), n)
		fill(v.Index(1), n)
	case reflect.Map:
		value := reflect.New(v.Type().Elem()).Elem()
		fill(value, n)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf(fmt.Sprint("key", *n)), value)
	case reflect.String:
		v.SetString(fmt.Sprint("text", *n))
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Float64:
		v.SetFloat(float64(*n))
	case reflect.Bool:
		v.SetBool(true)
	default:
		panic(fmt.Sprintf("fill knows no %s", v.Type()))
	}
}

// A record with all fields set comes back. The fields are found by reflection, so a field
// that is added to the record and not to the codec fails this test.
func TestEveryFieldComesBack(t *testing.T) {
	var trial record.Trial
	n := 0
	fill(reflect.ValueOf(&trial).Elem(), &n)
	compare(t, New(origin), trial)
}

// A record without anything comes back, and stays without it: nil does not become empty.
func TestNothingComesBack(t *testing.T) {
	c := New(origin)
	compare(t, c, record.Trial{Number: 7})
	compare(t, c, record.Trial{
		Attempts: []record.Attempt{}, Metrics: map[string]float64{}, Labels: map[string]string{},
	})
}

// Records of any content come back, whatever the tables hold by then, and packing changes
// nothing of them.
func TestRecordsComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := New(origin)
		c.texts.most, c.asks.most = len(c.texts.values)+rapid.IntRange(0, 5).Draw(t, "texts"), rapid.IntRange(0, 2).Draw(t, "asks")
		trials := rapid.SliceOfN(rapid.Custom(anyTrial), 1, 4).Draw(t, "trials")
		packed := make([]Packed, len(trials))
		for i := range trials {
			packed[i] = c.Pack(&trials[i])
		}
		for i := range trials {
			compare(t, c, trials[i])
			if again := c.Pack(&trials[i]); again != packed[i] && len(again) > len(packed[i]) {
				t.Errorf("a record takes %d bytes, and then %d", len(packed[i]), len(again))
			}
		}
	})
}

// anyTrial draws a record.
func anyTrial(t *rapid.T) record.Trial {
	integer := rapid.OneOf(rapid.IntRange(-3, 200), rapid.Int())
	text := rapid.OneOf(rapid.SampledFrom([]string{"", "w-1", "loss", "00ff", "0F", "abc", strings.Repeat("long ", 100)}), rapid.StringMatching(`[0-9a-f]{24}`), rapid.String())
	number := rapid.OneOf(rapid.Just(0.5), rapid.Just(math.Copysign(0, -1)), rapid.Float64())
	zones := []*time.Location{time.UTC, time.FixedZone("", 3600), time.FixedZone("", -16200)}
	instant := rapid.Custom(func(t *rapid.T) time.Time {
		at := origin
		switch rapid.IntRange(0, 4).Draw(t, "when") {
		case 0:
			return time.Time{}
		case 1:
			at = time.Unix(rapid.Int64Range(0, 1<<37).Draw(t, "second"), rapid.Int64Range(0, 999_999_999).Draw(t, "nanosecond"))
		default:
			at = at.Add(time.Duration(rapid.Int64Range(-1e9, 1e12).Draw(t, "after")))
		}
		return at.In(rapid.SampledFrom(zones).Draw(t, "zone"))
	})
	numbers := func(name string) map[string]float64 {
		return rapid.OneOf(rapid.Just(map[string]float64(nil)), rapid.MapOfN(text, number, 0, 3)).Draw(t, name)
	}
	at := func(name string) time.Time { return instant.Draw(t, name) }
	trial := record.Trial{
		Number: integer.Draw(t, "number"), Created: int64(integer.Draw(t, "created")), Ended: int64(integer.Draw(t, "ended")),
		From: int64(integer.Draw(t, "from")), Request: integer.Draw(t, "request"), Rung: rapid.IntRange(0, 3).Draw(t, "rung"),
		Predecessor: integer.Draw(t, "predecessor"), Place: integer.Draw(t, "place"), Staleness: integer.Draw(t, "staleness"),
		State:   study.TrialState(text.Draw(t, "state")),
		Source:  optimizer.Source(text.Draw(t, "source")),
		Values:  rapid.OneOf(rapid.Just(study.Values(nil)), rapid.Custom(func(t *rapid.T) study.Values { return study.Values{number.Draw(t, "value")} })).Draw(t, "values"),
		Reasons: optimizer.Reasons{Acquisition: numbers("acquisition"), Note: text.Draw(t, "why"), Mean: rapid.Ptr(number, true).Draw(t, "mean")},
		Point:   anyPoint(t),
		Metrics: numbers("metrics"), Checkpoint: text.Draw(t, "checkpoint"), TraceID: text.Draw(t, "trace"), SpanID: text.Draw(t, "span"),
		Cancelled: text.Draw(t, "cancelled"), Note: text.Draw(t, "note"), RequestID: text.Draw(t, "request id"),
		Labels: rapid.OneOf(rapid.Just(map[string]string(nil)), rapid.MapOfN(text, text, 0, 2)).Draw(t, "labels"),
		Times: record.Times{
			Asked: at("asked"), Suggested: at("suggested"), Created: at("made"), Claimed: at("claimed"),
			Started: at("started"), Ended: at("over"), Folded: at("folded"),
		},
	}
	if rapid.Bool().Draw(t, "asked for") {
		trial.Ask = &record.Ask{N: rapid.IntRange(1, 3).Draw(t, "n"), MaxTrials: integer.Draw(t, "budget"), Cut: rapid.Bool().Draw(t, "cut")}
	}
	if rapid.Bool().Draw(t, "stopped") {
		trial.Stopped = &record.Stopped{Attempt: 1, Step: int64(integer.Draw(t, "step")), Reason: text.Draw(t, "reason"), At: at("decided")}
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "attempts") {
		a := record.Attempt{
			Number: i + 1, Nonce: text.Draw(t, "nonce"), State: study.AttemptState(text.Draw(t, "attempt")),
			Worker: text.Draw(t, "worker"), Outcome: messaging.Outcome(text.Draw(t, "outcome")), Logs: text.Draw(t, "logs"),
			Opened: at("opened"), Committed: at("committed"), Published: at("published"),
			Claimed: at("claim"), Started: at("start"), Ended: at("end"),
		}
		if rapid.Bool().Draw(t, "failed") {
			a.Failure = &messaging.Failure{Reason: text.Draw(t, "cause"), Message: text.Draw(t, "message"), ExitCode: rapid.Ptr(integer, true).Draw(t, "code")}
		}
		trial.Attempts = append(trial.Attempts, a)
	}
	return trial
}

// anyPoint draws a point, of scalars or of what only a file that people have changed has.
func anyPoint(t *rapid.T) study.Point {
	value := rapid.OneOf(
		rapid.Map(rapid.Float64Range(-1e9, 1e9), func(v float64) any { return v }),
		rapid.Map(rapid.Int64(), func(v int64) any { return v }),
		rapid.Map(rapid.Bool(), func(v bool) any { return v }),
		rapid.Map(rapid.String(), func(v string) any { return v }),
	)
	if rapid.IntRange(0, 9).Draw(t, "odd") == 0 {
		value = rapid.Just(any([]any{int64(1), 1.0, "x"}))
	}
	return rapid.MapOfN(rapid.StringMatching(`[a-z]{1,3}`), value, 0, 3).Draw(t, "point")
}

// What a clock of this process says comes back, as far as JSON keeps it.
func TestTimesOfAClockComeBack(t *testing.T) {
	now := time.Now()
	c := New(now)
	trial := record.Trial{Times: record.Times{Asked: now, Suggested: now.Add(time.Second)}}
	want, err := json.Marshal(trial)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := json.Marshal(there(c, trial)); err != nil || string(got) != string(want) {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
}

// ordinary is the record of a trial that a worker has completed at once, as a study of
// thousands of workers has many.
func ordinary(n int) record.Trial {
	at := origin.Add(time.Hour + time.Duration(n)*1_234_567)
	after := func(ms int) time.Time { return at.Add(time.Duration(ms)*time.Millisecond + 345_678) }
	value := 1 / (float64(n) + 1.1)
	return record.Trial{
		Number: n, State: study.TrialCompleted, Point: study.Point{"x": value, "y": value}, Source: optimizer.SourceRandom,
		Reasons: optimizer.Reasons{Pending: 400}, Request: n - 3, Place: 3, From: int64(2*n - 10), Ask: &record.Ask{N: 64, MaxTrials: 9999, Parallelism: 500},
		Created: int64(2*n - 2), Ended: int64(2*n + 500), Staleness: 7,
		Attempts: []record.Attempt{{
			Number: 1, Nonce: fmt.Sprintf("%024x", uint64(n)*0x9e3779b97f4a7c15), State: study.AttemptSucceeded, Worker: fmt.Sprint("w-", n%50),
			Opened: after(9), Committed: after(15), Published: after(20), Claimed: after(30), Started: after(31), Ended: after(50),
			Outcome: messaging.OutcomeCompleted,
		}},
		Values: study.Values{value}, Metrics: map[string]float64{"loss": value},
		TraceID: fmt.Sprintf("%032x", uint64(n)*0x9e3779b97f4a7c15), SpanID: fmt.Sprintf("%016x", uint64(n)*0x9e3779b97f4a7c15),
		Times: record.Times{Asked: at, Suggested: after(5), Created: after(9), Claimed: after(30), Started: after(31), Ended: after(50), Folded: after(60)},
	}
}

// An ordinary record takes at most 144 bytes: 36 of its ids, 8 of its value, 20 of its point,
// and the distances between the times and positions of its 14 steps.
func TestAnOrdinaryRecordIsSmall(t *testing.T) {
	c := New(origin)
	for n := range 10_000 {
		trial := ordinary(n + 1)
		if size := len(c.Pack(&trial)); size > 144 {
			t.Fatalf("trial %d takes %d bytes", n+1, size)
		}
		if n%1000 == 0 {
			compare(t, c, trial)
		}
	}
}

// Thousands of names of workers fill the table, and no more: others are written out.
func TestTablesAreBounded(t *testing.T) {
	c := New(origin)
	for n := range 2 * maxTexts {
		trial := ordinary(1)
		trial.Attempts[0].Worker = fmt.Sprint("worker ", n)
		trial.Ask = &record.Ask{N: n}
		compare(t, c, trial)
	}
	if len(c.texts.values) != maxTexts || len(c.asks.values) != maxAsks {
		t.Errorf("the tables have %d texts and %d requests, want %d and %d", len(c.texts.values), len(c.asks.values), maxTexts, maxAsks)
	}
}

func BenchmarkPack(b *testing.B) {
	c, trial := New(origin), ordinary(1000)
	b.ReportAllocs()
	for b.Loop() {
		c.Pack(&trial)
	}
	b.ReportMetric(float64(len(c.Pack(&trial))), "bytes/trial")
}

func BenchmarkUnpack(b *testing.B) {
	c, trial := New(origin), ordinary(1000)
	packed := c.Pack(&trial)
	b.ReportAllocs()
	for b.Loop() {
		var back record.Trial
		back.Number = trial.Number
		c.Unpack(packed, &back)
	}
}
