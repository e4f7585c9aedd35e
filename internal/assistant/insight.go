package assistant

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/fantasia-hpo/fantasia/internal/assistant/raster"
	"github.com/fantasia-hpo/fantasia/internal/exchange/fetch"
	"github.com/fantasia-hpo/fantasia/internal/show/figure"
	"github.com/fantasia-hpo/fantasia/internal/show/htmlreport"
	"github.com/fantasia-hpo/fantasia/internal/show/picture"
)

const (
	// fitTime bounds what fits a model, such as diagnose.
	fitTime = 2 * time.Minute
	// usualWidth is the default width of a picture in pixels of its SVG. Its PNG is twice as wide.
	usualWidth = 720
	sharpness  = 2
)

type pictureInput struct {
	Study      string   `json:"study" jsonschema:"the name of the study, or its id"`
	Picture    string   `json:"picture" jsonschema:"which picture"`
	Parameters []string `json:"parameters,omitempty" jsonschema:"one parameter for slice, dependence and duration, two for contour"`
	Width      int      `json:"width,omitempty" jsonschema:"the width of the layout in pixels; the image has twice as many (default 720)"`
}

// insightTools adds the tools that look at all trials of a study together.
func (s *Server) insightTools() {
	add(s, tool[studyInput]("diagnose", "Diagnose a study",
		"Fits a model to the trials and says how well it predicts, how noisy evaluations are, which parameters matter and how much, which "+
			"settings of the optimiser fit, and what rules of early stopping would have saved. findings has the conclusions in words.", reads,
		nil), s.diagnose)
	pictures := tool[pictureInput]("picture", "Draw a picture of a study",
		"Draws a picture of a study as a PNG image, and says how to read it. history: values over time; curves: what trials reported while "+
			"they ran; allocation: how many steps each trial ran, with early stopping; parallel: all parameters of all trials; "+
			"slice: values against one parameter; importances; dependence: what the model "+
			"expects along one parameter; duration: how long trials take along one; importances-duration: what decides that; contour: along "+
			"two; fit: how well the model predicts; staleness; workers: who ran what when; pending: how many trials ran at once.", reads,
		func(p map[string]*jsonschema.Schema) {
			for _, n := range figure.Single {
				oneOf(p["picture"], n.Name)
			}
			p["parameters"].MaxItems = new(2)
			between(p["width"], 280, 1600)
		})
	mcp.AddTool(s.mcp, pictures, func(ctx context.Context, req *mcp.CallToolRequest, in pictureInput) (*mcp.CallToolResult, any, error) {
		image, help, err := s.picture(called(ctx, req.Extra), in)
		if err != nil {
			return nil, nil, s.explain(err)
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.ImageContent{Data: image, MIMEType: "image/png"}, &mcp.TextContent{Text: help}}},
			nil, nil
	})
}

// diagnose returns the report as JSON, whose form is that of fantasia study diagnose.
func (s *Server) diagnose(ctx context.Context, in studyInput) (out map[string]any, err error) {
	err = s.fitting(ctx, in.Study, func(ctx context.Context, src *Source) error {
		_, found, err := fetch.Diagnose(ctx, s.within(ctx, src), in.Study)
		if err != nil {
			return err
		}
		content, err := json.Marshal(found)
		if err == nil {
			err = json.Unmarshal(content, &out)
		}
		return err
	})
	return out, err
}

// fitting calls f with the source of a study and the time that a model takes.
func (s *Server) fitting(ctx context.Context, study string, f func(context.Context, *Source) error) error {
	return s.on(ctx, study, fitTime, f)
}

// source fetches what a report is made from.
func (s *Server) source(ctx context.Context, src *Source, study string) (*htmlreport.Source, error) {
	got, front, err := getStudy(ctx, src, study)
	if err != nil {
		return nil, err
	}
	v := viewOf(src, got)
	v.Front = front
	r, err := fetch.Source(s.within(ctx, src), study, v, got.GetReason())
	if err == nil {
		r.Version = s.o.Version
	}
	return r, err
}

// picture draws a picture of a study, and says how to read it.
func (s *Server) picture(ctx context.Context, in pictureInput) (image []byte, help string, err error) {
	err = s.fitting(ctx, in.Study, func(ctx context.Context, src *Source) error {
		from, err := s.source(ctx, src, in.Study)
		if err != nil {
			return err
		}
		f, err := htmlreport.Single(ctx, from, in.Picture, in.Parameters)
		if err != nil {
			return err
		}
		frame := picture.Frame{Width: cmp.Or(in.Width, usualWidth)}
		if f.Title != "" {
			frame.Title = f.Title + " of " + from.Study.Metadata.Name
		}
		help = strings.TrimSpace(strings.Join(append([]string{f.Help}, f.Lines...), "\n"))
		if help == "" {
			help = fmt.Sprintf("%s of %s", in.Picture, strings.Join(in.Parameters, " and "))
		}
		image, err = raster.PNG(f.Pictures[0].SVG(frame), sharpness)
		return err
	})
	return image, help, err
}
