package pipeline

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"codehand/tools/bash"
	"codehand/tools/permission"
	"codehand/tools/session"
	"codehand/tools/workspace"
)

// decide makes the one decision about the call, and says what it depends on.
func (c *call) decide(ctx context.Context) (permission.Request, permission.Decision) {
	r := c.request() // anew: hooks may have taken minutes
	c.known = &r
	d := c.state.Rules.Decide(r)
	if !grantsMatter(r, d) {
		return r, d
	}
	r.Grants = c.pipe.Always.grants(r.Now)
	if !c.state.Shared { // else several conversations share the key, and a session's grant is for one
		// What the Store does not say was not granted.
		if grants, err := c.state.Grants.Load(ctx); err == nil {
			r.Grants = slices.Concat(r.Grants, grants)
		}
		if in := c.arrival.inside; in != nil {
			r.Grants = slices.Concat(r.Grants, in.lent)
		}
	}
	if len(r.Grants) > 0 {
		d = c.state.Rules.Decide(r)
	}
	return r, d
}

// asKnown is what the last decision about this input depended on. Hooks are told of that, also after the call, when the
// disk is another one; and the disk is not asked again for each of them.
func (c *call) asKnown() permission.Request {
	if c.known == nil {
		r := c.request()
		c.known = &r
	}
	return *c.known
}

// grantsMatter says whether a grant could make another decision.
func grantsMatter(r permission.Request, d permission.Decision) bool {
	return d.Verdict == permission.Ask && !d.Hard || d.Verdict == permission.Deny && r.Mode == permission.DontAsk
}

// request collects all that the decision depends on, but the grants.
func (c *call) request() permission.Request {
	r := permission.Request{
		Tool: c.bound.Spec.Name, Aliases: c.bound.Spec.OtherNames(), Family: c.bound.Spec.Family, Input: c.bound.Input,
		Targets:  slices.Clone(c.bound.Targets),
		ReadOnly: c.bound.Traits.ReadOnly, Tries: c.bound.Traits.Tries, Private: c.bound.Traits.Private,
		Own: c.bound.Verdict, Judged: c.found.Judged, Mode: c.mode, PlanFile: c.planFile, Now: time.Now(),
	}
	r.Confined = c.bound.Spec.Family == permission.FamilyBash && c.state.Confine.Trusted()
	if r.Mode == permission.Auto && c.pipe.Classify == nil {
		r.Mode = permission.Default // there is no classifier
	}
	if c.found.Hooks != nil { // else stage 3 asks: a condition of a hook is held against this, too
		r.Opinions = c.found.Hooks.Opinions
	}
	if c.state.Space == nil {
		return r // no target is inside
	}
	r.Cwd = c.state.Space.Cwd()
	for _, t := range r.Targets {
		if t.Kind == permission.Command && t.Analysis != nil {
			r.Targets = append(r.Targets, onDisk{c.state}.commandFiles(t.Analysis)...)
		}
	}
	for i := range r.Targets {
		if t := &r.Targets[i]; t.Kind == permission.Path {
			onDisk{c.state}.resolve(t)
		}
	}
	onDisk{c.state}.obeyed(&r)
	return r
}

// onDisk looks at the disk for what a decision depends on, with the roots and rules of a session.
type onDisk struct{ state *session.State }

// resolve looks at the disk for what a path leads to, and under what other names it is there.
func (c onDisk) resolve(t *permission.Target) {
	space := c.state.Space
	var whole bool
	if t.Real, t.Inside, t.Also, whole = space.Look(t.Value); !t.Inside {
		if t.Use != permission.ByCall { // a tool reaches nothing there, but a command does
			t.Real = realPath(t.Value)
		}
		return
	}
	t.Unsure = t.Unsure || !whole
	t.Folds = c.state.Rules.ComparesPaths() && space.Folds(t.Value)
}

