package raster

import (
	"fmt"
	"image"
	"image/color"
	"math"
	"strings"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
)

// fonts are the typefaces of a picture, by size and weight.
type fonts map[face]font.Face

type face struct {
	size float64
	bold bool
}

// get returns a typeface.
func (f *fonts) get(want face) (font.Face, error) {
	if known, ok := (*f)[want]; ok {
		return known, nil
	}
	content := goregular.TTF
	if want.bold {
		content = gobold.TTF
	}
	parsed, err := opentype.Parse(content)
	if err != nil {
		return nil, fmt.Errorf("read the typeface: %w", err)
	}
	made, err := opentype.NewFace(parsed, &opentype.FaceOptions{Size: want.size, DPI: 72})
	if err != nil {
		return nil, fmt.Errorf("read the typeface: %w", err)
	}
	if *f == nil {
		*f = fonts{}
	}
	(*f)[want] = made
	return made, nil
}

// label draws a line of text. A halo is a copy of the text in its colour on each side.
func (c *canvas) label(e *element) error {
	style := c.rules.of(e)
	fill, ok := style.paint("fill", color.NRGBA{A: 255})
	if !ok {
		return nil
	}
	size := style.number("font-size", 12)
	f, err := c.fonts.get(face{size * c.scale, style["font-weight"] == "600"})
	if err != nil {
		return err
	}
	text := strings.TrimSpace(e.text.String())
	x, y := e.number("x")*c.scale, e.number("y")*c.scale
	width := float64(font.MeasureString(f, text)) / 64
	switch e.attributes["text-anchor"] {
	case "middle":
		x -= width / 2
	case "end":
		x -= width
	}
	clipped, ok := c.image.SubImage(c.clips[len(c.clips)-1]).(*image.RGBA)
	if !ok || clipped.Bounds().Empty() {
		return nil
	}
	write := func(x, y float64, paint color.NRGBA) {
		d := font.Drawer{Dst: clipped, Src: image.NewUniform(paint), Face: f, Dot: fixed.Point26_6{X: fixed.Int26_6(x * 64),
			Y: fixed.Int26_6(y * 64)}}
		d.DrawString(text)
	}
	if halo, ok := style.paint("stroke", color.NRGBA{}); ok {
		far := style.number("stroke-width", 1) / 2 * c.scale
		for i := range 8 {
			sin, cos := math.Sincos(float64(i) * math.Pi / 4)
			write(x+far*cos, y+far*sin, halo)
		}
	}
	write(x, y, fill)
	return nil
}
