package resources

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"codehand/filestate"
	"codehand/server/jsonrpc"
	"codehand/tools/guidance"
	"codehand/tools/results"
	"codehand/tools/session"
	"codehand/tools/shell"
	"codehand/tools/workspace"
)

// A resourceAt is a URI taken apart.
type resourceAt struct {
	name                string // the URI without its window
	result, job, change string // the id in it; at most one is set
	first               int    // line, counted from 1
	lines               int
}

// parseResource takes a URI apart. ErrNone: it cannot name one of ours.
func parseResource(uri string) (at resourceAt, err error) {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != resourceScheme || u.User != nil || u.Fragment != "" {
		return at, ErrNone
	}
	at = resourceAt{name: resourceScheme + "://" + u.Host + u.Path, first: 1, lines: pageLines}
	if id, ok := strings.CutPrefix(at.name, resultPrefix); ok {
		at.result = id
	} else if id, ok := strings.CutPrefix(strings.TrimSuffix(at.name, jobSuffix), jobPrefix); ok &&
		strings.HasSuffix(at.name, jobSuffix) {
		at.job = id
	} else if id, ok := strings.CutPrefix(at.name, changePrefix); ok {
		at.change = id
	}
	if at.result == "" && at.job == "" && at.change == "" && !Constant(at.name) {
		return at, ErrNone
	}
	return at, at.window(u.RawQuery)
}

// window takes the lines that are asked for from a query. ErrNone: it asks for something else.
func (at *resourceAt) window(raw string) error {
	query, err := url.ParseQuery(raw)
	if err != nil {
		return ErrNone
	}
	for key, values := range query {
		n, err := strconv.Atoi(values[0])
		if err != nil || n < 1 || len(values) > 1 {
			return ErrWindow
		}
		switch key {
		case "offset":
			at.first = n
		case "limit":
			at.lines = n
		default:
			return ErrNone
		}
	}
	return nil
}

// shown is a page as it is sent: what it lacks is said in its last line.
func (at resourceAt) shown(p results.Page, path string) string {
	text := p.Text
	if text != "" && !strings.HasSuffix(text, "\n") && (p.Cut || p.More()) {
		text += "\n"
	}
	switch {
	case p.Lines == 0 && at.first > 1:
		return fmt.Sprintf("[there is no line %d; the text has %s]", at.first, results.Count(p.Total))
	case p.Cut && path != "":
		text += fmt.Sprintf("[line %d is too long for an answer and was truncated; the whole line is in %s]\n", p.First,
			path)
	case p.Cut:
		text += fmt.Sprintf("[line %d is too long for an answer and was truncated]\n", p.First)
	}
	if p.More() {
		next := p.First + p.Lines
		text += fmt.Sprintf("[lines %d-%d of %s; the next ones: %s?offset=%d]\n", p.First, next-1,
			results.Count(p.Total), at.name, next)
	}
	return text
}

// into reads the lines that are wanted of a text.
func (at resourceAt) into(p *results.Page) func(io.Reader) error {
	return func(r io.Reader) (err error) {
		*p, err = results.ReadPage(r, at.first, at.lines, maxPage-noteRoom)
		return err
	}
}

// page returns the lines that are wanted of a text.
func (at resourceAt) page(text string) (string, error) {
	var p results.Page
	err := at.into(&p)(strings.NewReader(text))
	return at.shown(p, ""), err
}

// readResult returns lines of a kept result.
func (v View) readResult(at resourceAt) (string, error) {
	f, kept, err := v.State.Results.Open(at.result)
	if errors.Is(err, results.ErrUnknown) {
		return "", ErrNone
	}
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // only read
	var p results.Page
	if err := at.into(&p)(f); err != nil {
		return "", err
	}
	return at.shown(p, kept.Path), nil
}

// A jobEntry is a job as codehand://jobs shows it.
type jobEntry struct {
	ID      string    `json:"id"`
	Command string    `json:"command"`
	State   string    `json:"state"`
	Start   time.Time `json:"start"`
	Exit    *int      `json:"exit,omitempty"` // of one that has ended by itself
}

