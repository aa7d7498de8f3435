package keeping

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"codehand/filestate"
	"codehand/filestate/disk"
	"codehand/filestate/journal"
	"codehand/tools/bash"
	"codehand/tools/git"
	"codehand/tools/git/changes"
	"codehand/tools/session"
	"codehand/tools/tool"
)

// What one note of the journal has at most. An undo holds a directory open for each of its files.
const (
	noteFiles = 1000
	noteBytes = 32 << 20
	noteNames = 256 << 10 // bytes of their paths
)

// A Held is what was kept before a command. It is for one goroutine. The nil Held is nothing.
type Held struct {
	notes   []note
	trees   *changes.Trees
	stashes []stash
	unkept  []string
}

// A note is one note of the journal.
type note struct {
	journal.Pending
	files   []held
	changed bool // some files are not what they were
	loose   bool // nothing in the command's text says that it changes them
	stays   bool // some cannot be compared, or what became of them is not in the journal
}

// A held is one file of a note.
type held struct {
	path  string
	stamp disk.Stamp
	mode  fs.FileMode
	sum   disk.Digest

	changed bool
}

// Weigh asks whether all can be kept that a command may discard, and notes the answer in its analysis.
func Weigh(s *session.State, trees *changes.Trees, a *bash.Analysis) {
	if losses := a.Losses(); len(losses) > 0 {
		a.Keep(look(s, trees, losses))
	}
}

// Hold keeps what a command may discard; by is whose notes they are. What was decided without a question must be kept:
// the refusal says that it is not. Of a command that a person has allowed it keeps what it can, and so of files that
// a command names as changed or removed. Of one that is Opaque, but no job, it keeps what only the work tree has, if
// that is little. nil: there is nothing.
func Hold(ctx context.Context, env tool.Env, trees *changes.Trees, by journal.By, job bool) (*Held, error) {
	losses, named, opaque := env.Analysis.Losses(), env.Analysis.Named(), env.Analysis.Opaque && !job
	if env.Analysis.Class == bash.ReadOnly || len(losses)+len(named) == 0 && !opaque {
		return nil, nil
	}
	must := env.Analysis.Kept
	found, err := collect(env.State, trees, losses)
	if err != nil && must {
		return nil, tool.Refuse(tool.Busy, "The command was not started: it may discard content, and %v. Nothing was "+
			"done. Call again, and a person is asked.", err)
	}
	h := &Held{trees: trees, stashes: found.stashes}
	discarded := found.files
	if err = h.hold(ctx, env.Files, by, discarded, must); err == nil && !found.off() {
		for _, l := range named {
			_ = found.loss(l) // what cannot be kept is not
		}
		err = h.hold(ctx, env.Files, by, found.files[len(discarded):], false)
		h.unkept = found.unkept
		if sure := len(h.notes); err == nil && opaque {
			told := len(found.files)
			found.opaque = true
			_ = found.loss(bash.Loss{Path: ".", Tree: true, Perhaps: true})
			err = h.hold(ctx, env.Files, by, found.files[told:], false)
			for i := range h.notes[sure:] {
				h.notes[sure+i].loose = true
			}
		}
	}
	if err != nil {
		h.Drop()
		return nil, &tool.Refusal{Code: tool.StateUnavailable, Cause: err,
			Text: "The command was not started: it may discard content, and the journal could not keep that first (" +
				cause(err) + "). Nothing was done. Try again, or tell the user."}
	}
	return h, nil
}

// cause is an error without the paths of the state directory.
func cause(err error) string {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err.Error()
	}
	return err.Error()
}

// Sure says whether anything was kept, or may be gone, of which the command's text tells.
func (h *Held) Sure() bool {
	return h != nil && (len(h.stashes)+len(h.unkept) > 0 || slices.ContainsFunc(h.notes, func(n note) bool {
		return !n.loose
	}))
}

// Leave forgets what nothing says that the command changes: it has become a job, and a person may go on in these files.
func (h *Held) Leave() {
	if h == nil {
		return
	}
	h.notes = slices.DeleteFunc(h.notes, func(n note) bool {
		if n.loose {
			n.Drop()
		}
		return n.loose
	})
}

// Drop forgets what was kept, for a command that did not start.
func (h *Held) Drop() {
	if h == nil {
		return
	}
	for _, n := range h.notes {
		n.Drop()
	}
	h.notes = nil
}

// hold writes the notes. not must: what cannot be kept is passed over.
func (h *Held) hold(ctx context.Context, l *filestate.Ledger, by journal.By, files []file, must bool) error {
	var parts []journal.Part
	var n note
	size, names := 0, 0
	flush := func() error {
		if len(parts) == 0 {
			return nil
		}
		pending, err := filestate.Hold(l, by, parts)
		if err != nil && must {
			return err
		}
		if err == nil {
			n.Pending = pending
			for i := range parts {
				n.files[i].sum = parts[i].Before
			}
			h.notes = append(h.notes, n)
		}
		parts, n, size, names = nil, note{}, 0, 0
		return nil
	}
	for _, f := range files {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		content, info, err := read(ctx, f.path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue // somebody else removed it
		case err != nil && must && !f.spare:
			return err
		case err != nil || f.blob != git.OID{} && git.BlobOID(content) == f.blob:
			continue
		}
		if len(parts) == noteFiles || size+len(content) > noteBytes || names+len(f.path) > noteNames {
			if err := flush(); err != nil {
				return err
			}
		}
		size, names = size+len(content), names+len(f.path)
		parts = append(parts, journal.Part{Path: f.path, Old: content, Mode: info.Mode()})
		n.files = append(n.files, held{path: f.path, stamp: disk.StampOf(info), mode: info.Mode()})
	}
	return flush()
}

