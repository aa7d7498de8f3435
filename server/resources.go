package server

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"codehand/server/auth"
	"codehand/tools/results"
	"codehand/tools/session"
	"codehand/tools/shell"
)

// The resources of a session. Ids are names and no rights: whatever is named, only what is of the caller's own session is
// looked at. mcp-go's table is one for all sessions, so it holds templates and constant addresses alone.
const (
	resourceScheme = "codehand"
	resultPrefix   = "codehand://results/" // the id of the call follows
	jobPrefix      = "codehand://jobs/"    // the id of the job follows, and jobSuffix
	jobSuffix      = "/output"
	planURI        = "codehand://plan"
	jobsURI        = "codehand://jobs"
	windowOf       = "{?offset,limit}" // of lines, counted from 1
)

const (
	// listedResources is how many kept results, and how many jobs, a list names: the newest.
	listedResources = 50
	// pageLines is how many lines an answer has if nobody says.
	pageLines = 2_000
	// maxPage is how many bytes of text an answer has at most.
	maxPage = 256 << 10
	// noteRoom is the part of maxPage that is left for the line which says what follows.
	noteRoom = 1 << 10
)

// The reasons why a resource is not answered.
var (
	errNoResource = errors.New("resource not found") // unknown, gone, or of somebody else: nobody can tell which
	errWindow     = errors.New("offset and limit are whole numbers from 1")
)

// resultURI names a kept result as a resource.
func resultURI(id string) string { return resultPrefix + id }

// jobURI names the output of a job as a resource.
func jobURI(id string) string { return jobPrefix + id + jobSuffix }

// needsSession says whether the answer to a method that is no call depends on whose session it is.
func needsSession(method string) bool {
	switch mcp.MCPMethod(method) {
	case mcp.MethodResourcesList, mcp.MethodResourcesRead, mcp.MethodCompletionComplete:
		return true
	}
	return false
}

// look takes the session of a request that is no call. The caller runs release when the request is over.
func (s *Server) look(rec *record, key session.Key, release *func()) *rpcError {
	state, end, err := s.sessions.acquire(key, rec.place)
	if err != nil {
		return s.internal(context.Background(), "session", err)
	}
	rec.state, *release = state, end
	return nil
}

// offerResources gives mcp-go what is the same for everybody.
func (s *Server) offerResources() {
	s.mcp.AddResourceTemplate(mcp.NewResourceTemplate(resultPrefix+"{id}"+windowOf, "results",
		mcp.WithTemplateDescription("The whole of a result that was too long to show, by lines."), mcp.WithTemplateMIMEType("text/plain")), s.readResource)
	s.mcp.AddResourceTemplate(mcp.NewResourceTemplate(jobPrefix+"{id}"+jobSuffix+windowOf, "job output",
		mcp.WithTemplateDescription("What a background job has printed, by lines."), mcp.WithTemplateMIMEType("text/plain")), s.readResource)
	for _, r := range []mcp.Resource{planResource, jobsResource} {
		s.mcp.AddResource(r, s.readResource)
	}
}

var (
	planResource = mcp.NewResource(planURI, "plan", mcp.WithResourceDescription("The plan file of this session."), mcp.WithMIMEType("text/markdown"))
	jobsResource = mcp.NewResource(jobsURI, "jobs", mcp.WithResourceDescription("The background jobs of this session."), mcp.WithMIMEType("application/json"))
)

// listResources replaces what mcp-go would list by what the caller's session has.
func (s *Server) listResources(ctx context.Context, _ any, _ *mcp.ListResourcesRequest, result *mcp.ListResourcesResult) {
	rec := recordFrom(ctx)
	list, err := s.resources(ctx, rec)
	if err != nil {
		rec.override = s.internal(ctx, "resources", err)
		return
	}
	for _, r := range result.Resources {
		if r.URI != planURI && r.URI != jobsURI { // of Extend
			list = append(list, r)
		}
	}
	result.Resources = list
}

