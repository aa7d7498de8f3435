package tenants

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"codehand/server/config"
	"codehand/tools/confine"
	"codehand/tools/permission"
	"codehand/tools/tool"
)

// A RuleReport says what one rule covers in the roots of a tenant, for people and programs.
type RuleReport struct {
	List   string   `json:"list"`   // deny, ask or allow
	Rule   string   `json:"rule"`   // as written
	Origin string   `json:"origin"` // file and line, flag, environment variable
	Tools  []string `json:"tools"`  // whose calls it is about
	About  string   `json:"about"`  // files, commands, hosts, names, or calls: every one, or those with a parameter
	Covers []string `json:"covers,omitempty"`
	// how many files below the roots Covers matches now; links are not followed. Of rules about files only
	Files   int    `json:"files"`
	AtLeast bool   `json:"at_least,omitempty"` // Files: not all could be looked at
	Note    string `json:"note,omitempty"`     // what limits the rule here
	Warning string `json:"warning,omitempty"`  // that it can match nothing, or misses what it names, and why
	Fix     string `json:"fix,omitempty"`      // what to do about Warning
}

const (
	// maxLooked is how many files and directories of one place are looked at to count what rules match.
	maxLooked = 20_000
	// lookTime is how long a start waits for the disk to say whether a directory outside the roots exists.
	lookTime = time.Second
)

// Report says what each rule of a tenant covers. It looks through the roots until ctx ends, and at most at maxLooked
// entries for each place that a rule begins at.
func (m *Maker) Report(ctx context.Context, t *Tenant) []RuleReport {
	var all []RuleReport
	rules := t.Rules.Coverage()
	unkept := confine.Unkept(t.Rules, t.Space.Roots())
	committed := confine.Committed(t.Rules, t.Space.Roots())
	begins := map[string][]int{} // the rules to count for, by where their files are
	for i, c := range rules {
		r := RuleReport{List: lists[c.Verdict], Rule: c.Rule.Text, Origin: c.Rule.Origin, About: abouts[c.Kind],
			Covers: c.Paths, Tools: []string{}}
		for _, x := range m.Tools.All() {
			if c.Names(x.Spec.Name, x.Spec.OtherNames(), x.Spec.Family) {
				r.Tools = append(r.Tools, x.Spec.Name)
			}
		}
		r.Warning, r.Fix, r.Note = m.limits(t, c)
		switch n := committed[c.Rule]; {
		case r.Note != "":
		case slices.Contains(unkept, c.Rule):
			r.Note = "for commands it holds on their text only: its files are too many to hide, or lie anywhere"
		case n > 0:
			r.Note = fmt.Sprintf("files that git tracks: %d. Programs that commands start can read what was committed "+
				"of them, from git's objects", n)
		}
		all = append(all, r)
		for _, place := range placesIn(t, c) {
			begins[place] = append(begins[place], i)
		}
	}
	for place, about := range begins {
		whole := count(ctx, place, func(path string) {
			for _, i := range about {
				if rules[i].Covers(path) {
					all[i].Files++
				}
			}
		})
		for _, i := range about {
			all[i].AtLeast = all[i].AtLeast || !whole
		}
	}
	return all
}

// lists are the lists of rules, by what their rules say.
var lists = map[permission.Verdict]string{permission.Deny: "deny", permission.Ask: "ask", permission.Allow: "allow"}

// abouts are what rules are about, by their kind.
var abouts = map[permission.Kind]string{permission.NoKind: "calls", permission.Path: "files",
	permission.Command: "commands", permission.Domain: "hosts", permission.Name: "names"}

// placesIn are where in the roots the files of a rule about files can be, none in another.
func placesIn(t *Tenant, c permission.Coverage) []string {
	if c.Kind != permission.Path {
		return nil
	}
	var places []string
	for _, root := range t.Space.Roots() {
		places = append(places, c.Below(root)...)
	}
	slices.Sort(places)
	places = slices.Compact(places)
	all := slices.Clone(places)
	return slices.DeleteFunc(places, func(place string) bool {
		return slices.ContainsFunc(all, func(up string) bool { return up != place && lies(place, up) })
	})
}

