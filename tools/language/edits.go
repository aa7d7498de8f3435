package language

import (
	"context"
	"fmt"
	"strings"

	"codehand/filestate"
	"codehand/tools/lsp"
	"codehand/tools/results"
	"codehand/tools/session"
	"codehand/tools/tool"
	"codehand/tools/wording"
)

// maxShown is how many new errors one answer names.
const maxShown = 10

// AfterEdit says in notes for the answer which errors changes of files have made, where a server runs that knows them.
// It is called when no lock is held any more, waits half a second at most, and never fails. Without a server that runs
// it does nothing.
func AfterEdit(ctx context.Context, env tool.Env, changes ...filestate.Change) []string {
	if !env.LSP.AnyWarm(env.Key.Principal) {
		return nil
	}
	type asked struct{ root, server string }
	var order []asked
	servers, edits := map[string]lsp.Server{}, map[asked][]lsp.Edit{}
	for _, c := range changes {
		x, ok := serverFor(env.State, c.Path)
		root := rootOf(env.State, c.Path)
		if !ok || c.Before == c.After || root == "" {
			continue
		}
		by := asked{root, x.Name}
		if edits[by] == nil {
			order, servers[x.Name] = append(order, by), x
		}
		edits[by] = append(edits[by], lsp.Edit{Path: c.Path, Old: c.Old, New: c.New})
	}
	var found []lsp.Found
	late := false
	for _, by := range order[:min(len(order), 1+maxMore)] {
		x := servers[by.server]
		v := env.LSP.Check(ctx, placeIn(env.State, x, by.root), x,
			lsp.Question{For: listener(env.State), Edits: edits[by]})
		found, late = append(found, v.Found...), late || v.Late
	}
	var notes []string
	if len(found) > 0 {
		notes = append(notes, note(env.State, "[new diagnostics: ", found))
	}
	if late {
		notes = append(notes, "[diagnostics: not ready]")
	}
	return notes
}

// maxMore is how many further servers one edit asks: each may take half a second.
const maxMore = 1

// listener names a session to the Pool.
func listener(s *session.State) string { return s.Key.Principal + "\x00" + s.Key.Session }

// note names new errors, at most ten.
func note(s *session.State, head string, found []lsp.Found) string {
	text, n, total := head, 0, 0
	for _, f := range found {
		total += len(f.Items)
		for _, p := range f.Items {
			if n == maxShown {
				break
			}
			if n > 0 {
				text += "; "
			}
			n++
			text += fmt.Sprintf("%s:%d: %s", wording.ShownName(tool.Env{State: s}, f.Path), p.Line+1, Message(p))
		}
	}
	if more := total - n; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text + "]"
}

// Message is what a server says of a place, in one line of at most 200 characters.
func Message(p lsp.Problem) string {
	shown, _ := results.Show(strings.Join(strings.Fields(p.Message), " "))
	return wording.Clip(shown, 200)
}

// News returns a line about errors of earlier edits that were found after those were answered, if their files still
// hold what the edits wrote.
func News(s *session.State) []string {
	if s.LSP == nil {
		return nil
	}
	found := s.LSP.Late(listener(s))
	if len(found) == 0 {
		return nil
	}
	return []string{note(s, "[new diagnostics of an earlier edit: ", found)}
}
