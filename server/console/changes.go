package console

import (
	"context"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"codehand/server/auth"
)

// Changes are what tools changed in the files of a principal, and how it is taken back.
type Changes interface {
	// List returns changes, the newest first: those that are older than the change before; "": all. more: there are
	// others that are older. said: why there is no list, in words for people.
	List(ctx context.Context, who auth.Principal, before string) (list []Change, more bool, said string, err error)
	// Show returns a change with what it changed, as a unified diff. failed: text says why there is none.
	Show(ctx context.Context, who auth.Principal, id string) (text string, failed bool, err error)
	// Undo takes a change back, or a part of it, or says why not: then nothing was written.
	Undo(ctx context.Context, who auth.Principal, id string, part Extent) (said string, done bool, err error)
	// HandOver returns what the next conversation can read of a session, by its short name, and of all others of its
	// workspace if whole; of the workspace that was changed last if session is "". It may say why there is nothing.
	HandOver(ctx context.Context, who auth.Principal, session string, whole bool) (text string, err error)
}

// An Extent is what is taken back of a change; zero: all of it.
type Extent struct {
	Hunk string `json:"hunk,omitempty"`      // its number in what Show returns and its head, as `2 @@ -1 +1 @@`
	File string `json:"file_path,omitempty"` // a path of a ChangedFile
	// Around is what nobody changed since. The answer names the rest in a line that begins with Stays.
	Around bool `json:"around,omitempty"`
}

// Stays begins the line of an answer that names what an Extent with Around left.
const Stays = "[left as they are: "

// A Change is one change of files.
type Change struct {
	ID      string        `json:"id"`
	Time    time.Time     `json:"time"`
	Session string        `json:"session"` // a short name
	Tool    string        `json:"tool"`
	Command string        `json:"command"` // that ran meanwhile; "": a tool made it
	Files   []ChangedFile `json:"files"`
	Undoes  []string      `json:"undoes"`  // it is an undo of these
	Portion *Portion      `json:"portion"` // it is an undo of this; nil: it is none of a part
	Undone  bool          `json:"undone"`
	Partly  []string      `json:"undone_files"` // paths of the files in which it is undone, if it is not in others
	Kept    string        `json:"kept"`         // it is no change, but a content that was kept
	Open    bool          `json:"open"`         // it is being made

	Workspace string `json:"-"` // its directory, where there are several; "": the one that there is
}

// A Portion is a part of another change.
type Portion struct {
	ID string `json:"id"`
}

// A ChangedFile is one file of a Change.
type ChangedFile struct {
	Path    string `json:"path"`
	Op      string `json:"op"`
	Added   int    `json:"added"`
	Removed int    `json:"removed"`
}

// Takes says whether the change can be taken back for a whole session, or for one file in it: an undo is none.
func (c Change) Takes(path string) bool {
	return !c.Undone && !slices.Contains(c.Partly, path) && !c.Open && c.Kept == "" && len(c.Undoes) == 0 &&
		c.Portion == nil
}

// What says how it was made, in a word or two.
func (c Change) What() string {
	switch {
	case c.Kept != "":
		return "kept"
	case len(c.Undoes) > 0:
		return "undo"
	case c.Portion != nil:
		return "undo of a part"
	}
	return c.Tool
}

// Of says whether the change belongs to a session, and to a file; "": to any.
func (c Change) Of(session, path string) bool {
	return (session == "" || c.Session == session) &&
		(path == "" || slices.ContainsFunc(c.Files, func(f ChangedFile) bool { return f.Path == path }))
}

const (
	// conflict begins what an undo says of a file that somebody changed since.
	conflict = "UNDO_CONFLICT: "
	// unavailable begins what it says of a file of which it is not known what it was.
	unavailable = "UNDO_UNAVAILABLE: "
	// mostListed is how many changes are looked at for one page, or to take back a session.
	mostListed = 2_000
	// mostShown is how many of them a page lists.
	mostShown = 140
	// mostSessions is how many of their sessions it lists, those that were used last.
	mostSessions = 50
)

// A sessionRow is a session with changes.
type sessionRow struct {
	Name           string
	Workspace      string
	Client         string // "": not known
	Last           time.Time
	Changes        int
	Added, Removed int
}

// A changesView is what the pages of changes show.
type changesView struct {
	Session, Path string // to which the list is narrowed; "": to none
	Sessions      []sessionRow
	List          []Change
	Takes         int // of the whole narrowed list can be taken back
	More          bool
	Looked        int // changes that were looked at
	Said          string
	One           string // id of the one change that is shown; "": a list is
	Lines         []diffLine
	Partly        map[string]bool // ids of List of which a part was taken back by itself
	Dir           string          // holds all files of List; "": none does
	Others        []string        // principals whose changes an administrator can look at
	undoing
}

