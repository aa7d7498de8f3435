package server

import (
	"context"
	_ "embed" // guide.md
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"codehand/server/auth"
	"codehand/server/jsonrpc"
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
	todosURI       = "codehand://todos"
	tasksURI       = "codehand://tasks"
	jobsURI        = "codehand://jobs"
	guideURI       = "codehand://guide/tools"
	windowOf       = "{?offset,limit}" // of lines, counted from 1
)

// The media types of what is made here.
const (
	textPlain    = "text/plain"
	textMarkdown = "text/markdown"
	textJSON     = "application/json"
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
	errTooLarge   = errors.New("the file is larger than can be shown: text may have 256 MiB, anything else 256 KiB") // in parts
)

// resultURI names a kept result as a resource.
func resultURI(id string) string { return resultPrefix + id }

// jobURI names the output of a job as a resource.
func jobURI(id string) string { return jobPrefix + id + jobSuffix }

// needsSession says whether the answer to a method that is no call depends on whose session it is.
func needsSession(method string) bool {
	switch mcp.MCPMethod(method) {
	case mcp.MethodResourcesList, mcp.MethodResourcesRead, mcp.MethodCompletionComplete, mcp.MethodPromptsList, mcp.MethodPromptsGet:
		return true
	}
	return extends(method)
}

// look takes the session of a request that is no call. The caller runs release when the request is over.
func (s *Server) look(rec *record, key session.Key, release *func()) *jsonrpc.Error {
	state, end, err := s.sessions.acquire(key, rec.place)
	if err != nil {
		return s.internal(context.Background(), "session", err)
	}
	rec.state, *release = state, end
	rec.state.Space = s.narrow(rec, state.Space)
	return nil
}

// offerResources gives mcp-go what is the same for everybody.
func (s *Server) offerResources() {
	for _, r := range []struct{ uri, name, about, kind string }{
		{resultPrefix + "{id}" + windowOf, "results", "The whole of a result that was too long to show, by lines.", textPlain},
		{jobPrefix + "{id}" + jobSuffix + windowOf, "job output", "What a background job has printed, by lines.", textPlain},
		{changePrefix + "{id}" + windowOf, "change", "What a change did to files, by lines of its diff.", textPlain},
		{skillTemplate, "skill files", "A file of a skill: its " + skillFile + ", or what that names.", ""},
	} {
		s.mcp.AddResourceTemplate(mcp.NewResourceTemplate(r.uri, r.name, mcp.WithTemplateDescription(r.about), mcp.WithTemplateMIMEType(r.kind)), s.readResource)
	}
	for _, r := range constantResources {
		s.mcp.AddResource(r, s.readResource)
	}
}

var (
	planResource  = mcp.NewResource(planURI, "plan", mcp.WithResourceDescription("The plan file of this session."), mcp.WithMIMEType(textMarkdown))
	todosResource = mcp.NewResource(todosURI, "todos", mcp.WithResourceDescription("The todo list of this session."), mcp.WithMIMEType(textJSON))
	tasksResource = mcp.NewResource(tasksURI, "tasks", mcp.WithResourceDescription("The tasks of this session, or of all who share its list."), mcp.WithMIMEType(textJSON))
	jobsResource  = mcp.NewResource(jobsURI, "jobs", mcp.WithResourceDescription("The background jobs of this session."), mcp.WithMIMEType(textJSON))
	guideResource = mcp.NewResource(guideURI, "guide", mcp.WithResourceDescription("How to work with these tools: the long form of the instructions."), mcp.WithMIMEType(textMarkdown))

	// constantResources are those whose address is always the same. Not every session has something there.
	constantResources = []mcp.Resource{planResource, todosResource, tasksResource, jobsResource, changesResource, guideResource}
)

// constant says whether a URI without its window is the address of one of them.
func constant(uri string) bool {
	return slices.ContainsFunc(constantResources, func(r mcp.Resource) bool { return r.URI == uri })
}

// guide is the long form of the instructions.
//
//go:embed guide.md
var guide string

// listResources replaces what mcp-go would list by what the caller's session has.
func (s *Server) listResources(ctx context.Context, _ any, _ *mcp.ListResourcesRequest, result *mcp.ListResourcesResult) {
	rec := recordFrom(ctx)
	list, err := s.resources(ctx, rec)
	if err != nil {
		rec.override = s.internal(ctx, "resources", err)
		return
	}
	for _, r := range result.Resources {
		if !constant(r.URI) { // of Extend
			list = append(list, r)
		}
	}
	result.Resources = list
}

// resources are those of the caller's session: the plan, what is to do, the jobs, the changes, the newest results, and what
// helps to work.
func (s *Server) resources(ctx context.Context, rec *record) ([]mcp.Resource, error) {
	list := []mcp.Resource{}
	if !rec.reads() {
		return list, nil
	}
	changes := func(ctx context.Context) ([]mcp.Resource, error) { return s.listChanges(ctx, rec) }
	for _, part := range []func(context.Context) ([]mcp.Resource, error){rec.listPlans, rec.listJobs, changes, rec.listResults} {
		more, err := part(ctx)
		if err != nil {
			return nil, err
		}
		list = append(list, more...)
	}
	set, err := s.skills(ctx, rec)
	if err != nil {
		return nil, err
	}
	return append(append(list, guideResource), skillResources(set)...), nil
}

