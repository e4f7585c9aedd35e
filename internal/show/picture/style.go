package picture

import (
	"fmt"
	"html"
	"strings"
)

// palette holds the colours of Okabe and Ito, which people with any kind of colour
// blindness can distinguish (https://jfly.uni-koeln.de/color/): one for white and,
// lighter where needed, one for black. Yellow is left out, since it is hard to see on
// white.
var palette = []struct{ light, dark string }{
	{"#0072b2", "#56b4e9"}, // blue
	{"#d55e00", "#ff8c42"}, // vermilion
	{"#009e73", "#2fd6a5"}, // green
	{"#a8488a", "#e59bcb"}, // purple
	{"#b07800", "#f0c04a"}, // orange
	{"#444444", "#d0d0d0"}, // grey
}

// levels is viridis (van der Walt and Smith 2015) in ten steps, from dark to bright.
// Its lightness grows evenly, so it can also be read without any colour. Good values get
// the end that stands out from the paper: the dark end on white, the bright end on black.
var levels = [...]string{
	"#440154", "#482878", "#3e4989", "#31688e", "#26828e", "#1f9e89", "#35b779", "#6ece58", "#b5de2b", "#fde725",
}

// level returns the class of a share from 0, the worst value, to 1, the best.
func level(share float64) string {
	return fmt.Sprintf("q%d", max(0, min(len(levels)-1, int(share*float64(len(levels))))))
}

// colour returns the class of the colour with that number.
func colour(n int) string { return fmt.Sprintf("c%d", n%len(palette)) }

// dash returns the attribute of a line pattern.
func dash(n int) string {
	return [...]string{"", ` stroke-dasharray="7 4"`, ` stroke-dasharray="2 3"`, ` stroke-dasharray="9 3 2 3"`}[n%4]
}

// fonts are system fonts of every platform: the picture embeds none.
const fonts = `system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue","Noto Sans","Liberation Sans","DejaVu Sans",Arial,sans-serif`

// Style returns the stylesheet of inline pictures. A page shows them light or dark as
// its reader's system has it, or as the attribute data-theme of its root element says
// ("light" or "dark"). It can set the custom properties (--picture-…) to its own colours.
func Style() string { return style(true) }

// style returns the stylesheet of a picture in a page or in a file.
func style(page bool) string {
	var b strings.Builder
	b.WriteString(".picture text{font:12px " + fonts + ";fill:var(--picture-ink)}.picture .title{font-size:17px;font-weight:600}\n" +
		".picture .soft,.picture .number{fill:var(--picture-soft)}.picture .paper{fill:var(--picture-paper)}\n" +
		".picture .grid{stroke:var(--picture-grid);stroke-width:1;fill:none}.picture " +
		".axis{stroke:var(--picture-soft);stroke-width:1;fill:none}\n" +
		".picture .line{fill:none;stroke-width:2.25;stroke-linejoin:round;stroke-linecap:round}.picture .thin{stroke-width:1.2}.picture " +
		".faint{stroke:var(--picture-dot);stroke-width:1;stroke-opacity:.6}\n" +
		".picture .band{stroke:none;fill-opacity:.16}.picture .sign{fill:none;stroke-width:1.8;stroke-linecap:round}\n" +
		".picture .halo{paint-order:stroke;stroke:var(--picture-paper);stroke-width:3;stroke-linejoin:round}\n" +
		".picture .dot,.picture .mark{fill:var(--picture-dot)}.picture .bar{stroke:var(--picture-paper);stroke-width:.5}.picture " +
		".over{stroke:var(--picture-paper);stroke-width:1.2}\n")
	for i := range palette {
		fmt.Fprintf(&b, ".picture .line.c%d,.picture .sign.c%d{stroke:var(--picture-c%d)}.picture .band.c%d,.picture .bar.c%d,.picture "+
			".dot.c%d,.picture .mark.c%d{fill:var(--picture-c%d)}\n", i, i, i, i, i, i, i, i)
	}
	for i := range levels {
		fmt.Fprintf(&b, ".picture .area.q%d,.picture .dot.q%d{fill:var(--picture-q%d)}.picture .line.q%d{stroke:var(--picture-q%d)}\n", i, i, i,
			i, i)
	}
	light := properties("#ffffff", "#1f2328", "#59636e", "#e4e7eb", "#8c959f", false)
	dark := properties("#0d1117", "#e6edf3", "#9198a1", "#262c36", "#8b949e", true)
	b.WriteString(".picture{" + light + "}\n")
	if !page {
		b.WriteString("@media (prefers-color-scheme:dark){.picture{" + dark + "}}\n")
		return b.String()
	}
	b.WriteString("@media (prefers-color-scheme:dark){:root:not([data-theme=light]) .picture{" + dark + "}}\n")
	b.WriteString(":root[data-theme=dark] .picture{" + dark + "}\n")
	return b.String()
}

// properties sets the colours.
func properties(paper, ink, soft, grid, dot string, dark bool) string {
	s := fmt.Sprintf("--picture-paper:%s;--picture-ink:%s;--picture-soft:%s;--picture-grid:%s;--picture-dot:%s", paper, ink, soft, grid, dot)
	for i, c := range palette {
		of := c.light
		if dark {
			of = c.dark
		}
		s += fmt.Sprintf(";--picture-c%d:%s", i, of)
	}
	for i := range levels {
		of := levels[len(levels)-1-i]
		if dark {
			of = levels[i]
		}
		s += fmt.Sprintf(";--picture-q%d:%s", i, of)
	}
	return s
}

// escape makes text safe in SVG and HTML. Characters that XML cannot hold become U+FFFD.
func escape(text string) string {
	return html.EscapeString(strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' && r != '\n' || r == 0xfffe || r == 0xffff {
			return '\ufffd'
		}
		return r
	}, strings.ToValidUTF8(text, "\ufffd")))
}
