package pipeline

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"codehand/tools/bash"
	"codehand/tools/permission"
)

// maxGlobbed is how many entries of directories are looked at for the globs of one command.
const maxGlobbed = 50_000

// spreads are the places in which a command touches files that it does not name, each with the files there that a rule
// is about, or that are protected: the rule judges such a command as if it had named them. A refusal names the place
// and not the file, which the caller may not be allowed to see. Without a rule about paths, spreads does not walk the
// directories that the command descends into.
func (c onDisk) spreads(a *bash.Analysis) []permission.Target {
	compares := c.state.Rules.ComparesPaths()
	targets := make([]permission.Target, 0, len(a.Spreads))
	left := maxGlobbed
	for i := range a.Spreads {
		if s := &a.Spreads[i]; compares || s.Named() && !s.Perhaps {
			l := spreadLook{c: c, s: s, left: &left, worst: permission.Allow, whole: true}
			targets = l.targets(targets)
		}
	}
	return targets
}

// A spreadLook looks at one place on the disk.
type spreadLook struct {
	c    onDisk
	s    *bash.Spread
	left *int // entries that may still be looked at

	target permission.Target
	worst  permission.Verdict
	whole  bool
	out    bool // it changes what is outside the roots
}

func (l *spreadLook) targets(targets []permission.Target) []permission.Target {
	rules := l.c.state.Rules
	l.target = permission.Target{Kind: permission.Path, Use: permission.CommandReads,
		Value: physical(unclean(l.c.state.Space, l.s.Dir))}
	switch {
	case l.s.Perhaps:
		l.target.Use = permission.CommandPerhaps
	case l.s.Write:
		l.target.Use = permission.CommandWrites
	}
	l.c.resolve(&l.target)
	below, deep := l.s.Beneath()
	deep = deep && (l.s.Perhaps || rules.Compares(l.s.Write) || l.s.Write && l.s.Named())
	start := func(rel string) bool {
		at := l.target.Value
		if rel != "" {
			at = l.matched(rel)
		}
		if deep {
			l.beneath(at, &below)
		}
		return l.worst != permission.Deny
	}
	if !l.s.Starts(l.list, start) {
		start(l.s.Text()) // what matches nothing stays as it is written
	}
	l.target.Unsure = !l.whole && l.worst != permission.Deny && (l.s.Perhaps || rules.Compares(l.s.Write))
	if l.out && l.worst == permission.Allow {
		l.target.Inside = false
	}
	if l.target.Unsure || l.worst != permission.Allow || l.out {
		targets = append(targets, l.target)
	}
	return targets
}

// matched looks at what a glob stands for, and returns where that is.
func (l *spreadLook) matched(rel string) string {
	t := permission.Target{Kind: permission.Path, Use: l.target.Use, Value: physical(l.target.Value + "/" + rel)}
	l.c.resolve(&t)
	l.judge(append(t.Also, filepath.Join(l.target.Value, rel), t.Value, t.Real), true)
	l.whole = l.whole && !t.Unsure
	l.out = l.out || l.s.Write && !l.s.Perhaps && !t.Inside
	return t.Value
}

// beneath looks at what is below a directory. Where no rule leads it does not go.
func (l *spreadLook) beneath(at string, below *bash.Spread) {
	rules := l.c.state.Rules
	ruled := func(place string) bool {
		return permission.RulesBelow(rules, place, l.s.Write) ||
			l.s.Perhaps && permission.RulesBelow(rules, place, true)
	}
	reaches := func(rel string, dir bool) bool {
		return below.Reaches(rel, dir) && (!dir || l.target.Inside || ruled(filepath.Join(at, rel)))
	}
	whole := l.c.state.Space.Below(at, reaches, func(rel string, names []string) bool {
		l.judge(append(names, filepath.Join(at, rel)), below.Named())
		return l.worst != permission.Deny
	})
	l.whole = l.whole && whole
}

// judge asks what is about a file, by all of its names. named: the command stands for it by a word.
func (l *spreadLook) judge(names []string, named bool) {
	rules := l.c.state.Rules
	for _, name := range names {
		if name == "" {
			continue
		}
		v := rules.Ruled(name, l.s.Write)
		switch {
		case l.s.Perhaps:
			v = min(v, rules.Ruled(name, true))
		case !named:
		case l.s.Write && rules.Guards(name):
			v = min(v, permission.Ask)
		case !l.s.Write && rules.Hidden(name):
			v = permission.Deny
		case !l.s.Write && rules.SecretName(name):
			v = min(v, permission.Ask)
		}
		if v < l.worst {
			l.worst, l.target.Also = v, []string{name}
		}
	}
}

// list is what is in a directory, with links followed as the kernel follows them.
func (l *spreadLook) list(rel string) []string {
	path := l.target.Value + "/" + rel
	if strings.HasPrefix(filepath.ToSlash(path), "//") && filepath.Separator != '/' {
		return nil // a network share
	}
	dir, err := os.Open(path + "/.") // a FIFO would be waited for
	if err != nil {
		return nil // the shell finds nothing there, either
	}
	defer dir.Close()
	names, err := dir.Readdirnames(max(*l.left, 1))
	if *l.left -= len(names); *l.left <= 0 || err != nil && !errors.Is(err, io.EOF) {
		l.whole = false
	}
	slices.Sort(names)
	return names
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
