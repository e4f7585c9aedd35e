package dashboard_test

import (
	"fmt"
	"net/http"
	"testing"
)

// BenchmarkPages asks for pages of studies of several sizes, each time with another filter,
// so that no kept page is sent.
func BenchmarkPages(b *testing.B) {
	for _, trials := range []int{100, 5_000, 50_000} {
		s := serve(b, after(float64(trials)*1.5), "")
		create(b, s.Memory, "digits", trials, 8)
		for _, view := range []string{"", "/insights", "/diagnostics", "/health"} {
			b.Run(fmt.Sprintf("trials=%d/view=%s", trials, view), func(b *testing.B) {
				s.eventually(b, "/ui/studies/digits"+view, "Best so far")
				n := 0
				for b.Loop() {
					n++
					_, body := s.ask(b, http.MethodGet, fmt.Sprintf("/ui/studies/digits%s?top=%d", view, trials+n), nil)
					b.ReportMetric(float64(len(body))/1000, "kB")
				}
			})
		}
	}
}
