package picture

import (
	"fmt"
	"math"
)

// series draws a series; dots outside the range are drawn at its edge.
func (d *chart) series(s *Series) {
	points := usable(s.Points)
	switch s.Kind {
	case Dots:
		d.dots(s, points)
		return
	case Whiskers:
		d.whiskers(s)
		return
	}
	if len(points) == 0 {
		return
	}
	d.clip(d.left-2, d.top-2, d.right+2, d.bottom+2)
	if len(s.Low) == len(points) && len(s.High) == len(points) {
		d.band(s, points)
	}
	trial := 0
	if first, last := points[0], points[len(points)-1]; first.Trial == last.Trial {
		trial = first.Trial
	}
	d.f(`<path class="%s"%s data-name="%s"%s d="M%.2f %.2f`, s.class(), dash(s.Dash), escape(s.Name), data(trial, math.NaN(), math.NaN()),
		d.px(points[0].X), d.py(points[0].Y))
	for _, p := range points[1:] {
		if s.Kind == Steps {
			d.f("H%.2fV%.2f", d.px(p.X), d.py(p.Y))
		} else {
			d.f("L%.2f %.2f", d.px(p.X), d.py(p.Y))
		}
	}
	d.f(`">%s</path>`+"\n", tip(points[0].Note))
	d.endClip()
}

// class returns the class of a line.
func (s *Series) class() string {
	switch {
	case s.Faint:
		return "line faint"
	case s.Thin:
		return "line thin " + colour(s.Color)
	}
	return "line " + colour(s.Color)
}

func (d *chart) dots(s *Series, points []Point) {
	low, high := d.shown()
	for _, p := range points {
		x := d.px(p.X)
		class := "mark"
		if s.Sign != PlainDot {
			class += " " + colour(s.Color)
		}
		switch {
		case p.Y > high:
			d.f(`<path class="%s" d="%s"%s>%s</path>`+"\n", class, arrow(x, d.top+1, 1), data(p.Trial, p.X, p.Y), tip(p.Note))
		case p.Y < low:
			d.f(`<path class="%s" d="%s"%s>%s</path>`+"\n", class, arrow(x, d.bottom-1, -1), data(p.Trial, p.X, p.Y), tip(p.Note))
		default:
			d.dot(s, x, d.py(p.Y), data(p.Trial, p.X, p.Y), p.Note)
		}
	}
}

// dot draws one sign of a series of dots.
func (c *canvas) dot(s *Series, x, y float64, attributes, note string) {
	switch s.Sign {
	case ColorDot:
		c.f(`<circle class="dot %s" cx="%.2f" cy="%.2f" r="3.5"%s>%s</circle>`+"\n", colour(s.Color), x, y, attributes, tip(note))
	case Ring:
		c.f(`<circle class="sign %s" cx="%.2f" cy="%.2f" r="6"%s>%s</circle>`+"\n", colour(s.Color), x, y, attributes, tip(note))
	case Diamond:
		c.f(`<path class="sign %s" d="M%.2f %.2fl6.5 6.5l-6.5 6.5l-6.5-6.5Z"%s>%s</path>`+"\n", colour(s.Color), x, y-6.5, attributes, tip(note))
	default:
		c.f(`<circle class="dot" cx="%.2f" cy="%.2f" r="3"%s>%s</circle>`+"\n", x, y, attributes, tip(note))
	}
}

// whiskers draws a bar from Low to High at each point, with a dot at the point.
func (d *chart) whiskers(s *Series) {
	d.clip(d.left-2, d.top-2, d.right+2, d.bottom+2)
	for i, p := range s.Points {
		if math.IsNaN(p.X) || math.IsNaN(p.Y) || i >= len(s.Low) || i >= len(s.High) || math.IsNaN(s.Low[i]+s.High[i]) {
			continue
		}
		x, y := d.px(p.X), d.py(p.Y)
		d.f(`<path class="line faint" d="M%.2f %.2fV%.2f"/>`+"\n", x, d.py(s.Low[i]), d.py(s.High[i]))
		d.f(`<circle class="dot %s" cx="%.2f" cy="%.2f" r="3"%s data-low="%s" data-high="%s">%s</circle>`+"\n", colour(s.Color), x, y,
			data(p.Trial, p.X, p.Y), exact(s.Low[i]), exact(s.High[i]), tip(p.Note))
	}
	d.endClip()
}

// band draws the area between the series' low and high values.
func (d *chart) band(s *Series, points []Point) {
	d.f(`<path class="band %s" d="`, colour(s.Color))
	for i, p := range points {
		d.f("%c%.2f %.2f", "ML"[min(i, 1)], d.px(p.X), d.py(s.Low[i]))
	}
	for i := len(points) - 1; i >= 0; i-- {
		d.f("L%.2f %.2f", d.px(points[i].X), d.py(s.High[i]))
	}
	d.f(`Z"/>` + "\n")
}

// shown returns the range of values whose dots are drawn at their own position.
func (d *chart) shown() (low, high float64) {
	if d.Low == 0 && d.High == 0 {
		return math.Inf(-1), math.Inf(1)
	}
	return min(d.Low, d.y.low), max(d.High, d.y.high)
}

// lane draws a row of marks.
func (d *chart) lane(l *Lane, number int, y float64) {
	d.label("soft", d.left-8, y+4, "end", l.Name, widestLabel)
	for _, p := range placed(l.Points) {
		d.sign(l.Mark, number, d.px(p.X), y, data(p.Trial, p.X, math.NaN()), p.Note)
	}
}

// sign draws a lane's mark.
func (c *canvas) sign(mark rune, number int, x, y float64, attributes, note string) {
	class := "sign " + colour(number+1)
	switch mark {
	case '×':
		c.f(`<path class="%s" d="M%.2f %.2fl7 7m-7 0l7-7"%s>%s</path>`+"\n", class, x-3.5, y-3.5, attributes, tip(note))
	case '▽':
		c.f(`<path class="%s" d="M%.2f %.2fh8l-4 7Z"%s>%s</path>`+"\n", class, x-4, y-3.5, attributes, tip(note))
	default:
		c.f(`<circle class="%s" cx="%.2f" cy="%.2f" r="3.5"%s>%s</circle>`+"\n", class, x, y, attributes, tip(note))
	}
}

// arrow draws a triangle with its point at y; it points up if way is 1.
func arrow(x, y, way float64) string {
	return fmt.Sprintf("M%.2f %.2fl4 %gh-8Z", x, y, way*7)
}
