package raster

import (
	"fmt"
	"image"
	"image/color"
	"math"
	"strconv"
	"strings"

	"golang.org/x/image/vector"
)

// point is a place in pixels of the SVG.
type point struct{ x, y float64 }

// line is a chain of straight lines.
type line struct {
	points []point
	closed bool
}

// path reads the path data that pictures use: M, L, H, V and Z, absolute or relative, each with
// its letter.
func path(d string) (lines []line, err error) {
	var at point
	for d != "" {
		command := d[0]
		n := strings.IndexAny(d[1:], "MmLlHhVvZz")
		if n < 0 {
			n = len(d) - 1
		}
		args, err := coordinates(d[1 : 1+n])
		if err != nil {
			return nil, err
		}
		d = d[1+n:]
		if want := map[byte]int{'M': 2, 'L': 2, 'H': 1, 'V': 1, 'Z': 0}[command&^0x20]; len(args) != want {
			return nil, fmt.Errorf("read a path: %c has %d numbers; want %d", command, len(args), want)
		}
		var from point
		if command >= 'a' {
			from = at
		}
		last := len(lines) - 1
		if last < 0 && command&^0x20 != 'M' {
			return nil, fmt.Errorf("read a path: it begins with %c; want M", command)
		}
		switch command &^ 0x20 {
		case 'M', 'L':
			at = point{from.x + args[0], from.y + args[1]}
		case 'H':
			at.x = from.x + args[0]
		case 'V':
			at.y = from.y + args[0]
		case 'Z':
			lines[last].closed, at = true, lines[last].points[0]
			continue
		}
		if command&^0x20 == 'M' {
			lines = append(lines, line{})
			last++
		}
		lines[last].points = append(lines[last].points, at)
	}
	return lines, nil
}

// coordinates reads numbers that are apart by spaces, commas or a minus sign.
func coordinates(text string) (list []float64, err error) {
	for _, word := range strings.FieldsFunc(strings.ReplaceAll(text, "-", " -"), func(r rune) bool { return r == ' ' || r == ',' }) {
		v, err := strconv.ParseFloat(word, 64)
		if err != nil {
			return nil, fmt.Errorf("read a path: %w", err)
		}
		list = append(list, v)
	}
	return list, nil
}

// circle returns a circle as a polygon, which looks round at any size of a picture.
func circle(x, y, r float64) line {
	const corners = 40
	l := line{closed: true}
	for i := range corners {
		sin, cos := math.Sincos(2 * math.Pi * float64(i) / corners)
		l.points = append(l.points, point{x + r*cos, y + r*sin})
	}
	return l
}

// segments calls f for each straight part of a line.
func (l line) segments(f func(a, b point)) {
	for i := 1; i < len(l.points); i++ {
		f(l.points[i-1], l.points[i])
	}
	if n := len(l.points); l.closed && n > 1 {
		f(l.points[n-1], l.points[0])
	}
}

// dashed cuts a line by a pattern of lengths: drawn, left out, and so on.
func dashed(l line, pattern []float64) []line {
	if len(pattern) == 0 {
		return []line{l}
	}
	var parts []line
	k, left := 0, pattern[0]
	l.segments(func(a, b point) {
		length := math.Hypot(b.x-a.x, b.y-a.y)
		for at := 0.0; at < length; {
			end := min(length, at+left)
			if k%2 == 0 {
				on := func(d float64) point { return point{a.x + (b.x-a.x)*d/length, a.y + (b.y-a.y)*d/length} }
				parts = append(parts, line{points: []point{on(at), on(end)}})
			}
			if left -= end - at; left <= 1e-9 {
				k++
				left = pattern[k%len(pattern)]
			}
			at = end
		}
	})
	return parts
}

// strokes returns the polygons that cover a line of a width: a rectangle for each straight part,
// and a circle where two of them meet and, if its ends are round, at its ends.
func strokes(l line, width float64, round bool) (polygons []line) {
	half := width / 2
	l.segments(func(a, b point) {
		length := math.Hypot(b.x-a.x, b.y-a.y)
		if length == 0 {
			return
		}
		nx, ny := -(b.y-a.y)/length*half, (b.x-a.x)/length*half
		// All polygons turn the same way, so that they do not cancel where they overlap.
		polygons = append(polygons, line{closed: true, points: []point{{a.x - nx, a.y - ny}, {b.x - nx, b.y - ny}, {b.x + nx, b.y + ny},
			{a.x + nx, a.y + ny}}})
	})
	if width <= 1.5 {
		return polygons // nobody sees the joints
	}
	for i, p := range l.points {
		if inner := l.closed || i > 0 && i < len(l.points)-1; inner || round {
			polygons = append(polygons, circle(p.x, p.y, half))
		}
	}
	return polygons
}

// fill fills polygons; where they overlap the colour is no stronger.
func (c *canvas) fill(polygons []line, paint color.NRGBA) {
	clip := c.clips[len(c.clips)-1]
	box := c.bounds(polygons).Intersect(clip)
	if box.Empty() {
		return
	}
	z := vector.NewRasterizer(box.Dx(), box.Dy())
	place := func(p point) (x, y float32) {
		return float32(p.x*c.scale - float64(box.Min.X)), float32(p.y*c.scale - float64(box.Min.Y))
	}
	for _, polygon := range polygons {
		for i, p := range polygon.points {
			if x, y := place(p); i == 0 {
				z.MoveTo(x, y)
			} else {
				z.LineTo(x, y)
			}
		}
		z.ClosePath()
	}
	z.Draw(c.image, box, image.NewUniform(paint), image.Point{})
}

// bounds returns the pixels that polygons touch.
func (c *canvas) bounds(polygons []line) image.Rectangle {
	low, high := point{math.Inf(1), math.Inf(1)}, point{math.Inf(-1), math.Inf(-1)}
	for _, polygon := range polygons {
		for _, p := range polygon.points {
			low, high = point{min(low.x, p.x), min(low.y, p.y)}, point{max(high.x, p.x), max(high.y, p.y)}
		}
	}
	if !(low.x <= high.x && low.y <= high.y) {
		return image.Rectangle{}
	}
	all := c.image.Bounds()
	pixel := func(v float64, most int) int { return int(max(-1, min(v*c.scale, float64(most+1)))) }
	return image.Rect(pixel(low.x, all.Max.X)-1, pixel(low.y, all.Max.Y)-1, pixel(high.x, all.Max.X)+2, pixel(high.y, all.Max.Y)+2)
}
