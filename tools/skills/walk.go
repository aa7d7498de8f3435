package skills

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// What a walk through the directory of a skill looks at, at most.
const (
	maxLevels = 10
	maxWalked = 5000 // entries in all
	maxBeside = 50   // files in the first line of a text
)

// Files returns the first limit files below the directory of s by path, SKILL.md among them, with slashes. more says
// that there are others, or that the walk met a bound: 10 levels, 5,000 entries, 2,000 in one directory. Directories of
// version control are left out, and so is what cannot be listed; a link that leads back to a directory above itself is
// not followed. A flat skill has no files. The error is ctx's, or that of listing the directory itself.
func (x *Index) Files(ctx context.Context, f Files, s Skill, limit int) (files []string, more bool, err error) {
	if s.Flat {
		return nil, false, ctx.Err()
	}
	w := walk{files: f}
	if err := w.dir(ctx, s.Dir, "", []fs.FileInfo{s.place}); err != nil {
		return nil, false, err
	}
	slices.Sort(w.found)
	if len(w.found) > limit {
		return w.found[:max(0, limit)], true, nil
	}
	return w.found, w.cut, nil
}

// Head returns the line, with its end, that comes before the text of s: its name, its directory, and the first 50 of
// its other files. beside says whether there are such. Names are as on the disk, but for line feeds. Errors are those
// of Files.
func (x *Index) Head(ctx context.Context, f Files, s Skill) (line string, beside bool, err error) {
	files, more, err := x.Files(ctx, f, s, maxBeside+1) // one of them is SKILL.md
	if err != nil {
		return "", false, err
	}
	files = slices.DeleteFunc(files, func(file string) bool { return file == "SKILL.md" })
	if more || len(files) > maxBeside {
		files = append(files[:min(len(files), maxBeside)], "…")
	}
	line = "Skill " + s.Name + ". Base directory: " + s.Dir + "."
	if len(files) > 0 {
		line += " Files: " + strings.Join(files, ", ")
	}
	return strings.ReplaceAll(line, "\n", `\x0a`) + "\n", len(files) > 0, nil
}

// A walk collects the files of a skill.
type walk struct {
	files  Files
	found  []string
	walked int
	cut    bool // it did not look at everything
}

// dir looks at one directory; rel is its path below the skill's, above are the directories on the way, itself the last.
func (w *walk) dir(ctx context.Context, dir, rel string, above []fs.FileInfo) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	entries, err := w.files.ReadDir(dir, maxEntries+1)
	if err != nil {
		if rel != "" { // as though it were not there
			return nil
		}
		return fmt.Errorf("list the files of a skill: %w", err)
	}
	if len(entries) > maxEntries {
		entries, w.cut = entries[:maxEntries], true
	}
	for _, e := range entries {
		if w.walked++; w.walked > maxWalked {
			w.cut = true
			return nil
		}
		name := e.Name()
		switch {
		case e.Mode().IsRegular():
			w.found = append(w.found, rel+name)
		case !e.IsDir() || versions(name) || meets(above, e):
		case len(above) >= maxLevels:
			w.cut = true
		default:
			if err := w.dir(ctx, filepath.Join(dir, name), rel+name+"/",
				append(above[:len(above):len(above)], e)); err != nil {
				return err
			}
		}
	}
	return nil
}

// versions reports whether a directory is one that a program for version control keeps.
func versions(name string) bool {
	return slices.Contains([]string{".git", ".hg", ".jj", ".svn"}, strings.ToLower(name))
}

// meets reports whether dir is one of those above it: a link led back.
func meets(above []fs.FileInfo, dir fs.FileInfo) bool {
	return slices.ContainsFunc(above,
		func(a fs.FileInfo) bool { return a != nil && os.SameFile(target(a), target(dir)) })
}

// target is what the system says of an entry: one that is a link knows it under another name.
func target(info fs.FileInfo) fs.FileInfo {
	if link, ok := info.(interface{ Target() fs.FileInfo }); ok {
		return link.Target()
	}
	return info
}
