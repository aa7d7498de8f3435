package resources

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
	"codehand/server/pipeline"
	"codehand/server/tenants"
	"codehand/tools/guidance"
	"codehand/tools/results"
	"codehand/tools/session"
	"codehand/tools/shell"
	"codehand/tools/tool"
)

// Addresses.
const (
	resourceScheme = "codehand"
	resultPrefix   = "codehand://results/" // the id of the call follows
	jobPrefix      = "codehand://jobs/"    // the id of the job follows, and jobSuffix
	jobSuffix      = "/output"
	planURI        = "codehand://plan"
	todosURI       = "codehand://todos"
	tasksURI       = "codehand://tasks"
	guideURI       = "codehand://guide/tools"
	projectURI     = "codehand://instructions"
	windowOf       = "{?offset,limit}" // of lines, counted from 1
)

// JobsURI is the list of a session's jobs. The addresses of their outputs begin with it.
const JobsURI = "codehand://jobs"

// The media types of what is made here.
const (
	textPlain    = "text/plain"
	textMarkdown = "text/markdown"
	textJSON     = "application/json"
)

const (
	// listedResources is how many kept results, and how many jobs, a list names: the newest.
	listedResources = 50
	// pageLines is how many lines an answer has by default.
	pageLines = 2_000
	// maxPage is how many bytes of text an answer has at most.
	maxPage = 256 << 10
	// noteRoom is the part of maxPage that is left for the line which says what follows.
	noteRoom = 1 << 10
)

// The reasons why a resource is not answered.
var (
	ErrNone   = errors.New("resource not found") // unknown, gone, or another principal's: a caller cannot tell which
	ErrWindow = errors.New("offset and limit must be whole numbers, at least 1")
	// in parts
	ErrTooLarge = errors.New("the file is larger than can be shown: text may have 256 MiB, anything else 256 KiB")
)

// ResultURI names a kept result as a resource.
func ResultURI(id string) string { return resultPrefix + id }

// jobURI names the output of a job as a resource.
func jobURI(id string) string { return jobPrefix + id + jobSuffix }

// Templates are the resource templates, which are the same for everybody.
func Templates() []mcp.ResourceTemplate {
	var all []mcp.ResourceTemplate
	for _, t := range []struct{ uri, name, about, kind string }{
		{resultPrefix + "{id}" + windowOf, "results", "The whole of a result that was too long to show, by lines.",
			textPlain},
		{jobPrefix + "{id}" + jobSuffix + windowOf, "job output",
			"What a background job has printed, by lines.", textPlain},
		{changePrefix + "{id}" + windowOf, "change", "What a change did to files, by lines of its diff.", textPlain},
		{planURI + windowOf, "plan by lines", "The plan file of this session, by lines.", textMarkdown},
		{skillTemplate, "skill files", "A file of a skill: its " + skillFile + ", or what that names.", ""},
	} {
		all = append(all, mcp.NewResourceTemplate(t.uri, t.name, mcp.WithTemplateDescription(t.about),
			mcp.WithTemplateMIMEType(t.kind)))
	}
	return all
}

// Constants are the resources whose address is always the same. Not every session has something there.
func Constants() []mcp.Resource { return constantResources }

var (
	planResource = mcp.NewResource(planURI, "plan", mcp.WithResourceDescription("The plan file of this session."),
		mcp.WithMIMEType(textMarkdown))
	todosResource = mcp.NewResource(todosURI, "todos", mcp.WithResourceDescription("The todo list of this session."),
		mcp.WithMIMEType(textJSON))
	tasksResource = mcp.NewResource(tasksURI,
		"tasks", mcp.WithResourceDescription("The tasks of this session, or of all who share its list."),
		mcp.WithMIMEType(textJSON))
	jobsResource = mcp.NewResource(JobsURI,
		"jobs", mcp.WithResourceDescription("The background jobs of this session."), mcp.WithMIMEType(textJSON))
	guideResource = mcp.NewResource(guideURI,
		"guide", mcp.WithResourceDescription("How to work with these tools: the long form of the instructions."),
		mcp.WithMIMEType(textMarkdown))
	projectResource = mcp.NewResource(projectURI,
		"instructions", mcp.WithResourceDescription("What AGENTS.md and other files of the workspace ask of those "+
			"who work in it."), mcp.WithMIMEType(textMarkdown))

	// constantResources are those whose address is always the same. Not every session has something there.
	constantResources = []mcp.Resource{planResource, todosResource, tasksResource, jobsResource, changesResource,
		guideResource, projectResource}
)

// Constant says whether a URI without its window is the address of one of Constants.
func Constant(uri string) bool {
	return slices.ContainsFunc(constantResources, func(r mcp.Resource) bool { return r.URI == uri })
}

// guide is the long form of the instructions.
//
//go:embed guide.md
var guide string

// A View is a session as one request may see it.
type View struct {
	State  *session.State // nil: it sees nothing
	Tenant *tenants.Tenant
}

// A Library makes the resources of sessions. Its fields are set once. It is safe for concurrent use.
type Library struct {
	Pipe   *pipeline.Pipeline
	Find   func(tool string) (tool.Tool, bool)
	Glance time.Duration // how long List may look for changed files; 0: 50 ms
}

