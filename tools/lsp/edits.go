package lsp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/charmbracelet/x/powernap/pkg/lsp/protocol"
)

// maxChanged is how many files one answer may change.
const maxChanged = 1000

// A Rewrite is a file that a server wants to change, with all of its edits.
type Rewrite struct {
	Path  string
	Edits []Replacement // in the order of the file; they do not overlap
	// on is what the file was on the disk before the server was asked; zero: it was open in the server, with text
	on   stamp
	text string
	open bool
}

// A Replacement is a piece of text that takes the place of another.
type Replacement struct {
	From, To Position
	Text     string
}

// errFiles means that the answer would create, rename or remove files.
var errFiles = errors.New("the server wants to create, rename or remove files, which is not done here")

// Rename returns what has to change for a name at a place to be another one.
func (c *Client) Rename(ctx context.Context, doc Document, p Position, name string) ([]Rewrite, error) {
	var raw json.RawMessage
	if err := c.about(ctx, doc, "textDocument/rename", map[string]any{"position": p.wire(), "newName": name},
		&raw); err != nil {
		return nil, err
	}
	return c.rewrites(ctx, raw)
}

// OrganizeImports returns what has to change for the imports of a file to be complete and in order.
func (c *Client) OrganizeImports(ctx context.Context, doc Document) ([]Rewrite, error) {
	lines := strings.Count(doc.Text, "\n")
	last := doc.Text[strings.LastIndexByte(doc.Text, '\n')+1:]
	end := protocol.Position{Line: uint32(lines), Character: uint32(Units(last))} //nolint:gosec // of 4 MiB at most
	var actions []struct {
		Kind    string          `json:"kind"`
		Edit    json.RawMessage `json:"edit"`
		Data    json.RawMessage `json:"data"`
		Command json.RawMessage `json:"command"`
	}
	const kind = "source.organizeImports"
	var all []json.RawMessage
	if err := c.about(ctx, doc, "textDocument/codeAction", map[string]any{
		"range":   protocol.Range{End: end},
		"context": map[string]any{"diagnostics": []any{}, "only": []string{kind}, "triggerKind": 1},
	}, &all); err != nil {
		return nil, err
	}
	list, err := json.Marshal(all)
	if err != nil || json.Unmarshal(list, &actions) != nil {
		return nil, errUnreadable
	}
	for i, a := range actions {
		if a.Kind != "" && a.Kind != kind && !strings.HasPrefix(a.Kind, kind+".") {
			continue
		}
		ctx, cancel := limited(ctx)
		defer cancel()
		if a.Edit == nil && a.Data != nil {
			if err := c.call(ctx, "codeAction/resolve", all[i], &a); err != nil {
				return nil, err
			}
		}
		if a.Edit != nil {
			return c.rewrites(ctx, a.Edit)
		}
		if a.Command != nil {
			return c.execute(ctx, all[i], a.Command)
		}
	}
	if c.server.Imports == "" { // pyright does not list its commands, so whether it has one is not known
		return nil, nil
	}
	command, err := json.Marshal(map[string]any{"command": c.server.Imports, "arguments": []any{uriOf(doc.Path)}})
	if err != nil {
		return nil, err
	}
	ctx, cancel := limited(ctx)
	defer cancel()
	return c.execute(ctx, nil, command)
}

// applied collects what a command wants to have applied.
type applied struct {
	mu    sync.Mutex
	edits []json.RawMessage
}

// take takes an edit, and says that it was applied; nil: nothing is taken.
func (a *applied) take(params json.RawMessage) bool {
	var p struct {
		Edit json.RawMessage `json:"edit"`
	}
	if a == nil || json.Unmarshal(params, &p) != nil {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.edits) >= maxChanged {
		return false
	}
	a.edits = append(a.edits, p.Edit)
	return true
}

// execute runs a command of a server whose work is an edit, and returns that edit. action is a command itself where
// its "command" is a name.
func (c *Client) execute(ctx context.Context, action, command json.RawMessage) ([]Rewrite, error) {
	var name string
	if json.Unmarshal(command, &name) == nil {
		command = action
	}
	var run struct {
		Command   string            `json:"command"`
		Arguments []json.RawMessage `json:"arguments,omitempty"`
	}
	if json.Unmarshal(command, &run) != nil || run.Command == "" {
		return nil, errUnreadable
	}
	c.applying.Lock()
	defer c.applying.Unlock()
	got := new(applied)
	c.applied.Store(got)
	defer c.applied.Store(nil)
	if err := c.call(ctx, "workspace/executeCommand", run, nil); err != nil {
		return nil, err
	}
	got.mu.Lock()
	defer got.mu.Unlock()
	if len(got.edits) > 1 {
		return nil, errors.New("its command makes several changes, one after the other")
	}
	if len(got.edits) == 0 {
		return nil, nil
	}
	return c.rewrites(ctx, got.edits[0])
}

