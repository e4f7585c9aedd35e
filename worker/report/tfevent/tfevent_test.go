package tfevent

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/worker/report"
)

// fixtures returns the event files of testdata, which TensorFlow, TensorBoard and tensorboardX wrote, and
// what TensorBoard reads from each: by tag, pairs of a step and a number as Python prints it.
func fixtures(t *testing.T) map[string]map[string][][2]any {
	data, err := os.ReadFile("testdata/expected.json")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]map[string][][2]any{}
	if err := json.Unmarshal(data, &want); err != nil {
		t.Fatal(err)
	}
	return want
}

// series returns pairs as numbers.
func series(t *testing.T, pairs [][2]any) (steps []int64, values []float64) {
	for _, p := range pairs {
		v, err := strconv.ParseFloat(p[1].(string), 64)
		if err != nil {
			t.Fatal(err)
		}
		steps, values = append(steps, int64(p[0].(float64))), append(values, v)
	}
	return steps, values
}

// collected is what a folder has passed on.
type collected struct {
	reports []report.Report
	errs    []string
}

func (c *collected) emit(reports []report.Report, err error) {
	c.reports = append(c.reports, reports...)
	if err != nil {
		c.errs = append(c.errs, err.Error())
	}
}

// series returns the steps and the values of a metric.
func (c *collected) series(metric string) (steps []int64, values []float64) {
	for _, r := range c.reports {
		if v, ok := r.Metrics[metric]; ok {
			steps, values = append(steps, *r.Step), append(values, v)
		}
	}
	return steps, values
}

// unreadable returns why a metric cannot be read.
func (c *collected) unreadable(metric string) string {
	for _, r := range c.reports {
		if why := r.Unreadable[metric]; why != "" {
			return why + ": " + r.Origin
		}
	}
	return ""
}

func TestFilesOfWriters(t *testing.T) {
	for name, tags := range fixtures(t) {
		c := &collected{}
		dir := filepath.Join("testdata", filepath.Dir(name))
		if err := NewFolder(dir, nil, c.emit).Finish(); err != nil || len(c.errs) > 0 {
			t.Errorf("%s: %v, %v", name, err, c.errs)
		}
		read := map[string]bool{}
		for _, r := range c.reports {
			for metric := range r.Metrics {
				read[metric] = true
			}
		}
		if len(read) != len(tags) {
			t.Errorf("%s: read %v, TensorBoard reads %d tags", name, read, len(tags))
		}
		for tag, pairs := range tags {
			wantSteps, want := series(t, pairs)
			steps, got := c.series(tag)
			if diff := cmp.Diff(want, got, cmpopts.EquateNaNs()) + cmp.Diff(wantSteps, steps); diff != "" {
				t.Errorf("%s: %s: %s", name, tag, diff)
			}
		}
	}
}

func TestNames(t *testing.T) {
	for _, tt := range []struct {
		dir    string
		metric string
		want   int // values
		why    string
	}{
		{"tensorflow", "validation/epoch_loss", 6, ""},
		{"tensorflow/validation", "epoch_loss", 6, ""},
		{".", "validation/epoch_loss", 6, ""},
		{".", "tensorflow/validation/epoch_loss", 6, ""},
		{"tensorflow", "epoch_loss", 6, "both train/epoch_loss and validation/epoch_loss in the event files: name the metric with its folder"},
		{"tensorboardX", "loss", 6, ""}, // a part of the tag val/loss is not a folder
		{"tensorboardX", "val/loss", 5, ""},
	} {
		c := &collected{}
		if err := NewFolder(filepath.Join("testdata", tt.dir), []string{tt.metric}, c.emit).Finish(); err != nil {
			t.Errorf("%s in %s: %v", tt.metric, tt.dir, err)
		}
		_, got := c.series(tt.metric)
		if why := c.unreadable(tt.metric); len(got) != tt.want && tt.why == "" || why != tt.why {
			t.Errorf("%s in %s: %v, %q", tt.metric, tt.dir, got, why)
		}
	}
}

