package outline

import (
	"slices"
	"strings"
	"testing"
)

func TestOf(t *testing.T) {
	const page = `<!doctype html><html><head><script src="/a.js"></script></head><body><p class="a" id="b">x</p><svg><text>y</text></svg></body></html>`
	got, err := Of(page)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{" html[]", "  head[]", "   script[src]", "  body[]", "   p[class id]", "   svg[]"}; !slices.Equal(got, want) {
		t.Errorf("the outline is %q, want %q", got, want)
	}
	for text, same := range map[string]bool{"&lt;b&gt;": true, "<b>": false, "</p>": false, "</svg>": true} {
		other, err := Of(strings.Replace(page, ">x<", ">"+text+"<", 1))
		if err != nil || slices.Equal(got, other) != same {
			t.Errorf("with the text %s the outline is %q (%v); want the same: %v", text, other, err, same)
		}
	}
	for _, bad := range []string{
		`<img src="x">`, `<p onclick="x">`, `<p style="x">`, `<a href="javascript:x">`, `<a href="//elsewhere/">`,
		`<a href="https://elsewhere/">`, `<a href=" java&#9;script:x">`,
		`<script>x</script>`, `<style>x</style>`, `<!-- x -->`, `<svg><script>x</script></svg>`, `<svg><a xlink:href="javascript:x"></a></svg>`,
		`<svg onload="x"></svg>`,
		`<svg><foreignObject></foreignObject></svg>`, `<base href="/">`, `<form action="javascript:x">`,
	} {
		if list, err := Of("<!doctype html><body>" + bad); err == nil {
			t.Errorf("%s is not refused; its outline is %q", bad, list)
		}
	}
}
