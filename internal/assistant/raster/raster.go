// Package raster draws the pictures of package picture as PNG, for readers that take no SVG. It
// knows the part of SVG and of CSS that those pictures use, and not more: straight lines,
// rectangles, circles, one line of text, and rules whose selectors are classes.
//
// Libraries were tried: tdewolff/canvas, the one with texts and styles, reads no variables of a
// stylesheet, draws each picture as one black surface, and brings 14 modules, TeX among them;
// oksvg draws no text.
package raster

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"math"
	"strconv"
	"strings"
)

// MaxPixels bounds a PNG.
const MaxPixels = 24 << 20

// PNG draws an SVG of package picture in its light form, scale times as large. It fails if the
// text is not such an SVG, or if the result had more than MaxPixels.
func PNG(svg []byte, scale float64) ([]byte, error) {
	c := &canvas{scale: scale}
	d := xml.NewDecoder(bytes.NewReader(svg))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read the picture: %w", err)
		}
		if err := c.drawToken(token); err != nil {
			return nil, err
		}
	}
	if c.image == nil {
		return nil, errors.New("read the picture: it has no svg element")
	}
	var b bytes.Buffer
	if err := png.Encode(&b, c.image); err != nil {
		return nil, fmt.Errorf("write the picture: %w", err)
	}
	return b.Bytes(), nil
}

// canvas is a picture while it is drawn.
type canvas struct {
	scale float64
	image *image.RGBA
	rules rules
	fonts fonts
	// clips are the visible parts of the open svg elements, the innermost last.
	clips []image.Rectangle
	// open are the open elements, with what they say.
	open []*element
}

// element is an element of the SVG.
type element struct {
	name       string
	attributes map[string]string
	text       strings.Builder
}

// number returns an attribute in pixels of the SVG; 0 if it has none.
func (e *element) number(name string) float64 {
	v, err := strconv.ParseFloat(e.attributes[name], 64)
	if err != nil {
		return 0
	}
	return v
}

// drawToken draws an element once it is complete.
func (c *canvas) drawToken(token xml.Token) error {
	switch t := token.(type) {
	case xml.StartElement:
		e := &element{name: t.Name.Local, attributes: map[string]string{}}
		for _, a := range t.Attr {
			e.attributes[a.Name.Local] = a.Value
		}
		c.open = append(c.open, e)
		if e.name == "svg" {
			return c.begin(e)
		}
	case xml.CharData:
		if n := len(c.open); n > 0 {
			c.open[n-1].text.Write(t)
		}
	case xml.EndElement:
		last := len(c.open) - 1
		e := c.open[last]
		err := c.end(e)
		c.open = c.open[:last]
		return err
	}
	return nil
}

// begin opens a part of the picture.
func (c *canvas) begin(e *element) error {
	x, y, w, h := e.number("x")*c.scale, e.number("y")*c.scale, e.number("width")*c.scale, e.number("height")*c.scale
	if !(w >= 1 && h >= 1 && w*h <= MaxPixels) {
		return fmt.Errorf("draw the picture: it would have %.0f × %.0f pixels; want 1 to %d in all", w, h, MaxPixels)
	}
	part := image.Rect(int(math.Floor(x)), int(math.Floor(y)), int(math.Ceil(x+w)), int(math.Ceil(y+h)))
	if c.image == nil {
		c.image = image.NewRGBA(part)
		draw.Draw(c.image, part, image.White, image.Point{}, draw.Src)
	} else {
		part = part.Intersect(c.clips[len(c.clips)-1])
	}
	c.clips = append(c.clips, part)
	return nil
}

// end draws an element.
func (c *canvas) end(e *element) error {
	if c.image == nil {
		return fmt.Errorf("read the picture: the first element is %s; want svg", e.name)
	}
	switch e.name {
	case "svg":
		c.clips = c.clips[:len(c.clips)-1]
	case "style":
		c.rules = parseRules(e.text.String())
	case "rect":
		c.shape(e, []line{c.rectangle(e)})
	case "circle":
		c.shape(e, []line{circle(e.number("cx"), e.number("cy"), e.number("r"))})
	case "path":
		lines, err := path(e.attributes["d"])
		if err != nil {
			return err
		}
		c.shape(e, lines)
	case "text":
		return c.label(e)
	}
	return nil
}

// rectangle returns the outline of a rectangle; one without numbers covers everything.
func (c *canvas) rectangle(e *element) line {
	x, y, w, h := e.number("x"), e.number("y"), e.number("width"), e.number("height")
	if e.attributes["width"] == "100%" {
		b := c.image.Bounds()
		w, h = float64(b.Dx())/c.scale, float64(b.Dy())/c.scale
	}
	return line{points: []point{{x, y}, {x + w, y}, {x + w, y + h}, {x, y + h}}, closed: true}
}

// shape fills and then strokes an element.
func (c *canvas) shape(e *element, lines []line) {
	style := c.rules.of(e)
	if fill, ok := style.paint("fill", color.NRGBA{A: 255}); ok {
		c.fill(lines, fill)
	}
	if stroke, ok := style.paint("stroke", color.NRGBA{}); ok {
		width := style.number("stroke-width", 1)
		var outline []line
		for _, l := range lines {
			for _, part := range dashed(l, numbers(e.attributes["stroke-dasharray"])) {
				outline = append(outline, strokes(part, width, style["stroke-linecap"] == "round")...)
			}
		}
		c.fill(outline, stroke)
	}
}
