package history

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"codehand/filestate/journal"
	"codehand/tools/tool"
	"codehand/tools/wording"
)

// A Made is a file that a session changed: what it was before the first change that still counts, and what it is now.
// Changes that were taken back do not count.
type Made struct {
	Path string
	From string // the file was only moved: its path before; "": it was not
	// ids of the session's changes that can still be taken back, the newest first
	IDs    []string
	Hidden bool // rules keep the session from reading it: nothing else is known of it here

	steps []step // oldest first; one at least
	moved []step // those of From
}

// A step is one change of one file by the session.
type step struct {
	entry journal.Entry
	file  journal.EntryFile
}

// unknown reports that the journal has no hashes of the contents of a step, only the reason why.
func (s step) unknown() bool { return s.file.Why != "" }

// MadeHere returns the files that the session itself changed, by path, as far as view asks for them. Whether they still
// differ is for Now to say. *journal.UnreadError comes with those found: there may be more.
func MadeHere(ctx context.Context, env tool.Env, view *View) ([]*Made, error) {
	q := journal.Query{Session: env.Key.Session, Below: view.Paths, Fits: func(e journal.Entry) bool {
		return e.By.Principal == env.Key.Principal
	}}
	if q.Below == nil {
		q.Below = env.Space.Roots()
	}
	entries, err := env.Files.History(ctx, q)
	if _, partly := errors.AsType[*journal.UnreadError](err); err != nil && !partly {
		return nil, err
	}
	own, byPath := map[string]bool{}, map[string]*Made{}
	for _, e := range entries {
		own[e.ID] = true
	}
	for _, e := range slices.Backward(entries) {
		for _, f := range e.Files {
			if !view.asksFor(f.Path) {
				continue
			}
			m := byPath[f.Path]
			if m == nil {
				m = &Made{Path: f.Path, Hidden: !view.Sees(f.Path)}
				byPath[f.Path] = m
			}
			m.steps = append(m.steps, step{e, f})
		}
	}
	var all []*Made
	for _, m := range byPath {
		if m.settle(own); len(m.steps) > 0 {
			all = append(all, m)
		}
	}
	slices.SortFunc(all, func(a, b *Made) int { return strings.Compare(a.Path, b.Path) })
	return pair(env, all), err
}

// maxRecent is how many changes of a session ChangedHere looks at, the newest first.
const maxRecent = 1000

// ChangedHere returns a test for files that the session itself changed lately and that it did not take back, by their
// canonical path. It reads the journal when it is first asked, and knows no file if it cannot. It is for orders only.
func ChangedHere(ctx context.Context, env tool.Env) func(path string) bool {
	changed := sync.OnceValue(func() map[string]bool {
		paths := map[string]bool{}
		q := journal.Query{Session: env.Key.Session, Below: env.Space.Roots(), Limit: maxRecent,
			Fits: func(e journal.Entry) bool { return e.By.Principal == env.Key.Principal && !e.Undone }}
		entries, _ := env.Files.History(ctx, q) // those that could be read come with the error
		for _, e := range entries {
			for _, f := range e.Files {
				paths[f.Path] = paths[f.Path] || !e.Back(f.Path)
			}
		}
		return paths
	})
	return func(path string) bool { return changed()[path] }
}

// asksFor reports whether the call asks for a file in the roots, which it need not be able to see.
func (v *View) asksFor(path string) bool {
	return inRoots(v.state, path) &&
		(v.Paths == nil || slices.ContainsFunc(v.Paths, func(p string) bool { return wording.Below(p, path) }))
}

// settle drops the steps that came to nothing, and notes what can be taken back of the rest.
func (m *Made) settle(own map[string]bool) {
	from, mode := 0, modeChange{}
	for i, s := range m.steps {
		if mode.add(s.file.Mode); s.unknown() {
			break
		}
		if s.file.After == m.steps[0].file.Before && mode.none() {
			from = i + 1
		}
	}
	m.steps = m.steps[from:]
	for _, s := range slices.Backward(m.steps) {
		redone := slices.ContainsFunc(s.entry.Undoes, func(id string) bool { return own[id] }) ||
			s.entry.Portion.Whole() && own[s.entry.Portion.ID]
		if !s.entry.Back(s.file.Path) && !redone && s.file.Why == "" && !s.file.NoCopy {
			m.IDs = append(m.IDs, s.entry.ID)
		}
	}
}

// pair joins a file that is gone with a file that the session made with the same content: the file was moved.
func pair(env tool.Env, all []*Made) []*Made {
	gone := map[string]*Made{}
	for _, m := range all {
		if sum := m.first().Before; sum != "" && m.last().After == "" && !m.Hidden && !m.unsure() {
			gone[sum] = m
		}
	}
	var away []*Made
	for _, m := range all {
		was := gone[m.last().After]
		if was == nil || m.first().Before != "" || m.Hidden || m.unsure() || !missing(env, was.Path) {
			continue
		}
		delete(gone, m.last().After)
		m.From, m.moved, away = was.Path, was.steps, append(away, was)
		for _, id := range was.IDs {
			if !slices.Contains(m.IDs, id) {
				m.IDs = append(m.IDs, id)
			}
		}
	}
	return slices.DeleteFunc(all, func(m *Made) bool { return slices.Contains(away, m) })
}

func (m *Made) first() journal.EntryFile { return m.steps[0].file }

func (m *Made) last() journal.EntryFile { return m.steps[len(m.steps)-1].file }

func (m *Made) unsure() bool { return slices.ContainsFunc(m.steps, step.unknown) }

// before returns the step whose old content is that of the file before all steps.
func (m *Made) before() step {
	if m.From != "" {
		return m.moved[0]
	}
	return m.steps[0]
}

// A modeChange is what several changes made of a file's mode together.
type modeChange struct{ was, is string }

func (c *modeChange) add(mode string) {
	was, is, ok := strings.Cut(mode, ">")
	if !ok {
		return
	}
	if c.is = is; c.was == "" {
		c.was = was
	}
}

func (c *modeChange) none() bool { return c.was == c.is }