// count calls each for every file at or below place; whole is false if there are too many, or ctx has ended.
func count(ctx context.Context, place string, each func(path string)) (whole bool) {
	looked := 0
	err := filepath.WalkDir(filepath.FromSlash(place), func(path string, d fs.DirEntry, err error) error {
		looked++
		switch {
		case ctx.Err() != nil, looked > maxLooked:
			return errTooMany
		case err != nil:
			return nil //nolint:nilerr // it is not there, or this user may not look: then no tool may, either
		case !d.IsDir():
			each(path)
		}
		return nil
	})
	return err == nil
}

var errTooMany = errors.New("too many files to look at")

// limits warns of a rule that can match nothing, or not what it names, and says what to do; or else what it is limited
// to.
func (m *Maker) limits(t *Tenant, c permission.Coverage) (warning, fix, note string) {
	if why, fix := c.Idle(func(name string) bool { return m.hasInput(c, name) }); why != "" {
		return "it can match nothing that it seems to mean: " + why, fix, ""
	}
	roots := t.Space.Roots()
	if c.Kind != permission.Path || len(roots) == 0 || len(placesIn(t, c)) > 0 {
		return "", "", ""
	}
	for _, d := range t.outsideDirs() { // which tools may read
		if len(c.Below(config.Canonical(d.Path))) > 0 {
			return "", "", ""
		}
	}
	const nothing, outside = "it can match nothing: ", " lies outside the roots"
	there, dirs := false, c.Dirs()
	for _, dir := range dirs {
		real, exists := look(dir)
		there = there || exists
		if slices.ContainsFunc(roots, func(root string) bool { return lies(real, filepath.ToSlash(root)) }) {
			return "it misses what it names: " + dir +
					" leads into a root through a link, and rules see paths with links resolved",
				"write /" + real + " for " + dir, ""
		}
	}
	switch where := strings.Join(dirs, ", "); {
	case t.Prefs.NoShell != "":
		warning = nothing + where + outside + ", and no commands run here"
	case !there && !strings.Contains(c.Rule.Text, "(~/"): // a home may lack what others of the same person have
		warning = nothing + where + outside + ", and does not exist"
	default:
		return "", "", where + outside + ": the rule counts for commands only"
	}
	if strings.Contains(c.Rule.Text, "(//") {
		return warning, "for files of the workspace write " + strings.Replace(c.Rule.Text, "(//", "(/", 1) +
			": one slash starts at each root", ""
	}
	return warning, "in a rule /x starts at each root, and x at the current directory", ""
}

// hasInput says whether a tool that a rule is about has an input of a name. For tools of mounted servers that is
// unknown.
func (m *Maker) hasInput(c permission.Coverage, name string) bool {
	return strings.HasPrefix(c.Rule.Text, "mcp__") || slices.ContainsFunc(m.Tools.All(), func(x tool.Tool) bool {
		var schema struct {
			Properties map[string]json.RawMessage `json:"properties"`
		}
		return c.Names(x.Spec.Name, x.Spec.OtherNames(), x.Spec.Family) &&
			json.Unmarshal(x.Schema, &schema) == nil && schema.Properties[name] != nil
	})
}

// lies says whether a clean path is dir or lies in it.
func lies(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// look resolves the links in a path as far as it exists. A disk that says nothing within lookTime has something there.
func look(path string) (real string, exists bool) {
	type found struct {
		real   string
		exists bool
	}
	said := make(chan found, 1)
	go func() { // left behind if a dead mount holds it
		_, err := os.Lstat(filepath.FromSlash(path))
		said <- found{filepath.ToSlash(config.Canonical(filepath.FromSlash(path))), !errors.Is(err, fs.ErrNotExist)}
	}()
	select {
	case f := <-said:
		return f.real, f.exists
	case <-time.After(lookTime):
		return path, true
	}
}

// warnIdle logs the warnings of limits: the author of an idle limit relies on it. All are looked at if rules is nil.
func (m *Maker) warnIdle(t *Tenant, rules []permission.Rule) {
	for _, c := range t.Rules.Coverage() {
		if rules != nil && !slices.Contains(rules, c.Rule) {
			continue
		}
		if why, fix, _ := m.limits(t, c); why != "" {
			m.Log.Warn("check a rule: "+why, "rule", c.Rule.Text, "from", c.Rule.Origin, "fix", fix)
		}
	}
}