// listPlans lists what the session means to do.
func (r *record) listPlans(ctx context.Context) ([]mcp.Resource, error) {
	var list []mcp.Resource
	switch err := readPlan(ctx, r.state, func(io.Reader) error { return nil }); {
	case err == nil:
		list = append(list, planResource)
	case !errors.Is(err, errNoResource):
		return nil, err
	}
	todos, err := r.state.Todos.Load(ctx)
	if err != nil {
		return nil, err
	}
	if len(todos) > 0 {
		list = append(list, todosResource)
	}
	// A shared list that cannot be read is listed: who reads it learns of that, and nobody loses the other resources.
	if book, err := r.state.Tasks.Book(ctx); err != nil || len(book.Tasks) > 0 {
		list = append(list, tasksResource)
	}
	return list, ctx.Err()
}

// listJobs lists the newest jobs.
func (r *record) listJobs(ctx context.Context) ([]mcp.Resource, error) {
	if !r.runs() {
		return nil, nil
	}
	jobs, err := r.jobs(ctx)
	if err != nil {
		return nil, err
	}
	list := []mcp.Resource{jobsResource}
	for _, j := range jobs[:min(len(jobs), listedResources)] {
		list = append(list, mcp.Resource{URI: jobURI(j.ID), Name: j.ID, Title: "Output of " + results.Line(results.Clean(j.Command), 60), MIMEType: textPlain})
	}
	return list, nil
}

// listResults lists the newest results that were kept.
func (r *record) listResults(context.Context) ([]mcp.Resource, error) {
	kept, err := r.state.Results.List()
	if err != nil {
		return nil, err
	}
	var list []mcp.Resource
	for _, k := range kept[:min(len(kept), listedResources)] {
		list = append(list, mcp.Resource{
			Annotated: mcp.Annotated{Annotations: &mcp.Annotations{LastModified: k.Time.UTC().Format(time.RFC3339)}},
			URI:       resultURI(k.ID), Name: k.ID + "-" + k.Tool, Title: "Result of " + k.Tool, MIMEType: textPlain, Size: &k.Bytes,
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
	contents, err := s.resource(ctx, rec, req.Params.URI)
	switch {
	case errors.Is(err, errNoResource):
		rec.override = rec.noResource()
	case errors.Is(err, errWindow), errors.Is(err, errTooLarge):
		rec.override = &jsonrpc.Error{Code: mcp.INVALID_PARAMS, Message: err.Error(), Data: map[string]any{"uri": rec.env.URI}}
	case err != nil:
		rec.override = s.internal(ctx, "resource", err)
	}
	return []mcp.ResourceContents{contents}, nil
}

// noResource is the error for a resource that the caller does not have, whoever else has it.
func (r *record) noResource() *jsonrpc.Error {
	code := mcp.RESOURCE_NOT_FOUND
	if r.modern {
		code = mcp.INVALID_PARAMS
	}
	return &jsonrpc.Error{Code: code, Message: errNoResource.Error(), Data: map[string]any{"uri": r.env.URI}}
}

// resource returns what a URI names in the caller's session. Errors: errNoResource, errWindow, errTooLarge, or a fault of
// ours.
func (s *Server) resource(ctx context.Context, rec *record, uri string) (mcp.ResourceContents, error) {
	if !rec.reads() {
		return nil, errNoResource
	}
	if strings.HasPrefix(uri, skillScheme) {
		return s.readSkill(ctx, rec, uri)
	}
	at, err := parseResource(uri)
	if err != nil {
		return nil, err
	}
	var text string
	kind := textPlain
	switch {
	case at.name == guideURI:
		var p results.Page
		err = at.into(&p)(strings.NewReader(guide))
		text, kind = at.shown(p, ""), textMarkdown
	case at.name == planURI:
		var p results.Page
		err = readPlan(ctx, rec.state, at.into(&p))
		text, kind = at.shown(p, ""), textMarkdown
	case at.name == todosURI:
		text, err = rec.readTodos(ctx)
		kind = textJSON
	case at.name == tasksURI:
		text, err = rec.readTasks(ctx)
		kind = textJSON
	case at.name == jobsURI:
		text, err = rec.readJobs(ctx)
		kind = textJSON
	case at.name == changesURI:
		text, err = s.readChanges(ctx, rec)
		kind = textJSON
	case at.change != "":
		text, err = s.readChange(ctx, rec, at)
	case at.result != "":
		text, err = rec.readResult(at)
	default:
		text, err = rec.readJob(ctx, at)
	}
	if err != nil {
		return nil, err
	}
	return shownAs(uri, kind, text), nil
}

// shownAs is text as clients get it, without what a terminal or a reader would take for something else.
func shownAs(uri, kind, text string) mcp.TextResourceContents {
	text, _ = results.Show(text)
	return mcp.TextResourceContents{URI: uri, MIMEType: kind, Text: text}
}
