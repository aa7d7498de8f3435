package language

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"

	"codehand/filestate/disk"
	"codehand/filestate/owner"
	"codehand/tools/lsp"
	"codehand/tools/results"
	"codehand/tools/tool"
	"codehand/tools/wording"
	"codehand/tools/workspace"
)

// maxFile is how many bytes a file may have that a server is asked about.
const maxFile = 4 << 20

// Read reads a file for a request about it. The session has not seen it by that. The error is a refusal.
func Read(ctx context.Context, env tool.Env, path string) (lsp.Document, error) {
	d, err := read(ctx, env, path)
	if errors.Is(err, disk.ErrTooLarge) {
		return d, tool.Refuse(tool.TooLarge, "%s is too large for a language server. Limit: 4 MiB. Use grep_search.",
			path)
	}
	if err != nil {
		return d, wording.PathRefusal(env, path, err)
	}
	return d, nil
}

func read(ctx context.Context, env tool.Env, path string) (d lsp.Document, err error) {
	f, err := env.Open(path, workspace.Read)
	if err != nil {
		return d, err
	}
	defer f.Close()
	r, err := env.Files.Open(ctx, f)
	if err != nil {
		return d, err
	}
	defer r.Close()
	if r.Size() > maxFile {
		return d, disk.ErrTooLarge
	}
	raw, err := io.ReadAll(io.NewSectionReader(r, 0, r.Size()))
	if err != nil {
		return d, err
	}
	text, err := lsp.Text(raw)
	if err != nil {
		return d, tool.Refuse(tool.BinaryFile, "This tool cannot read binary files: %s.", path)
	}
	return lsp.Document{Path: f.Path, Text: text}, nil
}

// A View is what of a server's answers one call may see. It is for one goroutine.
type View struct {
	env   tool.Env
	place string // of the call, which rules were asked about
	known map[string]bool
	texts map[string]string // of files, as far as they were read
	left  int               // files that may still be read
}

// maxRead is how many files are read to show lines of them.
const maxRead = 200

// NewView makes a view for a call about the file at place, which is canonical; "": about all.
func NewView(env tool.Env, place string) *View {
	return &View{env: env, place: place, known: map[string]bool{}, texts: map[string]string{}, left: maxRead}
}

// Knows gives the view the content of a file, so that it is not read again.
func (v *View) Knows(d lsp.Document) { v.texts[d.Path] = d.Text }

// Sees says whether the call may be told of a path.
func (v *View) Sees(path string) bool {
	seen, asked := v.known[path]
	if !asked {
		seen = path == v.place || !v.closed(path)
		v.known[path] = seen
	}
	return seen
}

// Ruled says whether rules may keep any file from the call.
func (v *View) Ruled() bool { return v.env.Rules.Compares(false) }

// closed says whether rules keep a file from the call, by any of its names.
func (v *View) closed(path string) bool {
	rules, space := v.env.Rules, v.env.Space
	names := []string{path}
	if real, inside := space.Resolve(path); inside && real != path {
		names = append(names, real)
	}
	if rules.ComparesPaths() && space.Inside(path) {
		also, whole := space.Names(path)
		if !whole {
			return true
		}
		names = append(names, also...)
	}
	place := v.place
	if place == "" {
		place = space.Cwd()
	}
	for _, name := range names {
		if owner.Temporary(filepath.Base(name)) || rules.Hidden(name) || rules.AskedFor(place, name) ||
			rules.Withheld(place, name) {
			return true
		}
	}
	return false
}

// Line returns a line of a file that the call may see, without its indentation, at most 200 characters; "": it cannot
// be read, or lies outside of the roots.
func (v *View) Line(ctx context.Context, path string, n int) string {
	text, known := v.texts[path]
	if !known {
		if v.left <= 0 || !v.env.Space.Inside(path) {
			return ""
		}
		v.left--
		if d, err := read(ctx, v.env, path); err == nil {
			text = d.Text
		}
		v.texts[path] = text
	}
	line, _ := lsp.Line(text, n)
	shown, _ := results.Show(strings.TrimSpace(line))
	return wording.Clip(shown, 200)
}

// Name is how a path is shown.
func (v *View) Name(path string) string { return wording.ShownName(v.env, path) }
