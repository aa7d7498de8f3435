package running

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"codehand/filestate"
	"codehand/tools/bash"
	"codehand/tools/wording"
	"codehand/tools/workspace"
)

// maxModFile is how many bytes of a go.mod are read.
const maxModFile = 1 << 20

// module looks at what go reads for a package: the module around dir, or a directory that a word names, and all to
// which links and the module's replacements lead. More are the directories of which it shows files, canonical.
func (b *binding) module(dir, text string) (f bash.Found, err error) {
	at := path.Join(from(dir, text), text)
	t, err := b.reach(at, false)
	if err != nil || !t.info.IsDir() {
		return f, nil //nolint:nilerr // the word itself is bound, and go stops
	}
	in := downward{b: b, look: bash.Contents | bash.Down | bash.Module, seen: map[string]bool{}, more: []string{t.path}}
	top, mod, err := b.moduleTop(t.path)
	if err != nil {
		return f, err
	}
	switch {
	case top == "": // no module: go reads the directory that it is given
		in.look |= bash.Near
	case text == ".":
		in.more[0] = top
	}
	dirs := slices.Clone(in.more)
	for _, to := range replacements(mod) {
		abs := path.Join(from(top, to), to)
		t, err := b.reach(abs, false)
		if err := in.failed(abs, err); err != nil {
			return f, err
		}
		if err == nil {
			dirs = append(dirs, t.path)
		}
	}
	for _, dir := range dirs {
		if err := in.enter(dir, 0); err != nil {
			return f, err
		}
	}
	f.More = slices.Concat(dirs, in.more[1:])
	return f, nil
}

// moduleTop finds the module in which dir stands: its directory and its go.mod. "": there is none.
func (b *binding) moduleTop(dir string) (top string, mod []byte, err error) {
	for top = dir; b.env.Space.Inside(top); top = path.Dir(top) {
		file := path.Join(top, "go.mod")
		p, err := b.env.Space.Open(file, workspace.Read)
		switch {
		case err == nil:
			defer p.Dir.Close()
			mod, err = b.modFile(p)
			return top, mod, err
		case !errors.Is(err, fs.ErrNotExist):
			return "", nil, wording.PathRefusal(b.env, file, err)
		}
	}
	for ; top != path.Dir(top); top = path.Dir(top) {
		if _, err := os.Stat(path.Join(top, "go.mod")); err == nil {
			return "", nil, &bash.UnboundError{Why: "go reads the module in " + top + ", which is outside of the roots"}
		}
	}
	return "", nil, nil
}

// modFile reads a go.mod.
func (b *binding) modFile(p workspace.Place) ([]byte, error) {
	r, err := b.env.Files.Open(context.Background(), filestate.File(p))
	if err != nil {
		return nil, wording.PathRefusal(b.env, p.Path, err)
	}
	defer r.Close()
	return io.ReadAll(io.NewSectionReader(r, 0, maxModFile))
}

// replacements are the directories that a go.mod names in place of modules (go.dev/ref/mod, go.mod file replacement). A
// text in quotes that cannot be read is left out: go stops.
func replacements(mod []byte) (dirs []string) {
	for line := range strings.Lines(string(mod)) {
		_, to, ok := strings.Cut(line, "=>")
		if to = strings.TrimSpace(to); !ok || to == "" {
			continue
		}
		if quote := to[0]; quote == '"' || quote == '`' {
			if text, err := strconv.QuotedPrefix(to); err == nil {
				to, _ = strconv.Unquote(text)
			}
		} else {
			to = strings.Fields(to)[0]
		}
		if strings.HasPrefix(to, ".") || strings.HasPrefix(to, "/") {
			dirs = append(dirs, to)
		}
	}
	return dirs
}
