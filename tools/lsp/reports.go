package lsp

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"sync"

	"github.com/charmbracelet/x/powernap/pkg/lsp/protocol"
)

const (
	maxReported = 2000 // files of which diagnostics are kept
	maxItems    = 1000 // diagnostics of one file
)

// A Problem is something that a server says of a place in a file.
type Problem struct {
	Line, Character int // from 0; Character in UTF-16 units
	Severity        int // 1 error, 2 warning, 3 information, 4 hint
	Message         string
	Code, Source    string // "": none
}

// A report is all that a server has to say of one content of a file.
type report struct {
	version int32
	Items   []Problem
}

// reports keep what servers published, and tell when a version has one.
type reports struct {
	mu       sync.Mutex
	all      map[string]*report
	versions map[string]int32         // the last of files that were closed
	waiting  map[string]chan struct{} // is closed when a report of that file comes
	// unversioned: the server published what may be about any content
	unversioned bool
}

// next is the version of a file that is opened.
func (r *reports) next(path string) int32 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.versions[path] + 1
}

// closed forgets the reports of a file, and remembers its version.
func (r *reports) closed(path string, version int32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.versions == nil || len(r.versions) >= 10*maxReported {
		r.versions = map[string]int32{}
	}
	r.versions[path] = version
	delete(r.all, path)
}

// set keeps a report.
func (r *reports) set(path string, new *report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keep(path, new)
}

func (r *reports) keep(path string, new *report) {
	if len(r.all) >= maxReported && r.all[path] == nil {
		return
	}
	r.all[path] = new
	if c := r.waiting[path]; c != nil {
		close(c)
		delete(r.waiting, path)
	}
}

// of is the report of exactly this version; nil: there is none. more is closed when there may be one.
func (r *reports) of(path string, version int32) (got *report, more <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if got := r.all[path]; got != nil && got.version == version {
		return got, nil
	}
	if r.waiting == nil {
		r.waiting = map[string]chan struct{}{}
	}
	c := r.waiting[path]
	if c == nil {
		c = make(chan struct{})
		r.waiting[path] = c
	}
	return nil, c
}

// published takes what a server sent by itself. What names no version may be about an older content, and is dropped.
func (r *reports) published(params json.RawMessage) {
	var p struct {
		URI         protocol.DocumentURI `json:"uri"`
		Version     *int32               `json:"version"`
		Diagnostics json.RawMessage      `json:"diagnostics"`
	}
	if json.Unmarshal(params, &p) != nil {
		return
	}
	if p.Version == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		if len(p.Diagnostics) > len("[]") && !r.unversioned { // else it may have cleared what a closed file had
			r.unversioned = true
			for path, c := range r.waiting {
				close(c)
				delete(r.waiting, path)
			}
		}
		return
	}
	path := pathOf(p.URI)
	items, ok := problems(p.Diagnostics)
	if path == "" || !ok {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if old := r.all[path]; old != nil && old.version > *p.Version {
		return
	}
	r.keep(path, &report{version: *p.Version, Items: items})
}

// anonymous says whether the server publishes without versions.
func (r *reports) anonymous() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.unversioned
}

// report asks for the diagnostics of a version of an open file, or waits for those that are published.
func (c *Client) report(ctx context.Context, path string, version int32) (*report, error) {
	var items []Problem
	var err error
	switch {
	case c.pulls.Load() || len(c.able.Diagnostics) > 0 && string(c.able.Diagnostics) != "null":
		items, err = c.pull(ctx, path)
	case slices.Contains(c.able.Commands.Commands, tsserverRequest):
		items, err = c.askCompiler(ctx, path)
	default:
		return c.await(ctx, path, version)
	}
	if err != nil {
		return nil, err
	}
	r := &report{version: version, Items: items}
	c.reports.set(path, r)
	return r, nil
}

// await waits for a report to be published.
func (c *Client) await(ctx context.Context, path string, version int32) (*report, error) {
	for {
		r, more := c.reports.of(path, version)
		switch {
		case r != nil:
			return r, nil
		case c.reports.anonymous():
			return nil, ErrNoReport
		}
		select {
		case <-more:
		case <-c.conn.DisconnectNotify():
			return nil, ErrLost
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// pull asks for the diagnostics of the newest content.
func (c *Client) pull(ctx context.Context, path string) ([]Problem, error) {
	var got struct {
		Kind  string          `json:"kind"`
		Items json.RawMessage `json:"items"`
	}
	if err := c.call(ctx, "textDocument/diagnostic",
		map[string]any{"textDocument": map[string]any{"uri": uriOf(path)}}, &got); err != nil {
		return nil, err
	}
	if got.Items == nil {
		got.Items = json.RawMessage("[]")
	}
	items, ok := problems(got.Items)
	if got.Kind != "full" && got.Kind != "" || !ok { // gopls names no kind
		return nil, errUnreadable
	}
	return items, nil
}

// tsserverRequest is the command by which typescript-language-server passes a request on to the compiler. Its own
// diagnostics name no version.
const tsserverRequest = "typescript.tsserverRequest"

// askCompiler asks the compiler behind typescript-language-server, which answers in the order of its requests.
func (c *Client) askCompiler(ctx context.Context, path string) ([]Problem, error) {
	var all []Problem
	for _, command := range []string{"syntacticDiagnosticsSync", "semanticDiagnosticsSync"} {
		var got struct {
			Success bool
			Body    []struct {
				Start          struct{ Line, Offset int }
				Text, Category string
				Code           int
			}
		}
		if err := c.call(ctx, "workspace/executeCommand", map[string]any{"command": tsserverRequest,
			"arguments": []any{command, map[string]any{"file": uriOf(path)}}}, &got); err != nil {
			return nil, err
		}
		if !got.Success {
			return nil, errUnreadable
		}
		for _, d := range got.Body {
			severity := map[string]int{"error": 1, "warning": 2, "message": 3, "suggestion": 4}[d.Category]
			if len(all) < maxItems {
				all = append(all, Problem{d.Start.Line - 1, d.Start.Offset - 1, cmp.Or(severity, 1), d.Text,
					strconv.Itoa(d.Code), "typescript"})
			}
		}
	}
	return all, nil
}

// problems reads diagnostics. One that cannot be read costs all: what is left would not be all.
func problems(raw json.RawMessage) ([]Problem, bool) {
	var all []struct {
		Range    protocol.Range  `json:"range"`
		Severity int             `json:"severity"`
		Code     json.RawMessage `json:"code"`
		Source   string          `json:"source"`
		Message  string          `json:"message"`
	}
	if len(raw) == 0 || json.Unmarshal(raw, &all) != nil {
		return nil, false
	}
	items := make([]Problem, 0, min(len(all), maxItems))
	for _, d := range all {
		if len(items) == maxItems {
			break
		}
		code := string(d.Code)
		var text string
		if json.Unmarshal(d.Code, &text) == nil {
			code = text
		}
		if code == "null" {
			code = ""
		}
		severity := d.Severity
		if severity == 0 {
			severity = 1 // the protocol leaves it to the client
		}
		items = append(items, Problem{int(d.Range.Start.Line), int(d.Range.Start.Character), severity, d.Message, code,
			d.Source})
	}
	return items, true
}