// An undoing is what an undo was asked for, and what became of it.
type undoing struct {
	Keep    map[string]bool // ids of changes that the form keeps
	Around  bool            // what was changed since is kept, and the other parts go back
	Done    bool            // One was taken back just now, or all that was asked for
	Refused *refusal        // why One was not taken back; nil: Lines say it
	Undone  int             // of a session
	Left    []leftChange    // of a session: what could not be taken back
	Stays   []leftChange    // of a session: what was taken back but for what changed since
}

var (
	changeID    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9]{16}$`) })
	sessionName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9a-f]{8}$`) })
	hunkName    = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^[1-9][0-9]{0,5} @@ -[0-9,]{1,20} \+[0-9,]{1,20} @@$`)
	})
)

// changes shows what was changed.
func (c *Console) changes(w http.ResponseWriter, r *http.Request, p Person) {
	v := view{Title: "Changes", Person: p, Now: time.Now(), pages: pages{Changes: &changesView{}}}
	if !p.In {
		c.show(w, r, http.StatusOK, v)
		return
	}
	q := r.URL.Query()
	if session := q.Get("session"); sessionName().MatchString(session) {
		v.Changes.Session = session
	}
	v.Changes.Path = q.Get("path")
	h, ok := c.history(w, r, p)
	if !ok {
		return
	}
	if err := h.list(r.Context(), v.Changes); err != nil {
		c.broken(w, r, err)
		return
	}
	nameClients(r.Context(), &c.o, p, v.Changes)
	c.show(w, r, http.StatusOK, v)
}

// mostLooked is how many calls are looked at for the clients of sessions.
const mostLooked = 1_000

// nameClients says which clients the sessions are of, and to an administrator who else made calls, as far as the newest
// calls say it.
func nameClients(ctx context.Context, o *Options, p Person, v *changesView) {
	calls, err := o.Activity.Calls(ctx, p.Who, CallQuery{Limit: mostLooked})
	if err != nil {
		o.Log.Warn("the page does not know the clients of sessions", "err", err)
	}
	for _, x := range calls.List {
		if p.Other(x.Principal) && !slices.Contains(v.Others, x.Principal) {
			v.Others = append(v.Others, x.Principal)
		}
	}
	slices.Sort(v.Others)
	all := v.Sessions
	for i := range all {
		at := slices.IndexFunc(calls.List, func(x PastCall) bool { return x.Session == all[i].Name })
		switch {
		case at < 0:
		case strings.HasPrefix(calls.List[at].Client, pageClient):
			all[i].Client = "this page"
		default:
			all[i].Client = calls.List[at].Client
		}
	}
}

// change shows one change.
func (c *Console) change(w http.ResponseWriter, r *http.Request, p Person) {
	v := view{Title: "Change", Person: p, Now: time.Now(), pages: pages{Changes: &changesView{}}}
	id := r.PathValue("id")
	if !p.In || !changeID().MatchString(id) {
		if p.In {
			c.fail(w, r, p, http.StatusNotFound, "Not found", "There is no such change.")
			return
		}
		c.show(w, r, http.StatusOK, v)
		return
	}
	h, ok := c.history(w, r, p)
	if !ok {
		return
	}
	text, failed, err := h.changes.Show(r.Context(), h.who, id)
	if err != nil {
		c.broken(w, r, err)
		return
	}
	if failed {
		if why := refusalOf(text); why != nil {
			text = why.Happened
		}
		c.fail(w, r, p, http.StatusNotFound, "Not found", shown(text))
		return
	}
	v.Changes.One, v.Changes.Lines = id, lines(text)
	numberHunks(v.Changes.Lines)
	c.show(w, r, http.StatusOK, v)
}

// narrowed is the query of the list of a session, or of a file in it.
func narrowed(p Person, session, path string) string {
	q, _ := url.ParseQuery(strings.TrimPrefix(p.Query, "?")) // it is ours
	if session != "" {
		q.Set("session", session)
	}
	if path != "" {
		q.Set("path", path)
	}
	if len(q) == 0 {
		return ""
	}
	return "?" + q.Encode()
}

// whole is the query of the hand-over of the workspace of a session.
func whole(p Person, session string) string { return narrowed(p, session, "") + "&whole=1" }

// common is the directory that holds all files of changes; "": there is none.
func common(list []Change) string {
	dir, begun := "", false
	for _, c := range list {
		for _, f := range c.Files {
			if !begun {
				dir, begun = filepath.Dir(f.Path), true
			}
			for within(dir, f.Path) == f.Path && filepath.Dir(dir) != dir {
				dir = filepath.Dir(dir)
			}
		}
	}
	return dir
}

// within is a path as a person reads it: below the directory dir, if it is there.
func within(dir, path string) string {
	if rel, err := filepath.Rel(dir, path); dir != "" && err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}
