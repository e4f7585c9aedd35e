package export_test

import (
	"bytes"
	"errors"
	"runtime/metrics"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/parquet-go/parquet-go"

	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/internal/exchange/export"
	"github.com/fantasia-hpo/fantasia/internal/exchange/migrate"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space/celspace"
)

// maxAllocated bounds what reading a small file allocates in total.
const maxAllocated = 512 << 20

func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// checkRead holds that what is read of any content belongs to the space, needs little memory,
// and is the same after it was written and read again.
func checkRead(t *testing.T, f format, content []byte) {
	before := allocated()
	trials, _, err := f.read(content, spec)
	if used := allocated() - before; len(content) < 1<<20 && used > maxAllocated {
		t.Fatalf("allocated %d bytes for a file of %d", used, len(content))
	}
	if err != nil {
		if !errors.Is(err, migrate.ErrSource) {
			t.Fatal(err)
		}
		return
	}
	s, err := celspace.New(spec.Parameters, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	list := make([]view.Trial, len(trials))
	for i, one := range trials {
		if err := s.Check(one.Point); err != nil || one.Values.First()-one.Values.First() != 0 {
			t.Fatalf("read %+v: %v", one, err)
		}
		list[i] = view.Trial{Trial: i + 1, State: study.TrialCompleted, Value: &one.Values[0], Metrics: one.Metrics,
			Parameters: view.Parameters(one.Point)}
	}
	var out bytes.Buffer
	if err := f.write(export.Of(spec, view.List(list)), &out); err != nil {
		t.Fatal(err)
	}
	again, skipped, err := f.read(out.Bytes(), spec)
	if err != nil || len(skipped) > 0 {
		t.Fatalf("%v, left out %v of %q", err, skipped, out.Bytes())
	}
	if diff := cmp.Diff(trials, again, cmpopts.IgnoreFields(migrate.Evaluated{}, "Place"), cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("(-read +read again):\n%s", diff)
	}
}

// seedTables adds a table in the format, and parts of it.
func seedTables(f *testing.F, form format) {
	for _, table := range []*export.Table{export.Of(spec, view.List(two)), export.Of(spec, view.List(nil))} {
		var out bytes.Buffer
		if err := form.write(table, &out); err != nil {
			f.Fatal(err)
		}
		f.Add(out.Bytes())
		f.Add(out.Bytes()[:out.Len()/2])
	}
}

var two = []view.Trial{
	{Trial: 1, State: study.TrialCompleted, Value: new(2.0), Metrics: map[string]float64{"size": 1e7},
		Parameters: view.Parameters{"x": 1e-7, "worker": int64(12), "value": "a,b", "loss": int64(1), "flag": true, "any": int64(7)}},
	{Trial: 2, State: study.TrialCompleted, Value: new(-3.5),
		Parameters: view.Parameters{"x": 1e8, "worker": int64(-1), "value": "ü\n", "loss": 2.5, "any": "1x"}},
}

func FuzzCSV(f *testing.F) {
	seedTables(f, asCSV)
	for _, text := range []string{
		"value;x;worker;parameter:value;parameter:loss;any\n1,5;0,1;3;\"a,b\";1;True\n",
		"\ufeffx\tworker\tparams_value\tparams_loss\tany\tvalue\tState\r\n1\t2\tü\n\t1.0\t1x\t3\tTrialState.COMPLETE\r\n",
		"\xff\xfev\x00a\x00l\x00u\x00e\x00,\x00x\x00\n\x00",
		"number, value, x, worker, params_value, params_loss, any\n1, 2, 3, 4, \"a\"\"\r\n\", 1, 7\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, content []byte) { checkRead(t, asCSV, content) })
}

func FuzzJSON(f *testing.F) {
	seedTables(f, asJSONLines)
	for _, text := range []string{
		`{"value": 1, "parameters": {"x": [1], "worker": {}}}`, `[{"metrics": {"loss": "x"}, "values": []}]`, `{"value": NaN}`,
		`[{"state": "finished", "values": [1e400], "config": {"x": 1, "worker": 2, "value": "a,b", "loss": 1.0, "flag": "TRUE", "any": true}}]`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, content []byte) { checkRead(t, asJSONLines, content) })
}

func FuzzParquet(f *testing.F) {
	seedTables(f, asParquet)
	for _, content := range parquetFiles(f) {
		f.Add(content)
	}
	f.Fuzz(func(t *testing.T, content []byte) { checkRead(t, asParquet, content) })
}

// parquetFiles returns files of trials in each encoding and compression that is read.
func parquetFiles(t testing.TB) map[string][]byte {
	t.Helper()
	type row struct {
		Value  float64  `parquet:"value"`
		X      float64  `parquet:"x,split"`
		Worker int32    `parquet:"worker,delta"`
		Choice string   `parquet:"parameter:value,dict"`
		Loss   *float64 `parquet:"parameter:loss,dict,optional"`
		Flag   *bool    `parquet:"flag,optional"`
		Any    string   `parquet:"any"`
		List   []string `parquet:"list,list"`
		State  string   `parquet:"state,enum"`
	}
	rows := []row{
		{1, 2, 3, "a,b", new(1.0), new(true), "7", nil, "COMPLETE"},
		{4, 5, 6, "\"c\"", new(2.5), nil, "1x", []string{"a", "b"}, "COMPLETE"},
		{4, 5, 6, "\"c\"", new(2.5), nil, "1x", []string{"a", "b"}, "FAIL"},
	}
	files := map[string][]byte{}
	for _, codec := range []parquet.WriterOption{
		parquet.Compression(&parquet.Uncompressed), parquet.Compression(&parquet.Snappy), parquet.Compression(&parquet.Gzip),
		parquet.Compression(&parquet.Zstd), parquet.Compression(&parquet.Brotli), parquet.Compression(&parquet.Lz4Raw),
	} {
		for _, version := range []int{1, 2} {
			var out bytes.Buffer
			w := parquet.NewGenericWriter[row](&out, codec, parquet.DataPageVersion(version))
			_, err := w.Write(rows)
			if err = errors.Join(err, w.Close()); err != nil {
				t.Fatal(err)
			}
			files[string(rune('a'+len(files)))] = out.Bytes()
		}
	}
	return files
}

// Each encoding and compression is read.
func TestParquetOfOthers(t *testing.T) {
	want := []migrate.Evaluated{
		{Place: "row 1", Values: study.Values{1}, Metrics: map[string]float64{},
			Point: study.Point{"x": 2.0, "worker": int64(3), "value": "a,b", "loss": int64(1), "flag": true, "any": int64(7)}},
		{Place: "row 2", Values: study.Values{4}, Metrics: map[string]float64{},
			Point: study.Point{"x": 5.0, "worker": int64(6), "value": "\"c\"", "loss": 2.5, "any": "1x"}},
	}
	for name, content := range parquetFiles(t) {
		got, skipped, err := migrate.Parquet(content, spec)
		if err != nil || len(skipped) != 1 || skipped[0].Why != "its state is FAIL: only completed trials have a value" {
			t.Errorf("%s: left out %v, %v", name, skipped, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
