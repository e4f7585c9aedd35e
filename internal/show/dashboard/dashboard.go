// Package dashboard serves pages on which people follow studies in a browser. The server
// makes every page and every picture; a small script only keeps an open page current.
// Pages change nothing.
package dashboard

import (
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	_ "embed" // for the files below
	"encoding/hex"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/klauspost/compress/gzhttp"

	"github.com/fantasia-hpo/fantasia/api/fantasia/v1/fantasiav1connect"
	"github.com/fantasia-hpo/fantasia/api/server"
	"github.com/fantasia-hpo/fantasia/internal/base/httpserve"
	"github.com/fantasia-hpo/fantasia/internal/show/picture"
	"github.com/fantasia-hpo/fantasia/telemetry"
)

// Path is where the dashboard must be mounted.
const Path = "/ui/"

// Options configure a dashboard. API is required.
type Options struct {
	// API is the handler of the API that serves the same backend. The dashboard asks it
	// for what only the leader knows.
	API http.Handler
	// Tokens knows the tokens with which people log in. Nil shows everything to
	// everybody.
	Tokens server.Bearers
	// Draining is closed when the server begins to shut down; the streams of open pages
	// then end. A nil channel never closes.
	Draining <-chan struct{}
	// Logger gets unexpected errors. Default: no log.
	Logger *slog.Logger
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// Dashboard is the handler of all pages. It is safe for concurrent use.
type Dashboard struct {
	backend server.Reader // its lists are restricted to the grant of the request's context
	o       Options
	api     fantasiav1connect.StudyServiceClient
	handler http.Handler
	follow  *followers
	streams *seats // of open streams
	logs    *seats // of followed logs
	analyst *analyst
	refused *telemetry.Refusals

	stop    context.CancelFunc
	running sync.WaitGroup
}

// The bounds of a dashboard.
const (
	// maxStreams bounds the open pages that are told of changes. Others ask again from
	// time to time.
	maxStreams = 100
	// maxLogs bounds the logs that are followed. Each asks a worker.
	maxLogs = 20
)

// New returns the dashboard of a backend. Close MUST be called.
func New(b server.Reader, o Options) *Dashboard {
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Now == nil {
		o.Now = time.Now
	}
	ctx, stop := context.WithCancel(context.Background())
	d := &Dashboard{
		backend: b, o: o, stop: stop,
		api:     fantasiav1connect.NewStudyServiceClient(&http.Client{Transport: httpserve.InProcess{Handler: o.API}}, "http://api"),
		streams: &seats{total: maxStreams, share: maxStreams / 4}, logs: &seats{total: maxLogs, share: maxLogs / 4},
		refused: telemetry.NewRefusals(o.Logger, "refused a login to the dashboard", o.Now),
	}
	if o.Tokens != nil {
		d.backend = server.Restrict(b)
	} else { // nobody tells readers apart
		d.streams.share, d.logs.share = maxStreams, maxLogs
	}
	d.follow = newFollowers(ctx, b, o.Logger, o.Now)
	d.analyst = &analyst{waiting: make(chan job, maxWaiting), answers: map[string]finding{}, asked: map[string]bool{}}
	d.running.Go(func() { d.analyst.run(ctx) })
	d.handler = d.routes()
	return d
}

// Close ends what the dashboard does in the background, and waits for it.
func (d *Dashboard) Close() error {
	d.stop()
	d.follow.wait()
	d.running.Wait()
	return nil
}

// ServeHTTP implements http.Handler.
func (d *Dashboard) ServeHTTP(w http.ResponseWriter, r *http.Request) { d.handler.ServeHTTP(w, r) }

// routes returns the handler of all pages.
func (d *Dashboard) routes() http.Handler {
	// Pictures shrink to a fifth or less. Streams stay as they are, since each of their
	// events must leave at once.
	compress, err := gzhttp.NewWrapper(gzhttp.CompressionLevel(gzip.BestSpeed))
	if err != nil {
		panic(err) // the options are constants
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /ui/static/{file}", compress(http.HandlerFunc(serveStatic)))
	mux.HandleFunc("GET /ui/login", d.loginPage)
	mux.HandleFunc("POST /ui/login", d.login)
	mux.HandleFunc("POST /ui/logout", d.logout)
	for pattern, handle := range map[string]func(http.ResponseWriter, *http.Request) error{
		"GET /ui/{$}":                             d.studiesPage,
		"GET /ui/workers":                         d.workersPage,
		"GET /ui/studies/{study}":                 d.studyPage,
		"GET /ui/studies/{study}/{view}":          d.studyPage,
		"GET /ui/studies/{study}/trials/{number}": d.trialPage,
	} {
		mux.Handle(pattern, compress(d.authorized(handle)))
	}
	mux.Handle("GET /ui/studies/{study}/pictures/{picture}", compress(http.HandlerFunc(d.authorizedPicture)))
	mux.Handle("GET /ui/studies/{study}/events", d.authorized(d.events))
	mux.Handle("GET /ui/studies/{study}/trials/{number}/log", d.authorized(d.logEvents))
	mux.HandleFunc("GET /ui/", func(w http.ResponseWriter, r *http.Request) {
		d.fail(w, r, notFound("There is no such page."))
	})
	protection := http.NewCrossOriginProtection()
	return headers(protection.Handler(mux))
}

//go:embed static/script.js
var script string

//go:embed static/style.css
var style string

//go:embed static/icon.svg
var icon string

// file is a static file; its name changes with its content, so browsers can keep it.
type file struct{ name, kind, content string }

func newFile(stem, suffix, kind, content string) file {
	sum := sha256.Sum256([]byte(content))
	return file{stem + "-" + hex.EncodeToString(sum[:6]) + suffix, kind, content}
}

var (
	scriptFile = newFile("script", ".js", "text/javascript; charset=utf-8", script)
	styleFile  = newFile("style", ".css", "text/css; charset=utf-8", style+picture.Style())
	iconFile   = newFile("icon", ".svg", "image/svg+xml", icon)
	scriptPath = Path + "static/" + scriptFile.name
	stylePath  = Path + "static/" + styleFile.name
	iconPath   = Path + "static/" + iconFile.name
)

func serveStatic(w http.ResponseWriter, r *http.Request) {
	for _, f := range []file{scriptFile, styleFile, iconFile} {
		if r.PathValue("file") == f.name {
			w.Header().Set("Content-Type", f.kind)
			w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
			_, _ = io.WriteString(w, f.content) // the reader may be gone
			return
		}
	}
	http.NotFound(w, r)
}
