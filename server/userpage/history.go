package userpage

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"codehand/filestate/journal"
	"codehand/server/asking"
	"codehand/server/auth"
	"codehand/server/console"
	"codehand/server/sessions"
	"codehand/tools/session"
)

const (
	// pageSize is how many changes are read at once: each time the names of all notes of a day are listed, which takes
	// longer than to read some of them (BenchmarkPage).
	pageSize = 2_000
	// mostOpen is how many workspaces are open at once.
	mostOpen = 8
)

// The tools behind the page.
const (
	listTool = "file_history"
	undoTool = "undo_change"
	pastTool = "session_digest"
)

// A history is the console.Changes of one user: of all that sessions on stdio changed in any workspace. It is safe for
// concurrent use; one change is shown or taken back at a time.
type history struct {
	book *journal.Journal
	open func(ctx context.Context, roots []string) (Workspace, error)

	mu     sync.Mutex
	opened map[string]Workspace // by their roots
}

func openHistory(o Options) (*history, error) {
	book, err := journal.Open(sessions.JournalDir(o.StateDir, auth.LocalID), journal.Options{Log: o.Log})
	if err != nil {
		return nil, err
	}
	return &history{book: book, open: o.Open, opened: map[string]Workspace{}}, nil
}

func (h *history) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closeAll()
	_ = h.book.Close() // it was only read
}

// closeAll closes the workspaces. mu is held.
func (h *history) closeAll() {
	for roots, w := range h.opened {
		_ = w.Close() // nothing runs in it
		delete(h.opened, roots)
	}
}

// List is console.Changes.List. It shows names of files, and none of their contents.
func (h *history) List(ctx context.Context, _ auth.Principal, before string) (list []console.Change, more bool,
	said string, err error) {
	entries, err := h.book.History(ctx, journal.Query{Kept: true, Before: before, Limit: pageSize + 1})
	unread, partly := errors.AsType[*journal.UnreadError](err)
	switch {
	case errors.Is(err, journal.ErrNoChange):
		return nil, false, "", nil // it was tidied away with all that is older
	case partly:
		said = "There may be other changes: a part of the journal cannot be read: " + unread.Error()
	case err != nil:
		return nil, false, "", err
	}
	for _, e := range entries[:min(len(entries), pageSize)] {
		list = append(list, shownChange(e))
	}
	return list, len(entries) > pageSize, said, nil
}

func shownChange(e journal.Entry) console.Change {
	c := console.Change{ID: e.ID, Time: e.Time, Tool: e.By.Tool, Command: e.By.Command, Undoes: e.Undoes,
		Undone: e.Undone, Partly: e.UndoneFiles, Kept: e.Kept, Open: e.Open, Workspace: e.By.Workspace}
	if e.Portion != nil {
		c.Portion = &console.Portion{ID: e.Portion.ID}
	}
	if e.By.Session != "" {
		c.Session = asking.ShortName(session.Key{Session: e.By.Session})
	}
	for _, f := range e.Files {
		c.Files = append(c.Files, console.ChangedFile{Path: f.Path, Op: f.Op, Added: f.Added, Removed: f.Removed})
	}
	return c
}

// Show is console.Changes.Show.
func (h *history) Show(ctx context.Context, _ auth.Principal, id string) (text string, failed bool, err error) {
	return h.act(ctx, id, listTool, console.Extent{})
}

// Undo is console.Changes.Undo.
func (h *history) Undo(ctx context.Context, _ auth.Principal, id string, part console.Extent) (said string, done bool,
	err error) {
	text, failed, err := h.act(ctx, id, undoTool, part)
	return strings.TrimSpace(text), err == nil && !failed, err
}

// HandOver is console.Changes.HandOver. The workspace is that of the newest change of the session.
func (h *history) HandOver(ctx context.Context, _ auth.Principal, name string, whole bool) (text string, err error) {
	found, err := h.book.History(ctx, journal.Query{Limit: 1, Fits: func(e journal.Entry) bool {
		return name == "" || asking.ShortName(session.Key{Session: session.OwnerOf(e.By.Session)}) == name
	}})
	if _, partly := errors.AsType[*journal.UnreadError](err); err != nil && !partly {
		return "", err
	}
	if len(found) == 0 {
		return "No changes of this session are recorded, so it is not known in which workspace it worked.", nil
	}
	args := map[string]string{}
	if name != "" && !whole {
		args["session"] = name
	}
	raw, err := json.Marshal(args)
	if err != nil {
		return "", err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	text, _, err = h.call(ctx, found[0].By.Workspace, nil, pastTool, raw)
	return text, err
}

// act calls a tool about one change, or a part of it, in its workspace. failed: text says why it was refused.
func (h *history) act(ctx context.Context, id, name string, part console.Extent) (text string, failed bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	note, err := h.book.Find(ctx, id)
	if errors.Is(err, journal.ErrNoChange) || errors.Is(err, journal.ErrNoCopy) {
		return "There is no change " + id + " any more.", true, nil
	} else if err != nil {
		return "", false, err
	}
	args, err := json.Marshal(struct {
		Change string `json:"change_id"`
		console.Extent
	}{id, part})
	if err != nil {
		return "", false, err
	}
	return h.call(ctx, note.By.Workspace, note.Files, name, args)
}

// call calls a tool in a workspace, and where these files are. mu is held.
func (h *history) call(ctx context.Context, workspace string, files []journal.File, name string, args json.RawMessage) (
	text string, failed bool, err error) {
	roots := rootsOf(workspace, files)
	if len(roots) == 0 {
		return "The directory of this change is not there any more: " + workspace, true, nil
	}
	w := h.opened[strings.Join(roots, "\x00")]
	if w == nil {
		if len(h.opened) >= mostOpen {
			h.closeAll()
		}
		if w, err = h.open(ctx, roots); err != nil {
			return "This workspace cannot be opened: " + err.Error(), true, nil //nolint:nilerr // a person is told
		}
		h.opened[strings.Join(roots, "\x00")] = w
	}
	return w.CallByPerson(ctx, name, args)
}

// rootsOf are the directories that a change needs: its workspace, and for files elsewhere, of a session with several
// roots, their own.
func rootsOf(workspace string, files []journal.File) (roots []string) {
	add := func(dir string) {
		inside := slices.ContainsFunc(roots, func(root string) bool {
			rel, err := filepath.Rel(root, dir)
			return err == nil && filepath.IsLocal(rel)
		})
		if info, err := os.Stat(dir); !inside && err == nil && info.IsDir() {
			roots = append(roots, dir)
		}
	}
	if workspace != "" {
		add(workspace)
	}
	for _, f := range files {
		add(filepath.Dir(f.Path))
	}
	return roots
}