// rewrites reads an edit of the workspace, in either of its forms.
func (c *Client) rewrites(ctx context.Context, raw json.RawMessage) ([]Rewrite, error) {
	var edit *struct {
		Changes  map[protocol.DocumentURI][]protocol.TextEdit `json:"changes"`
		Document []struct {
			Kind string `json:"kind"`
			Text *struct {
				URI protocol.DocumentURI `json:"uri"`
			} `json:"textDocument"`
			Edits []protocol.TextEdit `json:"edits"`
		} `json:"documentChanges"`
	}
	if len(raw) > 0 && json.Unmarshal(raw, &edit) != nil {
		return nil, errUnreadable
	}
	if edit == nil {
		return nil, nil
	}
	by := map[string][]protocol.TextEdit{}
	for _, d := range edit.Document {
		if d.Kind != "" || d.Text == nil {
			return nil, errFiles
		}
		by[pathOf(d.Text.URI)] = append(by[pathOf(d.Text.URI)], d.Edits...)
	}
	if edit.Document == nil {
		for uri, edits := range edit.Changes {
			by[pathOf(uri)] = append(by[pathOf(uri)], edits...)
		}
	}
	if len(by) > maxChanged {
		return nil, fmt.Errorf("it wants to change %d files; at most %d are changed at once", len(by), maxChanged)
	}
	if err := c.take(ctx); err != nil {
		return nil, c.failure(ctx, err)
	}
	defer c.leave()
	var all []Rewrite
	for path, edits := range by {
		if path == "" {
			return nil, errors.New("it wants to change what is no file")
		}
		if len(edits) == 0 {
			continue
		}
		r := Rewrite{Path: path, on: c.docs.files[path]}
		if doc := c.docs.open[path]; doc != nil {
			r.open, r.text = true, doc.text
		}
		for _, e := range edits {
			r.Edits = append(r.Edits, Replacement{at(e.Range.Start), at(e.Range.End), e.NewText})
		}
		slices.SortStableFunc(r.Edits, func(a, b Replacement) int {
			return cmp.Or(a.From.Line-b.From.Line, a.From.Character-b.From.Character)
		})
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b Rewrite) int { return strings.Compare(a.Path, b.Path) })
	return all, nil
}

// ErrOlder means that a file is not what the server has edited.
var ErrOlder = errors.New("the file changed since the language server read it")

// Apply makes the new text of a file from the one that it has now, if that is the one that the server has edited. text
// is as Text returns it.
func (r Rewrite) Apply(text string) (string, error) {
	if r.open && text != r.text || !r.open && !r.untouched() {
		return "", ErrOlder
	}
	return Replace(text, r.Edits)
}

// untouched says whether the file has not been written since the server was told last of changes on the disk.
func (r Rewrite) untouched() bool {
	info, err := os.Lstat(r.Path)
	return err == nil && info.Size() == r.on.size && info.ModTime().UnixNano() == r.on.time
}

// Replace makes replacements in a text. Errors: one is outside of the text, or two overlap.
func Replace(text string, all []Replacement) (string, error) {
	type piece struct {
		from, to int
		text     string
	}
	starts := lineStarts(text)
	pieces := make([]piece, len(all))
	for i, r := range all {
		from, ok := offset(text, starts, r.From)
		to, also := offset(text, starts, r.To)
		if !ok || !also || to < from {
			return "", fmt.Errorf("an edit at %d:%d is outside of the file", r.From.Line+1, r.From.Character+1)
		}
		pieces[i] = piece{from, to, r.Text}
	}
	slices.SortStableFunc(pieces, func(a, b piece) int { return a.from - b.from })
	var b strings.Builder
	done := 0
	for _, p := range pieces {
		if p.from < done {
			return "", errors.New("two edits overlap")
		}
		b.WriteString(text[done:p.from])
		b.WriteString(p.text)
		done = p.to
	}
	b.WriteString(text[done:])
	return b.String(), nil
}

// lineStarts are where the lines of a text begin. Lines end with \n, \r\n or \r, as the protocol has it.
func lineStarts(text string) []int {
	starts := []int{0}
	for i := range len(text) {
		if text[i] == '\n' || text[i] == '\r' && (i+1 == len(text) || text[i+1] != '\n') {
			starts = append(starts, i+1)
		}
	}
	return starts
}

// offset is where a position is in a text. A character behind the end of its line is its end. The line after the last
// one is the end of the text.
func offset(text string, starts []int, p Position) (at int, ok bool) {
	switch {
	case p.Line < 0 || p.Character < 0 || p.Line > len(starts):
		return 0, false
	case p.Line == len(starts):
		return len(text), p.Character == 0
	}
	line := text[starts[p.Line]:]
	if p.Line+1 < len(starts) {
		line = strings.TrimRight(text[starts[p.Line]:starts[p.Line+1]], "\r\n")
	}
	units := 0
	for i, r := range line {
		if units >= p.Character {
			return starts[p.Line] + i, units == p.Character
		}
		units++
		if r > 0xffff {
			units++
		}
	}
	return starts[p.Line] + len(line), true
}

// Units counts the UTF-16 units of a text.
func Units(text string) int {
	n := utf8.RuneCountInString(text)
	for _, r := range text {
		if r > 0xffff {
			n++
		}
	}
	return n
}

// Line returns a line of a text, from 0, without its end. ok: there is one.
func Line(text string, n int) (line string, ok bool) {
	starts := lineStarts(text)
	if n < 0 || n >= len(starts) {
		return "", false
	}
	if n+1 < len(starts) {
		return strings.TrimRight(text[starts[n]:starts[n+1]], "\r\n"), true
	}
	return text[starts[n]:], true
}