// resources are those of the caller's session: the plan, the jobs, and the newest results.
func (s *Server) resources(ctx context.Context, rec *record) ([]mcp.Resource, error) {
	list := []mcp.Resource{}
	if !rec.reads() {
		return list, nil
	}
	switch err := readPlan(ctx, rec.state, func(io.Reader) error { return nil }); {
	case err == nil:
		list = append(list, planResource)
	case !errors.Is(err, errNoResource):
		return nil, err
	}
	jobs, err := rec.jobs(ctx)
	if err != nil {
		return nil, err
	}
	if rec.runs() {
		list = append(list, jobsResource)
	}
	for _, j := range jobs[:min(len(jobs), listedResources)] {
		list = append(list, mcp.Resource{URI: jobURI(j.ID), Name: j.ID, Title: "Output of " + clip(results.Clean(j.Command), 60), MIMEType: "text/plain"})
	}
	kept, err := rec.state.Results.List()
	if err != nil {
		return nil, err
	}
	for _, k := range kept[:min(len(kept), listedResources)] {
		list = append(list, mcp.Resource{
			Annotated: mcp.Annotated{Annotations: &mcp.Annotations{LastModified: k.Time.UTC().Format(time.RFC3339)}},
			URI:       resultURI(k.ID), Name: k.ID + "-" + k.Tool, Title: "Result of " + k.Tool, MIMEType: "text/plain", Size: &k.Bytes,
		})
	}
	return list, nil
}

// reads says whether the caller may see what his session has.
func (r *record) reads() bool {
	return r.state != nil && r.state.Results != nil && r.place.who.Scopes.Has(auth.Read)
}

// runs says whether the caller may also see its jobs.
func (r *record) runs() bool {
	return r.reads() && r.state.Shell != nil && r.place.prefs.NoShell == "" && r.place.who.Scopes.Has(auth.Shell)
}

// jobs are those of the caller's session, newest first.
func (r *record) jobs(ctx context.Context) ([]shell.Info, error) {
	if !r.runs() {
		return nil, nil
	}
	return r.state.Shell.List(ctx)
}

// readResource is the handler of all of them in mcp-go. The answer to what cannot be read is the record's override,
// because mcp-go v1.2.1 lets no handler choose a code (server/handler_errors.go:19).
func (s *Server) readResource(ctx context.Context, req mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
	rec := recordFrom(ctx)
	text, mime, err := rec.resource(ctx, req.Params.URI)
	switch {
	case errors.Is(err, errNoResource):
		rec.override = rec.noResource()
	case errors.Is(err, errWindow):
		rec.override = &rpcError{Code: mcp.INVALID_PARAMS, Message: errWindow.Error(), Data: map[string]any{"uri": rec.env.uri}}
	case err != nil:
		rec.override = s.internal(ctx, "resource", err)
	}
	text, _ = results.Show(text)
	return []mcp.ResourceContents{mcp.TextResourceContents{URI: req.Params.URI, MIMEType: mime, Text: text}}, nil
}

// noResource is the error for a resource that the caller does not have, whoever else has it.
func (r *record) noResource() *rpcError {
	code := mcp.RESOURCE_NOT_FOUND
	if r.modern {
		code = mcp.INVALID_PARAMS
	}
	return &rpcError{Code: code, Message: errNoResource.Error(), Data: map[string]any{"uri": r.env.uri}}
}

// resource returns what a URI names in the caller's session. Errors: errNoResource, errWindow, or a fault of ours.
func (r *record) resource(ctx context.Context, uri string) (text, mime string, err error) {
	if !r.reads() {
		return "", "", errNoResource
	}
	at, err := parseResource(uri)
	if err != nil {
		return "", "", err
	}
	switch {
	case at.name == planURI:
		var p results.Page
		err = readPlan(ctx, r.state, at.into(&p))
		return at.shown(p, ""), "text/markdown", err
	case at.name == jobsURI:
		text, err = r.readJobs(ctx)
		return text, "application/json", err
	case at.result != "":
		text, err = r.readResult(at)
	default:
		text, err = r.readJob(ctx, at)
	}
	return text, "text/plain", err
}
