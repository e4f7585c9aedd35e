package report

import (
	"fmt"
	"math"
	"testing"
)

// printed are what languages and libraries print for numbers that are not finite, and for
// numbers whose form is not that of most.
var printed = []struct {
	language, text string
	want           float64
}{
	{"C (glibc, musl)", "nan", math.NaN()},
	{"C (glibc on x86, for 0.0/0.0)", "-nan", math.NaN()},
	{"C (%F)", "NAN", math.NaN()},
	{"C (%F)", "-NAN", math.NaN()},
	{"C (glibc, musl)", "inf", math.Inf(1)},
	{"C (glibc, musl)", "-inf", math.Inf(-1)},
	{"C (%F)", "INF", math.Inf(1)},
	{"C (a payload, C17 7.21.6.1)", "nan(0x8000000000000)", math.NaN()},
	{"C (MSVC)", "-nan(ind)", math.NaN()},
	{"C (MSVC)", "nan(ind)", math.NaN()},
	{"C (MSVC)", "nan(snan)", math.NaN()},
	{"C (MSVC before 2015)", "1.#QNAN", math.NaN()},
	{"C (MSVC before 2015)", "1.#SNAN", math.NaN()},
	{"C (MSVC before 2015)", "-1.#IND", math.NaN()},
	{"C (MSVC before 2015, %f)", "-1.#IND00", math.NaN()},
	{"C (MSVC before 2015, %.2f)", "1.#R", math.NaN()},
	{"C (MSVC before 2015)", "1.#INF", math.Inf(1)},
	{"C (MSVC before 2015)", "-1.#INF", math.Inf(-1)},
	{"C (MSVC before 2015, %e)", "1.#INF00e+000", math.Inf(1)},
	{"C (%a)", "0x1p-2", 0.25},
	{"awk", "+nan", math.NaN()},
	{"awk", "+inf", math.Inf(1)},
	{"Go", "NaN", math.NaN()},
	{"Go", "+Inf", math.Inf(1)},
	{"Go", "-Inf", math.Inf(-1)},
	{"Java, JavaScript", "Infinity", math.Inf(1)},
	{"Java, JavaScript", "-Infinity", math.Inf(-1)},
	{"C#", "∞", math.Inf(1)},
	{"C#", "-∞", math.Inf(-1)},
	{"Rust", "NaN", math.NaN()},
	{"Rust", "inf", math.Inf(1)},
	{"Python", "nan", math.NaN()},
	{"Python", "-inf", math.Inf(-1)},
	{"NumPy", "np.float64(nan)", math.NaN()},
	{"NumPy", "np.float32(-inf)", math.Inf(-1)},
	{"NumPy", "np.float64(0.25)", 0.25},
	{"NumPy", "array(0.25)", 0.25},
	{"PyTorch", "tensor(nan)", math.NaN()},
	{"PyTorch", "tensor(0.2500, device='cuda:0', grad_fn=<MeanBackward0>)", 0.25},
	{"PyTorch (as \\S+ finds it)", "tensor(nan,", math.NaN()},
	{"TensorFlow", "tf.Tensor(nan, shape=(), dtype=float32)", math.NaN()},
	{"JAX", "Array(nan, dtype=float32)", math.NaN()},
	{"R", "NA", math.NaN()},
	{"R", "NaN", math.NaN()},
	{"R", "Inf", math.Inf(1)},
	{"R", "-Inf", math.Inf(-1)},
	{"Julia", "NaN32", math.NaN()},
	{"Julia", "Inf32", math.Inf(1)},
	{"Julia", "-Inf16", math.Inf(-1)},
	{"Julia", "1.0f-5", 1e-5},
	{"MATLAB, Octave", "NaN", math.NaN()},
	{"MATLAB, Octave", "-Inf", math.Inf(-1)},
	{"Fortran", "NaN", math.NaN()},
	{"Fortran", "Infinity", math.Inf(1)},
	{"Fortran", "+Infinity", math.Inf(1)},
	{"Fortran", "-Infinity", math.Inf(-1)},
	{"Fortran", "1.0D-3", 1e-3},
	{"Fortran", "-0.25d+02", -25},
	{"Fortran (quadruple precision)", "1.0Q-3", 1e-3},
	{"Fortran (three digits of exponent)", "0.25-102", 0.25e-102},
	{"Fortran", ".5", 0.5},
	{"any, too large for a float64", "1e999", math.Inf(1)},
	{"Fortran, too large for a float64", "-1.0D+999", math.Inf(-1)},
}

// TestPrintedNumbers checks that numbers of many languages are read, in a pattern and as a value of a report.
func TestPrintedNumbers(t *testing.T) {
	pattern, err := NewPattern(`loss=(?P<loss>.+)`, "loss")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range printed {
		for how, find := range map[string]func() ([]Report, error){
			"a match":          func() ([]Report, error) { return pattern.Find([]byte("loss=" + p.text)) },
			"one with a comma": func() ([]Report, error) { return pattern.Find([]byte("loss=" + p.text + ",")) },
			"a number in a text": func() ([]Report, error) {
				return Parse(fmt.Appendf(nil, `{"fantasia": {"metrics": {"loss": %q}}}`, p.text))
			},
			"the value of a field": func() ([]Report, error) {
				if len(tokenAt([]byte(p.text))) < len(p.text) {
					return pattern.Find([]byte("loss=" + p.text)) // no value of JSON can look like this
				}
				return Parse([]byte(`{"fantasia": {"metrics": {"loss": ` + p.text + `}}}`))
			},
		} {
			reports, err := find()
			if err != nil || len(reports) != 1 {
				t.Errorf("%s: %s as %s: %v, %v", p.language, p.text, how, reports, err)
				continue
			}
			if got := reports[0].Metrics["loss"]; got != p.want && !(math.IsNaN(got) && math.IsNaN(p.want)) {
				t.Errorf("%s: %s as %s is %v, want %v", p.language, p.text, how, got, p.want)
			}
		}
	}
}

// What is no number, or may be two, is not guessed.
func TestUnreadableNumbers(t *testing.T) {
	for _, text := range []string{
		"", "-", "None", "N/A", "n/a", "na", "null", "undefined", "1,234.5", "0,25", "overflow", "overflow(3)", "1e+", "1.0D", "***", "********",
		"0.25%", "1 2", "1.2.3", "0.25\xff", "[0.25", "0.25 0.5", "nan0.5", "inf%", "1.#", "10-100", "0.25-10", "array([0.25, 0.5])", "True",
		"infinite", "nano",
	} {
		if v, err := looseFloat(text); err == nil {
			t.Errorf("%q is read as %v", text, v)
		}
	}
}
