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
		create(b, s.Backend, "digits", trials, 8)
		for _, view := range []string{"", "/insights", "/diagnostics", "/health"} {
			b.Run(fmt.Sprintf("trials=%d/view=%s", trials, view), func(b *testing.B) {
				text := "Best so far"
				if view == "/insights" || view == "/diagnostics" {
					text = "The model was fitted to"
				}
				s.eventually(b, "/ui/studies/digits"+view, text)
				n, page := 0, ""
				ask := func(change func(*http.Request)) string {
					n++
					_, body := s.ask(b, http.MethodGet, fmt.Sprintf("/ui/studies/digits%s?top=%d", view, trials+n), change)
					return body
				}
				for b.Loop() {
					page = ask(nil) // compressed on its way
				}
				b.ReportMetric(float64(len(page))/1000, "kB")
				sent := ask(func(r *http.Request) { r.Header.Set("Accept-Encoding", "gzip") })
				b.ReportMetric(float64(len(sent))/1000, "kB-sent")
			})
		}
	}
}
