package console

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"codehand/server/auth"
)

// A history is what was changed for a person.
type history struct {
	changes Changes
	who     auth.Principal
}

// history returns that which p looks at. Not ok: there is none, and r was answered.
func (c *Console) history(w http.ResponseWriter, r *http.Request, p Person) (h history, ok bool) {
	h = history{c.o.Changes, p.Who}
	if p.Of == "" {
		return h, true
	}
	if c.o.ChangesOf != nil {
		h.changes, ok = c.o.ChangesOf(p.Who, p.Of)
	}
	if !ok {
		c.fail(w, r, p.For(""), http.StatusNotFound, "Not found", "There is no principal "+shown(p.Of)+".")
	}
	return h, ok
}

// A leftChange was not taken back.
type leftChange struct {
	Change
	Why string
}

// Parts says whether a change that is left may go back in parts.
func (v *changesView) Parts() bool {
	return !v.Around && slices.ContainsFunc(v.Left, func(c leftChange) bool {
		return strings.HasPrefix(c.Why, conflict) || strings.HasPrefix(c.Why, unavailable)
	})
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

// list fills in the changes, and what can be taken back of them.
func (h history) list(ctx context.Context, v *changesView) error {
	rows := map[string]*sessionRow{}
	v.Partly = map[string]bool{}
	before := ""
	for looked := 0; looked < mostListed; {
		some, more, said, err := h.changes.List(ctx, h.who, before)
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
			if x.Takes(v.Path) {
				v.Takes++
			}
			if len(v.List) < mostShown {
				v.List = append(v.List, x)
			} else {
				v.More = true
			}
		}
		looked += len(some)
		v.Looked = looked
		if !more || len(some) == 0 {
			break
		}
		before = some[len(some)-1].ID
		v.More = v.More || looked >= mostListed
	}
	v.Dir = common(v.List)
	for _, row := range rows {
		v.Sessions = append(v.Sessions, *row)
	}
	slices.SortFunc(v.Sessions, func(a, b sessionRow) int { return b.Last.Compare(a.Last) })
	if len(v.Sessions) > mostSessions {
		v.Sessions, v.More = v.Sessions[:mostSessions], true
	}
	return nil
}

// undo takes back a change, a part of it, or the changes of a session or of a file in it.
func (c *Console) undo(w http.ResponseWriter, r *http.Request, p Person) {
	if p.Bars != "" {
		c.fail(w, r, p, http.StatusForbidden, "Not here", "Nothing was done. "+p.Bars)
		return
	}
	form := r.PostForm
	id, session, hunk, around := form.Get("change"), form.Get("session"), form.Get("hunk"), form.Get("around") == "1"
	v := view{Title: "Undo", Person: p, Now: time.Now(),
		pages: pages{Changes: &changesView{undoing: undoing{Around: around}}}}
	h, ok := c.history(w, r, p)
	if !ok {
		return
	}
	var err error
	switch {
	case changeID().MatchString(id) && session == "" && (hunk == "" || hunkName().MatchString(hunk) && !around):
		v.Changes.One = id
		err = h.undoOne(r.Context(), hunk, v.Changes)
	case id == "" && sessionName().MatchString(session) && hunk == "":
		v.Changes.Session, v.Changes.Path, v.Changes.Keep = session, form.Get("path"), kept(form)
		err = h.undoSession(r.Context(), v.Changes)
	default:
		c.fail(w, r, p, http.StatusBadRequest, "Not understood", "This form cannot be read.")
		return
	}
	if err != nil {
		c.broken(w, r, err)
		return
	}
	status := http.StatusOK
	if !v.Changes.Done {
		status = http.StatusConflict
	}
	c.show(w, r, status, v)
}

// keepField begins the name of the field that keeps a change.
const keepField = "keep-"

// kept are the changes that a form keeps.
func kept(form url.Values) map[string]bool {
	all := map[string]bool{}
	for name := range form {
		if id, ok := strings.CutPrefix(name, keepField); ok && changeID().MatchString(id) {
			all[id] = true
		}
	}
	return all
}

// undoOne takes back the change v.One, one hunk of it, or what nobody changed of it since.
func (h history) undoOne(ctx context.Context, hunk string, v *changesView) error {
	said, done, err := h.changes.Undo(ctx, h.who, v.One, Extent{Hunk: hunk, Around: v.Around})
	v.Done = done
	v.say(said)
	return err
}

// undoSession takes back the changes of a session, or of a file in it, the newest first. One that cannot be is left,
// and the others go back.
func (h history) undoSession(ctx context.Context, v *changesView) error {
	whole := &changesView{Session: v.Session, Path: v.Path}
	if err := h.list(ctx, whole); err != nil {
		return err
	}
	for _, x := range whole.List {
		if !x.Takes(v.Path) || v.Keep[x.ID] {
			continue
		}
		said, done, err := h.changes.Undo(ctx, h.who, x.ID, Extent{File: v.Path, Around: v.Around})
		_, stays, some := strings.Cut(said, Stays)
		switch {
		case err != nil:
			return err
		case done && some:
			stays, _, _ = strings.Cut(stays, "\n")
			v.Undone, v.Stays = v.Undone+1, append(v.Stays, leftChange{x, strings.TrimSuffix(stays, "]")})
		case done:
			v.Undone++
		default:
			v.Left = append(v.Left, leftChange{x, said})
		}
	}
	v.Done, v.More = len(v.Left) == 0, whole.More
	return nil
}

// Refusal is why the change was left.
func (c leftChange) Refusal() refusal {
	if r := refusalOf(c.Why); r != nil {
		return *r
	}
	return refusal{Happened: c.Why}
}
