package language

import (
	"bytes"
	"context"
	"errors"
	"strings"

	"codehand/filestate"
	"codehand/tools/lsp"
	"codehand/tools/textedit"
	"codehand/tools/tool"
	"codehand/tools/wording"
)

// Rewrites asks the server of a file what a rename of the name at a place would change; name "": what would put the
// imports of the file in order. The error is a refusal, also if a file would change that the session may not change.
func Rewrites(ctx context.Context, env tool.Env, doc lsp.Document, at lsp.Position, name string) ([]lsp.Rewrite,
	error) {
	c, done, err := Use(ctx, env, doc.Path)
	if err != nil {
		return nil, err
	}
	defer done()
	var all []lsp.Rewrite
	if name == "" {
		all, err = c.OrganizeImports(ctx, doc)
	} else {
		all, err = c.Rename(ctx, doc, at, name)
	}
	if err != nil {
		return nil, Refusal(ctx, c.Name(), err)
	}
	v := NewView(env, doc.Path)
	for _, r := range all {
		if !env.Space.Inside(r.Path) {
			return nil, tool.Refuse(tool.OutsideRoots, "%s would also change %s, which is outside the workspace. "+
				"Nothing was done.", c.Name(), wording.ShownName(env, r.Path))
		}
		if !v.Sees(r.Path) {
			return nil, tool.Refuse(tool.PermissionDenied, "Permission denied: %s would also change files that rules "+
				"keep from this session. Nothing was done. Edit the other files with multi_edit.", c.Name())
		}
	}
	return all, nil
}

// Edit is a rewrite as an edit for env.Files.Update. It needs no file to be read before: what the server has edited is
// what must be there, byte for byte, and only its edits change.
func Edit(f filestate.File, r lsp.Rewrite, check func(old, now []byte) error) filestate.Edit {
	return filestate.Edit{File: f, Unseen: true, Change: func(old []byte) ([]byte, error) {
		now, err := rewritten(old, r)
		if err == nil {
			err = check(old, now)
		}
		return now, err
	}}
}

func rewritten(old []byte, r lsp.Rewrite) ([]byte, error) {
	if old == nil {
		return nil, lsp.ErrOlder
	}
	e, err := textedit.Detect(old[:min(len(old), 64<<10)])
	if err != nil {
		return nil, err
	}
	text, bad := e.Decode(old[e.Mark():])
	if bad > 0 {
		return nil, errors.New("it has bytes that are no text")
	}
	now, err := r.Apply(text)
	if err != nil {
		return nil, err
	}
	return e.Encode([]byte(now))
}

// A Hunk is a part of a rewrite as multi_edit takes it: Old stands once in the file.
type Hunk struct{ Old, New string }

// maxAround is how many lines around a change are looked at so that it stands once in its file.
const maxAround = 6

// Hunks are the edits of a rewrite of a file with the content old, in order, for a caller who makes them one after the
// other. ok is false if they cannot be given so.
func Hunks(old []byte, r lsp.Rewrite) (all []Hunk, ok bool) {
	want, err := rewritten(old, r)
	if err != nil {
		return nil, false
	}
	text, err := lsp.Text(old)
	if err != nil {
		return nil, false
	}
	text = strings.ReplaceAll(text, "\r\n", "\n") // an edit finds either
	lines := strings.Split(text, "\n")
	for from := 0; from < len(r.Edits); {
		to, first, last := from, r.Edits[from].From.Line, r.Edits[from].To.Line
		for to++; to < len(r.Edits) && r.Edits[to].From.Line <= last+1; to++ {
			last = max(last, r.Edits[to].To.Line)
		}
		h, found := hunk(text, lines, first, last, r.Edits[from:to])
		if !found {
			return nil, false
		}
		all, from = append(all, h), to
	}
	edits := make([]textedit.Edit, len(all))
	for i, h := range all {
		edits[i] = textedit.Edit{Old: h.Old, New: h.New}
	}
	got, _, err := textedit.Apply(old, edits)
	return all, err == nil && bytes.Equal(got, want)
}

// hunk is the piece of a text from line first to last, with as many around it that it stands there once.
func hunk(text string, lines []string, first, last int, edits []lsp.Replacement) (h Hunk, ok bool) {
	for around := range maxAround {
		from, to := max(0, first-around), min(len(lines)-1, last+around)
		if last >= len(lines) || from > to {
			return h, false
		}
		piece := strings.Join(lines[from:to+1], "\n")
		if piece == "" || strings.Count(text, piece) != 1 {
			continue
		}
		moved := make([]lsp.Replacement, len(edits))
		for i, e := range edits {
			moved[i] = lsp.Replacement{From: lsp.Position{Line: e.From.Line - from, Character: e.From.Character},
				To: lsp.Position{Line: e.To.Line - from, Character: e.To.Character}, Text: e.Text}
		}
		now, err := lsp.Replace(piece, moved)
		return Hunk{piece, now}, err == nil
	}
	return h, false
}
