package raster_test

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fantasia-hpo/fantasia/internal/assistant/raster"
	"github.com/fantasia-hpo/fantasia/internal/show/picture"
)

// draw draws marks on a sheet of 300 × 100.
func draw(t testing.TB, scale float64, marks string) image.Image {
	t.Helper()
	svg := `<svg xmlns="http://www.w3.org/2000/svg" class="picture" width="300" height="100"><style>` + sheet(t) + `</style>` + marks +
		`</svg>`
	content, err := raster.PNG([]byte(svg), scale)
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, content)
}

// sheet is the stylesheet of a real picture.
func sheet(t testing.TB) string {
	t.Helper()
	whole := string((&picture.Staleness{}).SVG(picture.Frame{}))
	_, rest, _ := strings.Cut(whole, "<style>")
	text, _, ok := strings.Cut(rest, "</style>")
	if !ok {
		t.Fatalf("no stylesheet in %s", whole)
	}
	return text
}

func decode(t testing.TB, content []byte) image.Image {
	t.Helper()
	m, err := png.Decode(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// ink returns how much of a picture a colour covers, in pixels, from how far each pixel is from
// white.
func ink(m image.Image, full color.NRGBA) float64 {
	sum := 0.0
	b := m.Bounds()
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			r, _, _, _ := m.At(x, y).RGBA()
			sum += float64(0xffff-r) / (float64(255-full.R) * 0x101)
		}
	}
	return sum
}

var blue = color.NRGBA{0x00, 0x72, 0xb2, 0xff} // the first colour of the palette

// Areas are those of geometry.
func TestAreas(t *testing.T) {
	for _, test := range []struct {
		name, mark string
		want       float64
	}{
		{"rectangle", `<rect class="area mark c0" x="10.5" y="10" width="20" height="30"/>`, 600},
		{"circle", `<circle class="mark c0" cx="50" cy="50" r="20"/>`, math.Pi * 400},
		{"triangle", `<path class="mark c0" d="M10 10h40l-20 30Z"/>`, 600},
		{"a hole turns the other way", `<path class="mark c0" d="M10 10H50V50H10ZM20 20V40H40V20Z"/>`, 1600 - 400},
		{"line", `<path class="line c0" d="M10 50H110"/>`, 100*2.25 + math.Pi*2.25*2.25/4},
		{"corner", `<path class="line c0" d="M10 10H60V60"/>`, 100*2.25 + math.Pi*2.25*2.25/4 - 2.25*2.25/4 + math.Pi*2.25*2.25/16},
		{"dashes", `<path class="line thin c0" stroke-dasharray="7 3" d="M10 50H110"/>`, 70 * 1.2},
		{"band", `<rect class="band c0" x="10" y="10" width="20" height="30"/>`, 600 * 41. / 255}, // an opacity of .16
		{"nothing outside of its part",
			`<svg x="0" y="0" width="20" height="100" viewBox="0 0 20 100" overflow="hidden"><rect class="mark c0" x="10" y="10" width="200" height="10"/></svg>`, 100},
		{"nothing outside of the picture", `<circle class="mark c0" cx="0" cy="0" r="40"/>`, math.Pi * 400},
	} {
		for _, scale := range []float64{1, 2} {
			got := ink(draw(t, scale, test.mark), blue) / (scale * scale)
			if math.Abs(got-test.want) > 0.02*test.want {
				t.Errorf("%s at scale %g covers %.1f pixels, want %.1f", test.name, scale, got, test.want)
			}
		}
	}
}

// Text is where its anchor says, and a halo lies below it.
func TestText(t *testing.T) {
	left := func(anchor string) (int, int) {
		m := draw(t, 1, `<text class="soft" x="150" y="50" text-anchor="`+anchor+`">mmmmmmmmmm</text>`)
		low, high := 300, 0
		for y := range 100 {
			for x := range 300 {
				if r, _, _, _ := m.At(x, y).RGBA(); r < 0xc000 {
					low, high = min(low, x), max(high, x)
				}
			}
		}
		return low, high
	}
	for anchor, want := range map[string]float64{"start": 0, "middle": 0.5, "end": 1} {
		low, high := left(anchor)
		if share := float64(150-low) / float64(high-low); math.Abs(share-want) > 0.05 || high-low < 60 {
			t.Errorf("text with the anchor %s is from %d to %d", anchor, low, high)
		}
	}
	m := draw(t, 2,
		`<rect class="mark c0" x="0" y="0" width="300" height="100"/><text class="soft halo" x="150" y="50" text-anchor="middle">l</text>`)
	white := 0
	for x := range 600 {
		if r, _, _, _ := m.At(x, 92).RGBA(); r > 0xf000 {
			white++
		}
	}
	if white < 2 || white > 20 {
		t.Errorf("the halo of a letter has %d pixels in a row", white)
	}
}

// Every picture that the project draws can be drawn as PNG, in its size, and not empty.
func TestEveryPicture(t *testing.T) {
	files, err := filepath.Glob("../../show/picture/testdata/*.svg")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d pictures (%v)", len(files), err)
	}
	for _, file := range files {
		svg, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		content, err := raster.PNG(svg, 1)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		m := decode(t, content)
		if m.Bounds().Dx() < 280 || ink(m, color.NRGBA{}) < 200 {
			t.Errorf("%s is %v with %.0f pixels of ink", file, m.Bounds(), ink(m, color.NRGBA{}))
		}
	}
}

// What is not a picture is an error, never a panic, and cannot ask for much memory.
func TestRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":                                "no svg element",
		"<html/>":                         "want svg",
		`<svg width="1e9" height="1e9"/>`: "pixels",
		`<svg width="9" height="9"><path d="L1 1"/></svg>`:   "want M",
		`<svg width="9" height="9"><path d="M1"/></svg>`:     "want 2",
		`<svg width="9" height="9"><path d="M1 1C2"/></svg>`: "path",
		`<svg width="9" height="9">`:                         "EOF",
	} {
		if _, err := raster.PNG([]byte(text), 1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error with %q", text, err, want)
		}
	}
}