// read reads a regular file that is small enough to be kept. The content is never nil.
func read(ctx context.Context, at string) ([]byte, fs.FileInfo, error) {
	dir, err := disk.Reopen(filepath.Dir(at))
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = dir.Close() }() // a directory handle holds no data
	f, stamp, err := disk.OpenRegular(dir, filepath.Base(at), at)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = f.Close() }() // only read
	if stamp.Size > journal.MaxKept {
		return nil, nil, disk.ErrTooLarge
	}
	content, err := disk.ReadAll(ctx, f, stamp.Size)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !disk.StampOf(info).Same(stamp) {
		err = disk.ErrMoved
	}
	if content == nil {
		content = []byte{}
	}
	return content, info, err
}

// Compare says which of the files that were kept are not what they were, and of each whether it is gone. What cannot be
// compared is not among them, and stays kept. others says of a path that another call changed it, so that what became
// of it is not the command's.
func (h *Held) Compare(ctx context.Context, others func(path string) bool) map[string]bool {
	if h == nil {
		return nil
	}
	all := make(map[string]bool)
	for i := range h.notes {
		n := &h.notes[i]
		for j := range n.files {
			f := &n.files[j]
			info, err := os.Lstat(f.path)
			if err == nil && f.stamp.Proves(disk.StampOf(info)) || others(f.path) {
				continue
			}
			content, info, err := read(ctx, f.path)
			gone := gone(f.path, err)
			switch {
			case err != nil && !gone:
				n.stays = true
			case gone, disk.DigestOf(content) != f.sum, (info.Mode()^f.mode)&disk.KeptMode != 0:
				f.changed, n.changed, all[f.path] = true, true, gone
			}
		}
	}
	return all
}

// gone says of a file that could not be read whether it is no longer there: what is no file may have its name, such as
// a link.
func gone(path string, err error) bool {
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return err != nil
	}
	info, err := os.Lstat(path)
	return err == nil && !info.Mode().IsRegular()
}

// Take hands on what Compare found, in groups that are to be one change in the journal each: record notes one, and says
// whether the journal has it. Then, or if nothing is different, the copies that were kept go.
func (h *Held) Take(ctx context.Context, l *filestate.Ledger, record func(parts []journal.Part) bool) error {
	if h == nil {
		return nil
	}
	var errs []error
	for _, n := range h.notes {
		if err := n.take(ctx, l, record); err != nil {
			errs = append(errs, err)
		}
	}
	h.notes = nil
	return errors.Join(errs...)
}

func (n *note) take(ctx context.Context, l *filestate.Ledger, record func(parts []journal.Part) bool) error {
	if n.changed {
		was, err := filestate.Held(ctx, l, n.ID)
		if err != nil {
			return err
		}
		contents := make(map[string][]byte, len(was.Files))
		for i, f := range was.Files {
			contents[f.Path] = was.Parts[i].Before
		}
		var parts []journal.Part
		for _, f := range n.files {
			if !f.changed {
				continue
			}
			p := journal.Part{Path: f.path, Old: append([]byte{}, contents[f.path]...), Mode: f.mode}
			now, info, err := read(ctx, f.path)
			switch {
			case err == nil:
				p.New, p.NewMode = now, info.Mode()
			case !gone(f.path, err):
				n.stays = true
				continue
			}
			parts = append(parts, p)
		}
		n.stays = n.stays || len(parts) > 0 && !record(parts)
	}
	if !n.stays {
		n.Drop()
	}
	return nil
}

// IDs are the ids under which the journal has what was kept, for commands whose changes are not followed.
func (h *Held) IDs() []string {
	if h == nil {
		return nil
	}
	ids := make([]string, 0, len(h.notes))
	for _, n := range h.notes {
		ids = append(ids, n.ID)
	}
	return ids
}

// Lost are the names that git ignores, that were not kept, that the command did not name, and that are gone now.
func (h *Held) Lost() (paths []string) {
	if h == nil {
		return nil
	}
	for _, path := range h.unkept {
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths) // one may lie in several places
	return slices.Compact(paths)
}

// Dropped are the commits that are no longer in a stash. Git keeps them for some time, and `git stash apply` takes
// them.
func (h *Held) Dropped() (commits []string) {
	if h == nil {
		return nil
	}
	for _, s := range h.stashes {
		now, _ := h.trees.Stashes(s.dir)
		for _, c := range s.commits {
			if !slices.Contains(now, c) {
				commits = append(commits, c)
			}
		}
	}
	return commits
}
