package assistant

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"connectrpc.com/connect"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/internal/exchange/export"
	"github.com/fantasia-hpo/fantasia/internal/exchange/fetch"
	"github.com/fantasia-hpo/fantasia/internal/show/htmlreport"
)

// prefix begins the address of every resource.
const prefix = "fantasia://studies/"

// resources adds what can be read of every study.
func (s *Server) resources() {
	s.resource("report", "text/html", "Report of a study", "One HTML page with the results of a study, what they say about the parameters, "+
		"what the optimiser and the workers did, and all pictures. For people; it needs no network.", s.reportOf)
	s.resource("trials", "text/csv", "Trials of a study", "All trials of a study as CSV: a line each, with its point, values, metrics, "+
		"state and times.", s.trialsOf)
}

// resource adds a resource of every study.
func (s *Server) resource(name, mime, title, description string, read func(context.Context, string) ([]byte, error)) {
	s.mcp.AddResourceTemplate(&mcp.ResourceTemplate{
		Name: name, Title: title, Description: description, MIMEType: mime, URITemplate: prefix + "{study}/" + name,
	}, func(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		uri := req.Params.URI
		study, ok := strings.CutSuffix(strings.TrimPrefix(uri, prefix), "/"+name)
		if !ok {
			return nil, mcp.ResourceNotFoundError(uri)
		}
		content, err := read(called(ctx, req.Extra), study)
		switch {
		case connect.CodeOf(err) == connect.CodeNotFound:
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: s.explain(err).Error()}
		case err != nil:
			return nil, s.explain(err)
		case len(content) > maxResource:
			return nil, fmt.Errorf("the resource %s has %d bytes, and at most %d are sent: use fantasia study export or fantasia report", uri,
				len(content), maxResource)
		}
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: uri, MIMEType: mime, Text: string(content)}}}, nil
	})
}

func (s *Server) reportOf(ctx context.Context, study string) (page []byte, err error) {
	err = s.fitting(ctx, study, func(ctx context.Context, src *Source) error {
		from, err := s.source(ctx, src, study)
		if err == nil {
			page, err = htmlreport.HTML(ctx, from)
		}
		return err
	})
	return page, err
}

func (s *Server) trialsOf(ctx context.Context, study string) ([]byte, error) {
	var b bytes.Buffer
	err := s.on(ctx, study, 0, func(ctx context.Context, src *Source) error {
		parsed, trials, err := fetch.StudyAndTrials(s.within(ctx, src), "studies/"+study)
		if err != nil {
			return err
		}
		return export.Of(&parsed.Spec, view.List(trials)).CSV(&b)
	})
	return b.Bytes(), err
}