// maxJobCommand is how many characters of a command the list of jobs shows.
const maxJobCommand = 1_000

// readJobs returns the session's jobs as JSON, newest first, as many as an answer holds.
func (v View) readJobs(ctx context.Context) (string, error) {
	if !v.Runs() {
		return "", ErrNone
	}
	jobs, err := v.jobs(ctx)
	if err != nil {
		return "", err
	}
	list := []jobEntry{}
	for _, j := range jobs {
		e := jobEntry{ID: j.ID, Command: results.Line(results.Clean(j.Command), maxJobCommand), State: string(j.State),
			Start: j.Start.UTC().Truncate(time.Millisecond)}
		if j.State == shell.Completed || j.State == shell.Failed {
			e.Exit = &j.Exit
		}
		list = append(list, e)
	}
	return listJSON(list)
}

// readInstructions returns the instructions of the workspace, which an answer always holds. ErrNone: there are none.
func (v View) readInstructions(ctx context.Context) (string, error) {
	text, err := guidance.Text(ctx, v.State)
	if err == nil && text == "" {
		err = ErrNone
	}
	return text, err
}

// readTodos returns the session's todo list as JSON.
func (v View) readTodos(ctx context.Context) (string, error) {
	todos, err := v.State.Todos.Load(ctx)
	if err != nil {
		return "", err
	}
	return listJSON(todos)
}

// readTasks returns the tasks of the session's list as JSON, by id.
func (v View) readTasks(ctx context.Context) (string, error) {
	book, err := v.State.Tasks.Book(ctx)
	if err != nil {
		return "", err
	}
	return listJSON(book.Tasks)
}

// listJSON returns a list as JSON. If an answer does not hold it all, it has the first entries, and the last one says
// how many are left out.
func listJSON[T any](list []T) (string, error) {
	text, err := json.MarshalIndent(append([]T{}, list...), "", " ") // never null
	if err != nil || len(text) <= maxPage {
		return string(text), err
	}
	b := []byte{'['}
	for i, e := range list {
		one, err := jsonrpc.Marshal(e)
		if err != nil {
			return "", err
		}
		if len(b)+len(one)+noteRoom > maxPage {
			b = fmt.Appendf(b, `{"left_out":%d}`, len(list)-i)
			break
		}
		b = append(append(b, one...), ',')
	}
	return string(append(bytes.TrimSuffix(b, []byte{','}), ']')), nil
}

// readJob returns lines of a job's output.
func (v View) readJob(ctx context.Context, at resourceAt) (string, error) {
	jobs, err := v.jobs(ctx)
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(jobs, func(j shell.Info) bool { return j.ID == at.job }) // no command in the foreground
	if i < 0 {
		return "", ErrNone
	}
	var p results.Page
	info, err := v.State.Shell.Read(ctx, at.job, at.into(&p))
	if errors.Is(err, shell.ErrUnknown) {
		return "", ErrNone
	}
	if err != nil {
		return "", err
	}
	return at.shown(p, info.Log), nil
}

// readPlan lets read have the session's plan file. ErrNone: there is none. The file is opened as a change of it
// would open it, so no link leads to what the session may not see.
func readPlan(ctx context.Context, st *session.State, read func(io.Reader) error) error {
	plan, err := st.Plan.Load(ctx)
	if err != nil {
		return err
	}
	if plan.Path == "" || st.Files == nil {
		return ErrNone
	}
	at, err := st.Space.Writable(plan.Path).Open(plan.Path, workspace.Read)
	if err != nil {
		return ErrNone // it is gone, or lies where this session may not look any more
	}
	file := filestate.File(at)
	defer file.Close()
	r, err := st.Files.Open(ctx, file)
	if err != nil {
		return ErrNone
	}
	defer r.Close()
	return read(io.NewSectionReader(r, 0, r.Size()))
}
