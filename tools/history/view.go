package history

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"syscall"

	"codehand/filestate/journal"
	"codehand/tools/session"
	"codehand/tools/tool"
	"codehand/tools/wording"
	"codehand/tools/workspace"
)

// A View is what one call may see of the journal: changes of files in its roots that it may read, by any session of the
// principal. Files that a person must approve before they are read are visible only if the same rule covers Place,
// which the call asked about. Use it in one call and one goroutine.
type View struct {
	state *session.State
	Place string          // what rules were asked about
	Paths []string        // files and directories that the call asks for; nil: all
	open  map[string]bool // by path: whether the call may see it
}

// NewView is a view of the changes of a file, or of what is below a directory; "": of the workspace. The refusal is
// that of a path outside the roots.
func NewView(s *session.State, path string) (*View, error) {
	v := &View{state: s, Place: s.Space.Cwd(), open: map[string]bool{}}
	if path == "" {
		if len(s.Space.Roots()) > 0 {
			return v, nil
		}
		path = v.Place // without roots every path is refused; do not answer "no changes"
	}
	if err := RefuseOutside(s, ForModels, path); err != nil {
		return nil, err
	}
	v.Place, v.Paths = path, Paths(s, path)
	return v, nil
}

// Shows reports whether the call asks for a change and may see it.
func (v *View) Shows(e journal.Entry) bool {
	return slices.ContainsFunc(v.Files(e), func(f journal.EntryFile) bool {
		return v.Paths == nil || slices.ContainsFunc(v.Paths, func(p string) bool { return wording.Below(p, f.Path) })
	})
}

// Files returns the files of a change that the call may see.
func (v *View) Files(e journal.Entry) []journal.EntryFile {
	var seen []journal.EntryFile
	for _, f := range e.Files {
		if v.Sees(f.Path) {
			seen = append(seen, f)
		}
	}
	return seen
}

// Sees reports whether the call may see a file of a change.
func (v *View) Sees(path string) bool {
	may, known := v.open[path]
	if !known {
		may = inRoots(v.state, path) && v.readable(path)
		v.open[path] = may
	}
	return may
}

// readable reports whether the rules allow reading a file, under each of its names.
func (v *View) readable(path string) bool {
	rules := v.state.Rules
	names := []string{path}
	if rules.ComparesPaths() {
		real, _ := v.state.Space.Resolve(path)
		also, whole := v.state.Space.Names(path)
		if !whole {
			return false
		}
		names = append(append(names, real), also...)
	}
	return !slices.ContainsFunc(names,
		func(name string) bool { return rules.Hidden(name) || rules.Withheld(v.Place, name) })
}

// Within reports whether a directory, of which something is on record, is in the roots of the call. It compares text
// only.
func (v *View) Within(dir string) bool { return inRoots(v.state, dir) }

// Hides reports whether the rules keep a path (absolute) from being read. Outside of the roots its text alone counts.
func (v *View) Hides(path string) bool {
	if !inRoots(v.state, path) {
		return v.state.Rules.Hidden(path) || v.state.Rules.Withheld(v.Place, path)
	}
	return !v.readable(path)
}

// inRoots reports whether a path of the journal is below a root. It compares text only: the path was canonical when the
// change was made, and what is there now does not matter.
func inRoots(s *session.State, path string) bool {
	return slices.ContainsFunc(s.Space.Roots(), func(root string) bool { return wording.Below(root, path) })
}

// Paths returns the paths under which the journal may have recorded path, since links may have changed: the name in its
// resolved directory; the resolved path; and, if the directory is inside the roots, the path as written.
func Paths(s *session.State, path string) []string {
	path = s.Space.Abs(path)
	dir, inside := s.Space.Resolve(filepath.Dir(path))
	real, _ := s.Space.Resolve(path)
	paths := []string{filepath.Join(dir, filepath.Base(path))}
	if real != paths[0] {
		paths = append(paths, real)
	}
	if inside && !slices.Contains(paths, path) {
		paths = append(paths, path)
	}
	return paths
}

// RefuseOutside refuses a path that no change in the roots can have; nil: one can.
func RefuseOutside(s *session.State, words Words, path string) error {
	if err := s.Space.Refused(path); err != nil {
		return wording.PathRefusal(tool.Env{State: s}, path, err)
	}
	if slices.ContainsFunc(Paths(s, path), func(p string) bool { return inRoots(s, p) }) {
		return nil
	}
	f, err := s.Open(path, workspace.Write)
	if err != nil {
		return wording.PathRefusal(tool.Env{State: s}, path, err)
	}
	_ = f.Close() // a directory handle holds no data
	return tool.Refuse(tool.ChangeUnknown,
		"No changes of %s are recorded: it is outside the allowed directories. Use %s to list the changes.",
		path, words.History)
}

// Named finds a change by its id. At least one of its files is in the roots. kept also finds contents that were kept
// without a change (journal.Query.Kept). The refusal is CHANGE_UNKNOWN, also for another principal's change.
func Named(ctx context.Context, s *session.State, words Words, id string, kept bool) (journal.Entry, error) {
	found, err := s.Files.History(ctx, journal.Query{ID: id, Kept: kept})
	if len(found) == 0 && err != nil {
		return journal.Entry{}, Fault("Change "+wording.Clip(wording.OneLine(id), 40), err)
	}
	if len(found) == 0 {
		return journal.Entry{}, Unknown(words, id)
	}
	if !slices.ContainsFunc(found[0].Files, func(f journal.EntryFile) bool { return inRoots(s, f.Path) }) {
		return journal.Entry{}, Unknown(words, id)
	}
	return found[0], nil
}

// Unknown is the refusal for an id that no change in the roots has.
func Unknown(words Words, id string) error {
	return tool.Refuse(tool.ChangeUnknown,
		"There is no change %s in this workspace. Use %s to list the changes.",
		wording.Clip(wording.OneLine(id), 40), words.History)
}

// Fault turns an error of reading the journal into a refusal; it must not be taken for "there is no such change". Other
// errors are returned unchanged. what begins the text: "The changes of P" or "Change ID".
func Fault(what string, err error) error {
	unread, ok := errors.AsType[*journal.UnreadError](err)
	if !ok {
		return err
	}
	return &tool.Refusal{Code: tool.StateUnavailable, Cause: err, Text: what + " cannot be read from the journal: " +
		UnreadCause(unread) +
		". Nothing was written. Try again, or tell the user."}
}

// UnreadCause returns the cause without paths: they lie in the state directory, which models need not know.
func UnreadCause(e *journal.UnreadError) string {
	if system, ok := errors.AsType[syscall.Errno](e); ok {
		return system.Error()
	}
	return e.Err.Error()
}