// A file is read as it grows, whichever bytes of it are there, and each value once.
func TestGrowingFile(t *testing.T) {
	data, err := os.ReadFile("testdata/tensorboardX/events.out.tfevents.0")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file, err := os.Create(filepath.Join(dir, "events.out.tfevents.1"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	c := &collected{}
	f := NewFolder(dir, []string{"loss"}, c.emit)
	for i := range data {
		if _, err := file.Write(data[i : i+1]); err != nil {
			t.Fatal(err)
		}
		if i%7 == 0 {
			if err := f.readNew(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := f.Finish(); err != nil || len(c.errs) > 0 {
		t.Errorf("%v, %v", err, c.errs)
	}
	steps, values := c.series("loss")
	if diff := cmp.Diff([]int64{0, 1, 2, 3, 4, 5}, steps); diff != "" || values[1] != 0.5 {
		t.Errorf("%v: %s", values, diff)
	}
}

// record frames data as a record.
func record(data []byte) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(data)))
	b = binary.LittleEndian.AppendUint32(b, checksum(b))
	b = append(b, data...)
	return binary.LittleEndian.AppendUint32(b, checksum(data))
}

// event encodes an event with one scalar.
func event(tag string, step int64, value float32) []byte {
	v := protowire.AppendString(protowire.AppendTag(nil, valueTag, wireBytes), tag)
	v = protowire.AppendFixed32(protowire.AppendTag(v, valueSimple, wire32), math.Float32bits(value))
	summary := protowire.AppendBytes(protowire.AppendTag(nil, summaryValue, wireBytes), v)
	e := protowire.AppendVarint(protowire.AppendTag(nil, eventStep, wireVarint), uint64(step))
	return protowire.AppendBytes(protowire.AppendTag(e, eventSummary, wireBytes), summary)
}

// write writes a file below a folder.
func write(t *testing.T, dir, name string, parts ...[]byte) {
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, bytes.Join(parts, nil), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Each flipped bit of the middle one of three records is noticed, and what it might have said makes the metric unreadable.
func TestDamagedFiles(t *testing.T) {
	first, second, third := record(event("loss", 1, 3)), record(event("loss", 2, 2)), record(event("loss", 3, 1))
	for bit := range 8 * len(second) {
		dir, c := t.TempDir(), &collected{}
		damaged := bytes.Clone(second)
		damaged[bit/8] ^= 1 << (bit % 8)
		write(t, dir, "x.tfevents.1", first, damaged, third)
		if err := NewFolder(dir, []string{"loss"}, c.emit).Finish(); err != nil {
			t.Fatal(err)
		}
		_, values := c.series("loss")
		if diff := cmp.Diff([]float64{3}, values); diff != "" || len(c.errs) != 1 ||
			!strings.Contains(c.unreadable("loss"), "the record at byte "+strconv.Itoa(len(first))+" is damaged") {
			t.Fatalf("bit %d: %v %v %s", bit, values, c.errs, c.unreadable("loss"))
		}
	}
}

func TestOtherFiles(t *testing.T) {
	whole := record(event("loss", 1, 0.5))
	for _, tt := range []struct {
		name  string
		files map[string][]byte
		err   string // of Finish
		said  string
		want  []float64
	}{
		{name: "no folder", err: "does not exist"},
		{name: "other names", files: map[string][]byte{"events.log": whole}, err: "has tfevents in its name"},
		{name: "no scalar", files: map[string][]byte{"a.tfevents": record(nil)}, err: "have no scalar"},
		{name: "an empty file", files: map[string][]byte{"a.tfevents": {}}, err: "have no scalar"},
		{name: "a cut record", files: map[string][]byte{"a.tfevents": append(bytes.Clone(whole), whole[:20]...)}, said: "is not complete",
			want: []float64{0.5}},
		{name: "a large record before it", files: map[string][]byte{"a.tfevents": append(record(make([]byte, maxRecord+1)), whole...)},
			want: []float64{0.5}},
		{name: "not an event", files: map[string][]byte{"a.tfevents": append(bytes.Clone(whole), record([]byte{0xff})...)},
			said: "not an event of TensorFlow", want: []float64{0.5}},
		{name: "two files", files: map[string][]byte{"b.tfevents.2": record(event("loss", 2, 0.25)), "a.tfevents.1": whole},
			want: []float64{0.5, 0.25}},
	} {
		dir, c := filepath.Join(t.TempDir(), "logs"), &collected{}
		for name, data := range tt.files {
			write(t, dir, name, data)
		}
		err := NewFolder(dir, []string{"loss"}, c.emit).Finish()
		_, values := c.series("loss")
		said := strings.Join(c.errs, "\n")
		if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) ||
			!strings.Contains(said, tt.said) || (said == "") != (tt.said == "") || cmp.Diff(tt.want, values) != "" {
			t.Errorf("%s: %v, %q, %v", tt.name, err, said, values)
		}
	}
}

// A link out of the folder is not followed: a program could name any file of its worker.
func TestLinksStayInside(t *testing.T) {
	dir, c := t.TempDir(), &collected{}
	write(t, dir, "outside.tfevents", record(event("loss", 1, 0.5)))
	if err := os.Mkdir(filepath.Join(dir, "logs"), 0o700); err != nil {
		t.Fatal(err)
	}
	for target, link := range map[string]string{"../outside.tfevents": "logs/a.tfevents", "..": "logs/up"} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := NewFolder(filepath.Join(dir, "logs"), []string{"loss"}, c.emit).Finish(); err == nil || len(c.reports) > 0 {
		t.Errorf("%v, %v", err, c.reports)
	}
}

// More scalars than are kept at once come whole and in order.
func TestManyScalars(t *testing.T) {
	dir, c := t.TempDir(), &collected{}
	var a, b bytes.Buffer
	for step := range int64(2*maxBatch + 10) {
		a.Write(record(event("loss", step, float32(step))))
		b.Write(record(event("size", step, 1)))
	}
	write(t, dir, "a.tfevents", a.Bytes())
	write(t, dir, "b.tfevents", b.Bytes())
	if err := NewFolder(dir, []string{"loss"}, c.emit).Finish(); err != nil || len(c.errs) > 0 {
		t.Fatalf("%v, %v", err, c.errs)
	}
	for _, metric := range []string{"loss", "size"} {
		steps, _ := c.series(metric)
		for i, step := range steps {
			if step != int64(i) {
				t.Fatalf("%s: step %d is in place %d", metric, step, i)
			}
		}
		if len(steps) != 2*maxBatch+10 {
			t.Errorf("%s: %d values", metric, len(steps))
		}
	}
}

// Wikipedia's article on half precision (IEEE 754 binary16) has these examples.
func TestHalf(t *testing.T) {
	for bits, want := range map[uint16]float64{
		0x0001: 1.0 / (1 << 24), 0x03ff: 1023.0 / (1 << 24), 0x0400: 1.0 / (1 << 14), 0x3555: 0.333251953125, 0x3bff: 0.99951171875,
		0x3c00: 1, 0x3c01: 1.0009765625, 0x7bff: 65504, 0x7c00: math.Inf(1), 0x8000: 0, 0xc000: -2, 0xfc00: math.Inf(-1), 0x7e00: math.NaN(),
	} {
		if got := half(bits); got != want && !(math.IsNaN(got) && math.IsNaN(want)) {
			t.Errorf("%#04x is %v, want %v", bits, got, want)
		}
	}
}

func FuzzScan(f *testing.F) {
	for _, name := range []string{"tensorflow/train", "tensorflow1", "tensorboardX", "tensorboard"} {
		data, err := os.ReadFile(filepath.Join("testdata", name, "events.out.tfevents.0"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, true)
		f.Add(data[:len(data)/2], false)
	}
	f.Add(event("loss", 1, 0.5), true)
	f.Fuzz(func(t *testing.T, data []byte, framed bool) {
		if !framed { // with right checksums, so that events are reached
			data = record(data)
		}
		take := func(data []byte) bool {
			found, err := scalars(data)
			if err != nil && found != nil {
				t.Errorf("%v beside %v", found, err)
			}
			return true
		}
		end, err := scan(bytes.NewReader(data), 0, int64(len(data)), take)
		if end < 0 || end > int64(len(data)) {
			t.Errorf("read to %d of %d", end, len(data))
		}
		if !framed && (err != nil || end != int64(len(data))) {
			t.Errorf("a whole record: %d of %d, %v", end, len(data), err)
		}
	})
}

// What add_hparams repeats in a folder named after the time is no second scalar. If nothing else has the
// metric, it is the metric's.
func TestHyperparametersRepeatMetrics(t *testing.T) {
	for _, tt := range []struct {
		name, main string // the folder of the program's own scalars; "" for none
		hparams    string
		metric     string
		want       []float64
	}{
		{"beside", ".", "1764340000.123456", "val_loss", []float64{0.5, 0.25}},
		{"in a folder", "run", "run/1764340000.123456", "val_loss", []float64{0.5, 0.25}},
		{"in a folder that is named", "run", "run/1764340000.123456", "run/val_loss", []float64{0.5, 0.25}},
		{"alone", "", "1764340000.123456", "val_loss", []float64{0.125}},
		{"a run that is named after the time", "1764340000", "1764340000/1764340000.5", "val_loss", []float64{0.5, 0.25}},
	} {
		dir := t.TempDir()
		if tt.main != "" {
			write(t, filepath.Join(dir, tt.main), "events.out.tfevents.1", record(event("val_loss", 0, 0.5)), record(event("val_loss", 1, 0.25)))
		}
		write(t, filepath.Join(dir, tt.hparams), "events.out.tfevents.2", record(event("val_loss", 0, 0.125)))
		var c collected
		f := NewFolder(dir, []string{tt.metric}, c.emit)
		if err := f.Finish(); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if _, got := c.series(tt.metric); !slices.Equal(got, tt.want) || c.unreadable(tt.metric) != "" {
			t.Errorf("%s: read %v, want %v; %s", tt.name, got, tt.want, c.unreadable(tt.metric))
		}
	}
}

// Values without steps, for which writers write step 0, are counted up; those of a step that comes again are not.
func TestValuesWithoutStepsAreCountedUp(t *testing.T) {
	for _, tt := range []struct {
		steps []int64
		want  float64 // the last value, where the values are 1, 2 and so on
	}{{[]int64{0, 0, 0}, 3}, {[]int64{0, 1, 1}, 2}, {[]int64{0}, 1}, {[]int64{5, 6, 6}, 2}} {
		for _, files := range []int{1, len(tt.steps)} { // read at once, or one after the other
			dir := t.TempDir()
			var c collected
			f, all := NewFolder(dir, []string{"loss"}, c.emit), [][]byte{}
			for i, step := range tt.steps {
				all = append(all, record(event("loss", step, float32(i+1))))
				if files > 1 {
					write(t, dir, "events.out.tfevents.1", all...)
					_ = f.readNew()
				}
			}
			write(t, dir, "events.out.tfevents.1", all...)
			if err := f.Finish(); err != nil {
				t.Fatal(err)
			}
			collector := report.NewCollector([]study.Objective{{Metric: "loss"}})
			for _, r := range c.reports {
				collector.Add(r)
			}
			if v, _ := collector.Values(); v.First() != tt.want {
				t.Errorf("steps %v: the value is %v, want %v", tt.steps, v, tt.want)
			}
		}
	}
}
