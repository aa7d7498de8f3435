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

// A View is what a call may see of the journal: changes of files in the roots that it may read, whoever of the
// same principal made them. What a person must be asked about first, it sees only at the place that it was asked about.
// It is for one call, and one goroutine.
type View struct {
	state *session.State
	Place string          // what rules were asked about
	Paths []string        // files and directories that are asked for; nil: all
	open  map[string]bool // by path
}

// NewView is a view of the changes of a file, or of what is below a directory; "": of the workspace. The refusal is
// that of a path outside the roots.
func NewView(s *session.State, path string) (*View, error) {
	v := &View{state: s, Place: s.Space.Cwd(), open: map[string]bool{}}
	if path == "" {
		if len(s.Space.Roots()) > 0 {
			return v, nil
		}
		path = v.Place // refused in the words of every other tool, and not called unchanged
	}
	if err := RefuseOutside(s, path); err != nil {
		return nil, err
	}
	v.Place, v.Paths = path, Paths(s, path)
	return v, nil
}

// Shows says whether a change is asked for and may be seen.
func (v *View) Shows(e journal.Entry) bool {
	return slices.ContainsFunc(v.Files(e), func(f journal.EntryFile) bool {
		return v.Paths == nil || slices.ContainsFunc(v.Paths, func(p string) bool { return wording.Below(p, f.Path) })
	})
}

// Files are those of a change that may be seen.
func (v *View) Files(e journal.Entry) []journal.EntryFile {
	var seen []journal.EntryFile
	for _, f := range e.Files {
		if v.sees(f.Path) {
			seen = append(seen, f)
		}
	}
	return seen
}

func (v *View) sees(path string) bool {
	may, known := v.open[path]
	if !known {
		may = inRoots(v.state, path) && v.readable(path)
		v.open[path] = may
	}
	return may
}

// readable says whether no rule is in the way, under whatever name the file has.
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

// inRoots says by its text whether a path of the journal, which was canonical when the change was made, is of this
// workspace: what stands there now does not matter for what stood there.
func inRoots(s *session.State, path string) bool {
	return slices.ContainsFunc(s.Space.Roots(), func(root string) bool { return wording.Below(root, path) })
}

// Paths are those under which the journal may have a file, though links may stand there now: that of the name in
// the directory that it leads to, that of what it leads to, and that which is written, unless its directory leads out.
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

// RefuseOutside refuses a path that no change of this workspace can have; nil: one can.
func RefuseOutside(s *session.State, path string) error {
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
		"No changes of %s are recorded: it is outside the allowed directories. Use file_history to list the changes.",
		path)
}

// Named finds a change of a file of this workspace by its id; it may have files outside as well. The refusal is
// CHANGE_UNKNOWN: another principal's change is as unknown as one that never was.
func Named(ctx context.Context, s *session.State, id string, kept bool) (journal.Entry, error) {
	found, err := s.Files.History(ctx, journal.Query{ID: id, Kept: kept})
	if len(found) == 0 && err != nil {
		return journal.Entry{}, Fault("Change "+wording.Clip(wording.OneLine(id), 40), err)
	}
	if len(found) == 0 {
		return journal.Entry{}, Unknown(id)
	}
	if !slices.ContainsFunc(found[0].Files, func(f journal.EntryFile) bool { return inRoots(s, f.Path) }) {
		return journal.Entry{}, Unknown(id)
	}
	return found[0], nil
}

// Unknown is the refusal for an id that no change of this workspace has.
func Unknown(id string) error {
	return tool.Refuse(tool.ChangeUnknown,
		"There is no change %s in this workspace. Use file_history to list the changes.",
		wording.Clip(wording.OneLine(id), 40))
}

// Fault is what an error of the journal means for the caller. What cannot be read now says nothing of what is in it;
// every other error comes back as it is. what begins the words: "The changes of P" or "Change ID".
func Fault(what string, err error) error {
	unread, ok := errors.AsType[*journal.UnreadError](err)
	if !ok {
		return err
	}
	return &tool.Refusal{Code: tool.StateUnavailable, Cause: err, Text: what + " cannot be read from the journal: " +
		UnreadCause(unread) +
		". Nothing was written. Try again, or tell the user."}
}

// UnreadCause is why, without the paths, which are of the state directory.
func UnreadCause(e *journal.UnreadError) string {
	if system, ok := errors.AsType[syscall.Errno](e); ok {
		return system.Error()
	}
	return e.Err.Error()
}