// obeyed finds what git obeys among the files that the call changes.
func (c onDisk) obeyed(r *permission.Request) {
	changes := func(t permission.Target) bool {
		return t.Kind == permission.Path && t.Inside &&
			(t.Use == permission.CommandWrites || t.Use == permission.ByCall && (!r.ReadOnly || r.Tries) && !r.PlanFile)
	}
	names := func(t permission.Target) []string { return append([]string{t.Value, t.Real}, t.Also...) }
	var paths []string
	for _, t := range r.Targets {
		if changes(t) {
			paths = append(paths, names(t)...)
		}
	}
	if len(paths) == 0 {
		return
	}
	roots := c.state.Space.Roots()
	if c.state.Worktree != "" { // a name that is protected hides it
		roots = append(roots, c.state.Worktree)
	}
	all := c.state.Confine.Obeyed(roots, paths)
	for i := range r.Targets {
		t := &r.Targets[i]
		if len(all) == 0 || !changes(*t) {
			continue
		}
		for _, name := range names(*t) {
			if o, found := all.Find(name); found {
				t.Obeyed = permission.Obeyed{Key: o.Key, Name: o.Name}
			}
		}
	}
}

const (
	// maxLinks is how many links without a target realPath follows.
	maxLinks = 40
	// maxComponents is how many components of a path outside the roots are looked for on the disk.
	maxComponents = 256
)

// realPath follows the links of an absolute path outside the roots, as far as it exists, so that rules can name what a
// command would reach. A network share is left alone: on Windows a mere look sends the user's password hash to it.
func realPath(path string) string {
	if strings.Count(filepath.ToSlash(path), "/") > maxComponents {
		return path
	}
	at, rest, links := path, "", 0
	for filepath.IsAbs(at) && !strings.HasPrefix(filepath.ToSlash(at), "//") {
		up := filepath.Dir(at)
		if _, err := os.Lstat(at); err == nil { // a look at one name: to resolve asks for each on the way
			if real, err := filepath.EvalSymlinks(at); err == nil {
				return filepath.Join(real, rest)
			}
			if target, err := os.Readlink(at); err == nil && links < maxLinks { // it leads to what is not there yet
				links++
				if !filepath.IsAbs(target) {
					target = filepath.Join(up, target)
				}
				at = target
				continue
			}
		}
		if at == up {
			return path
		}
		at, rest = up, filepath.Join(filepath.Base(at), rest)
	}
	return path
}

// commandFiles are the files that a command is known to touch, as its shell would open them.
func (c onDisk) commandFiles(a *bash.Analysis) []permission.Target {
	files := a.OnDisk()
	targets := make([]permission.Target, 0, len(files))
	for _, f := range files {
		t := permission.Target{Kind: permission.Path, Value: c.opened(f.Path), Use: permission.CommandReads}
		switch {
		case f.Perhaps && !c.state.Rules.ComparesPaths(), f.Own && a.Held:
			continue
		case f.Perhaps:
			t.Use = permission.CommandPerhaps
		case f.Write:
			t.Use = permission.CommandWrites
		}
		if f.InDir && c.state.Space.Barred(t.Value) {
			continue
		}
		if f.Deep && !a.Held && c.state.Rules.Compares(f.Write) { // else the kernel keeps what is not named
			info, err := os.Stat(t.Value)
			t.Unsure = err == nil && info.IsDir()
		}
		targets = append(targets, t)
		if strings.Contains(f.Path, "..") { // a link before it leads elsewhere than the text
			if t.Value = physical(unclean(c.state.Space, f.Path)); t.Value != targets[len(targets)-1].Value {
				targets = append(targets, t)
			}
		}
	}
	return targets
}

// opened is a path of a command as its shell would open it.
func (c onDisk) opened(path string) string {
	switch {
	case filepath.IsAbs(path):
		return filepath.Clean(path)
	case path == "~" || strings.HasPrefix(path, "~/"):
		return c.state.Space.Abs(path)
	}
	return filepath.Join(c.state.Space.Cwd(), path) // never by Abs, which takes a URL for a path
}

// unclean is onDisk.opened for a path that keeps what stands before its `..`.
func unclean(space *workspace.Space, path string) string {
	switch {
	case filepath.IsAbs(path):
		return path
	case path == "~" || strings.HasPrefix(path, "~/"):
		return space.Abs(path)
	}
	return space.Cwd() + "/" + path
}

// physical is an absolute path without `..`, which leads up from where a link leads.
func physical(path string) string {
	path = filepath.ToSlash(path)
	at := strings.LastIndex(path+"/", "/../")
	if at < 0 {
		return filepath.Clean(path)
	}
	up, err := filepath.EvalSymlinks(path[:at+len("/..")])
	if err != nil {
		return filepath.Clean(path)
	}
	return filepath.Join(up, path[at+len("/.."):])
}