// List returns the resources of the caller's session: the plan, what is to do, the jobs, the changes, the newest
// results, and what helps to work.
func (l *Library) List(ctx context.Context, v View) ([]mcp.Resource, error) {
	list := []mcp.Resource{}
	if !v.Reads() {
		return list, nil
	}
	changes := func(ctx context.Context) ([]mcp.Resource, error) { return l.listChanges(ctx, v) }
	for _, part := range []func(context.Context) ([]mcp.Resource, error){
		v.listPlans, v.listJobs, changes, v.listResults,
	} {
		more, err := part(ctx)
		if err != nil {
			return nil, err
		}
		list = append(list, more...)
	}
	set, err := l.Skills(ctx, v)
	if err != nil {
		return nil, err
	}
	if len(guidance.Names(v.State, nil)) > 0 {
		list = append(list, projectResource)
	}
	return append(append(list, guideResource), skillResources(set)...), nil
}

// listPlans lists what the session means to do.
func (v View) listPlans(ctx context.Context) ([]mcp.Resource, error) {
	var list []mcp.Resource
	switch err := readPlan(ctx, v.State, func(io.Reader) error { return nil }); {
	case err == nil:
		list = append(list, planResource)
	case !errors.Is(err, ErrNone):
		return nil, err
	}
	todos, err := v.State.Todos.Load(ctx)
	if err != nil {
		return nil, err
	}
	if len(todos) > 0 {
		list = append(list, todosResource)
	}
	// A shared list that cannot be read is listed: reading it returns the error, and the other resources stay
	// available.
	if book, err := v.State.Tasks.Book(ctx); err != nil || len(book.Tasks) > 0 {
		list = append(list, tasksResource)
	}
	return list, ctx.Err()
}

// listJobs lists the newest jobs.
func (v View) listJobs(ctx context.Context) ([]mcp.Resource, error) {
	if !v.Runs() {
		return nil, nil
	}
	jobs, err := v.jobs(ctx)
	if err != nil {
		return nil, err
	}
	list := []mcp.Resource{jobsResource}
	for _, j := range jobs[:min(len(jobs), listedResources)] {
		list = append(list,
			mcp.Resource{URI: jobURI(j.ID), Name: j.ID, Title: "Output of " + results.Line(results.Clean(j.Command),
				60), MIMEType: textPlain})
	}
	return list, nil
}

// listResults lists the newest results that were kept.
func (v View) listResults(context.Context) ([]mcp.Resource, error) {
	kept, err := v.State.Results.List()
	if err != nil {
		return nil, err
	}
	var list []mcp.Resource
	for _, k := range kept[:min(len(kept), listedResources)] {
		list = append(list, mcp.Resource{
			Annotated: mcp.Annotated{Annotations: &mcp.Annotations{LastModified: k.Time.UTC().Format(time.RFC3339)}},
			URI:       ResultURI(k.ID), Name: k.ID + "-" + k.Tool, Title: "Result of " + k.Tool, MIMEType: textPlain,
			Size: &k.Bytes,
		})
	}
	return list, nil
}

// Reads says whether the caller may see what its session has.
func (v View) Reads() bool {
	return v.State != nil && v.State.Results != nil && v.Tenant.Who.Scopes.Has(auth.Read)
}

// Runs says whether the caller may also see its jobs.
func (v View) Runs() bool {
	return v.Reads() && v.State.Shell != nil && v.Tenant.Prefs.NoShell == "" && v.Tenant.Who.Scopes.Has(auth.Shell)
}

// jobs are those of the caller's session, newest first.
func (v View) jobs(ctx context.Context) ([]shell.Info, error) {
	if !v.Runs() {
		return nil, nil
	}
	return v.State.Shell.List(ctx)
}

// Read returns what a URI names in the caller's session. Errors: ErrNone, ErrWindow, ErrTooLarge, or a fault of ours.
func (l *Library) Read(ctx context.Context, v View, uri string) (mcp.ResourceContents, error) {
	if !v.Reads() {
		return nil, ErrNone
	}
	if strings.HasPrefix(uri, skillScheme) {
		return l.readSkill(ctx, v, uri)
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
	case at.name == projectURI:
		text, err = v.readInstructions(ctx)
		kind = textMarkdown
	case at.name == planURI:
		var p results.Page
		err = readPlan(ctx, v.State, at.into(&p))
		text, kind = at.shown(p, ""), textMarkdown
	case at.name == todosURI:
		text, err = v.readTodos(ctx)
		kind = textJSON
	case at.name == tasksURI:
		text, err = v.readTasks(ctx)
		kind = textJSON
	case at.name == JobsURI:
		text, err = v.readJobs(ctx)
		kind = textJSON
	case at.name == changesURI:
		text, err = l.readChanges(ctx, v)
		kind = textJSON
	case at.change != "":
		text, err = l.readChange(ctx, v, at)
	case at.result != "":
		text, err = v.readResult(at)
	default:
		text, err = v.readJob(ctx, at)
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
