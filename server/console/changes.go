package console

import (
	"context"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
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
	// Undo takes a change back, or one hunk of it, or says why not: then nothing was written. hunk is the number of the
	// hunk in what Show returns and its head, as `2 @@ -1 +1 @@`; "": all of the change.
	Undo(ctx context.Context, who auth.Principal, id, hunk string) (said string, done bool, err error)
	// HandOver returns what the next conversation can read of a session, by its short name, and of all others of its
	// workspace if whole; of the workspace that was changed last if session is "". It may say why there is nothing.
	HandOver(ctx context.Context, who auth.Principal, session string, whole bool) (text string, err error)
}

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
	Kept    string        `json:"kept"` // it is no change, but a content that was kept
	Open    bool          `json:"open"` // it is being made

	Workspace string `json:"-"` // its directory, where there are several; "": the one that there is
}

// A Portion is a part of another change.
type Portion struct {
	ID   string `json:"id"`
	Hunk string `json:"hunk"`
}

// A ChangedFile is one file of a Change.
type ChangedFile struct {
	Path    string `json:"path"`
	Op      string `json:"op"`
	Added   int    `json:"added"`
	Removed int    `json:"removed"`
}

// Takes says whether the change can be taken back for a whole session: an undo is none.
func (c Change) Takes() bool {
	return !c.Undone && !c.Open && c.Kept == "" && len(c.Undoes) == 0 && c.Portion == nil
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
	// mostListed is how many changes are looked at for one page, or to take back a session.
	mostListed = 2_000
	// mostShown is how many of them a page lists.
	mostShown = 150
	// mostSessions is how many of their sessions it lists, those that were used last.
	mostSessions = 50
)

// A sessionRow is a session with changes.
type sessionRow struct {
	Name           string
	Workspace      string
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
	Said          string
	One           string // id of the one change that is shown; "": a list is
	Lines         []diffLine
	Refused       *refusal        // why One was not taken back; nil: Lines say it
	Partly        map[string]bool // of List: a part of it was taken back by itself
	Done          bool            // One was taken back just now
	Undone        int             // of a session
}

// say takes in what an undo said.
func (v *changesView) say(said string) {
	if !v.Done {
		v.Refused = refusalOf(said)
	}
	if v.Refused == nil {
		v.Lines = lines(said)
	}
}

var (
	changeID    = regexp.MustCompile(`^[a-z0-9]{16}$`)
	sessionName = regexp.MustCompile(`^[0-9a-f]{8}$`)
	hunkName    = regexp.MustCompile(`^[1-9][0-9]{0,5} @@ -[0-9,]{1,20} \+[0-9,]{1,20} @@$`)
)

// changes shows what was changed.
func (c *Console) changes(w http.ResponseWriter, r *http.Request, p Person) {
	v := view{Title: "Changes", Person: p, Now: time.Now(), Changes: &changesView{}}
	if !p.In {
		c.show(w, r, http.StatusOK, v)
		return
	}
	q := r.URL.Query()
	if session := q.Get("session"); sessionName.MatchString(session) {
		v.Changes.Session = session
	}
	v.Changes.Path = q.Get("path")
	if err := c.list(r.Context(), p, v.Changes); err != nil {
		c.broken(w, r, err)
		return
	}
	c.show(w, r, http.StatusOK, v)
}

// list fills in the changes of a person, and what can be taken back of them.
func (c *Console) list(ctx context.Context, p Person, v *changesView) error {
	rows := map[string]*sessionRow{}
	v.Partly = map[string]bool{}
	before := ""
	for looked := 0; looked < mostListed; {
		some, more, said, err := c.o.Changes.List(ctx, p.Who, before)
		if err != nil {
			return err
		}
		v.Said = said
		for _, x := range some {
			if x.Portion != nil && !x.Undone && !x.Open {
				v.Partly[x.Portion.ID] = true
			}
			row := rows[x.Session]
			if row == nil {
				row = &sessionRow{Name: x.Session, Workspace: x.Workspace, Last: x.Time}
				rows[x.Session] = row
			}
			row.Changes++
			for _, f := range x.Files {
				row.Added, row.Removed = row.Added+f.Added, row.Removed+f.Removed
			}
			if !x.Of(v.Session, v.Path) {
				continue
			}
			if x.Takes() {
				v.Takes++
			}
			if len(v.List) < mostShown {
				v.List = append(v.List, x)
			} else {
				v.More = true
			}
		}
		looked += len(some)
		if !more || len(some) == 0 {
			break
		}
		before = some[len(some)-1].ID
		v.More = v.More || looked >= mostListed
	}
	for _, row := range rows {
		v.Sessions = append(v.Sessions, *row)
	}
	slices.SortFunc(v.Sessions, func(a, b sessionRow) int { return b.Last.Compare(a.Last) })
	if len(v.Sessions) > mostSessions {
		v.Sessions, v.More = v.Sessions[:mostSessions], true
	}
	return nil
}

// change shows one change.
func (c *Console) change(w http.ResponseWriter, r *http.Request, p Person) {
	v := view{Title: "Change", Person: p, Now: time.Now(), Changes: &changesView{}}
	id := r.PathValue("id")
	if !p.In || !changeID.MatchString(id) {
		if p.In {
			c.fail(w, r, p, http.StatusNotFound, "Not found", "There is no such change.")
			return
		}
		c.show(w, r, http.StatusOK, v)
		return
	}
	text, failed, err := c.o.Changes.Show(r.Context(), p.Who, id)
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

// undo takes a change, or those of a session or of a file in it, back: the newest first, until one cannot be.
func (c *Console) undo(w http.ResponseWriter, r *http.Request, p Person) {
	if p.Bars != "" {
		c.fail(w, r, p, http.StatusForbidden, "Not here", "Nothing was done. "+p.Bars)
		return
	}
	form := r.PostForm
	id, session, hunk := form.Get("change"), form.Get("session"), form.Get("hunk")
	v := view{Title: "Undo", Person: p, Now: time.Now(), Changes: &changesView{}}
	switch {
	case changeID.MatchString(id) && session == "" && (hunk == "" || hunkName.MatchString(hunk)):
		said, done, err := c.o.Changes.Undo(r.Context(), p.Who, id, hunk)
		if err != nil {
			c.broken(w, r, err)
			return
		}
		v.Changes.One, v.Changes.Done = id, done
		v.Changes.say(said)
	case id == "" && sessionName.MatchString(session) && hunk == "":
		if err := c.undoSession(r.Context(), p, session, form.Get("path"), v.Changes); err != nil {
			c.broken(w, r, err)
			return
		}
	default:
		c.fail(w, r, p, http.StatusBadRequest, "Not understood", "This form cannot be read.")
		return
	}
	status := http.StatusOK
	if !v.Changes.Done {
		status = http.StatusConflict
	}
	c.show(w, r, status, v)
}

func (c *Console) undoSession(ctx context.Context, p Person, session, path string, v *changesView) error {
	v.Session, v.Path = session, path
	whole := &changesView{Session: session, Path: path}
	if err := c.list(ctx, p, whole); err != nil {
		return err
	}
	v.Done = true
	for _, x := range whole.List {
		if !x.Takes() {
			continue
		}
		said, done, err := c.o.Changes.Undo(ctx, p.Who, x.ID, "")
		if err != nil {
			return err
		}
		if !done {
			v.One, v.Done = x.ID, false
			v.say(said)
			return nil
		}
		v.Undone++
	}
	v.More = whole.More
	return nil
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

func base(path string) string { return filepath.Base(path) }
