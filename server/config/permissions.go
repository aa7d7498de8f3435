package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"codehand/tools/permission"
)

// A growing value takes what every source says; the others are replaced.
type growing interface {
	value
	// read returns the entries that can be used, and what is wrong with the others.
	read(in input) (add func(), count int, bad Problems)
}

// grow adds all entries, or none if one of them is wrong.
func grow(v growing, in input) error {
	add, _, bad := v.read(in)
	if len(bad) > 0 {
		return bad
	}
	add()
	return nil
}

// rules are permission rules of one list. Each is parsed here, so that a mistake is found at start and with its place.
type rules struct {
	p  *[]permission.Rule
	of permission.Verdict // what the rules of the list say
}

func (v rules) set(in input) error { return grow(v, in) }

func (v rules) read(in input) (add func(), count int, bad Problems) {
	good, bad := parseRules(in, v.of)
	return func() { *v.p = append(*v.p, good...) }, len(good), bad
}

func (v rules) text() string {
	texts := make([]string, len(*v.p))
	for i, r := range *v.p {
		texts[i] = r.Text
	}
	return strings.Join(texts, ",")
}

// parseRules returns the rules that parse, and what is wrong with the others.
func parseRules(in input, of permission.Verdict) (good []permission.Rule, bad Problems) {
	texts, err := entries(in)
	if err != nil {
		return nil, Problems{{Origin: in.origin, Text: err.Error()}}
	}
	for i, s := range texts {
		r := permission.Rule{Text: s, Origin: in.at(i), Dir: in.ruleDir}
		o := permission.Options{Home: in.home}
		switch list := []permission.Rule{r}; of {
		case permission.Allow:
			o.Allow = list
		case permission.Ask:
			o.Ask = list
		default:
			o.Deny = list
		}
		if _, err := permission.New(o); err != nil {
			bad.add(r.Origin, strings.TrimPrefix(err.Error(), r.Origin+": "))
			continue
		}
		good = append(good, r)
	}
	return good, bad
}

// patterns are patterns of paths. Each is kept as a rule about changing files, whose words for paths are the same.
type patterns struct{ p *[]permission.Rule }

const (
	patternHead = "Edit("
	patternTail = ")"
)

func (v patterns) set(in input) error { return grow(v, in) }

func (v patterns) read(in input) (add func(), count int, bad Problems) {
	var good []permission.Rule
	names, bad := parseNames(in, func(name string) permission.Options {
		return permission.Options{Home: in.home,
			Deny: []permission.Rule{{Text: patternHead + name + patternTail, Dir: in.ruleDir}}}
	})
	for _, name := range names {
		good = append(good, permission.Rule{Text: patternHead + name + patternTail, Origin: in.origin, Dir: in.ruleDir})
	}
	return func() { *v.p = append(*v.p, good...) }, len(good), bad
}

func (v patterns) text() string {
	texts := make([]string, len(*v.p))
	for i, r := range *v.p {
		texts[i] = strings.TrimSuffix(strings.TrimPrefix(r.Text, patternHead), patternTail)
	}
	return strings.Join(texts, ",")
}

// protects are names of files that a person must allow to change.
type protects struct{ p *[]string }

func (v protects) set(in input) error { return grow(v, in) }

func (v protects) read(in input) (add func(), count int, bad Problems) {
	good, bad := parseNames(in,
		func(name string) permission.Options { return permission.Options{Protect: []string{name}} })
	return func() {
		for _, name := range good {
			if !slices.Contains(*v.p, name) {
				*v.p = append(*v.p, name)
			}
		}
	}, len(good), bad
}

func (v protects) text() string { return strings.Join(*v.p, ",") }

// unprotects are built-in names that are ordinary files. A source replaces the whole list.
type unprotects struct{ p *[]string }

func (v unprotects) set(in input) error {
	good, bad := parseNames(in,
		func(name string) permission.Options { return permission.Options{Unprotect: []string{name}} })
	if len(bad) > 0 {
		return bad
	}
	*v.p = good
	return nil
}

func (v unprotects) text() string { return strings.Join(*v.p, ",") }

// parseNames returns the names that a policy takes, and what is wrong with the others.
func parseNames(in input, as func(name string) permission.Options) (good []string, bad Problems) {
	texts, err := entries(in)
	if err != nil {
		return nil, Problems{{Origin: in.origin, Text: err.Error()}}
	}
	for i, name := range texts {
		if _, err := permission.New(as(name)); err != nil {
			bad.add(in.at(i), err.Error())
			continue
		}
		good = append(good, name)
	}
	return good, bad
}

// at is the origin of the entry i of a list.
func (in input) at(i int) string {
	if i < len(in.lines) {
		return in.lines[i]
	}
	return in.origin
}

// command is a program with its arguments.
type command struct{ p *[]string }

func (v command) set(in input) error {
	words, err := entries(in)
	if err != nil {
		return err
	}
	if len(words) > 0 { // else: none
		if words, err = readCommand(words, in); err != nil {
			return err
		}
	}
	*v.p = words
	return nil
}

func (v command) text() string { return strings.Join(*v.p, ",") }

// readCommand checks the program of a command. A relative path would be looked for in whatever directory the server
// runs in, and could be a file of the workspace.
func readCommand(words []string, in input) ([]string, error) {
	if len(words) == 0 || words[0] == "" {
		return nil, errors.New(`must name a program, as ["/usr/local/bin/guard"]`)
	}
	for _, word := range words {
		if strings.ContainsRune(word, 0) {
			return nil, errors.New("has a NUL byte in it")
		}
	}
	words = slices.Clone(words)
	switch program := words[0]; {
	case strings.HasPrefix(program, "~"), filepath.IsAbs(program):
		path, err := absolute(program, input{home: in.home, file: true})
		if err != nil {
			return nil, err
		}
		words[0] = path
	case program != filepath.Base(program) || strings.ContainsAny(program, `/\`):
		return nil, fmt.Errorf("%s: give an absolute path, or a name that is in PATH", program)
	}
	return words, nil
}

// millis is a duration that is written as a number of milliseconds.
type millis struct {
	p        *time.Duration
	min, max int
}

func (v millis) set(in input) error {
	var ms int
	if err := (number{&ms, v.min, v.max, false}).set(in); err != nil {
		return err
	}
	*v.p = time.Duration(ms) * time.Millisecond
	return nil
}

func (v millis) text() string { return fmt.Sprint(v.p.Milliseconds()) }
func (v millis) rank() int    { return int(v.p.Milliseconds()) }

// auto makes of the mode auto what it means without a classifier. It runs before the project files, which narrow what
// holds, and again after them.
func (l *loader) auto() {
	c := &l.config
	if len(c.Permissions.Classifier) > 0 {
		return
	}
	const text = "auto acts like default, because there is no permissions.classifier"
	if c.Permissions.Mode == permission.Auto {
		c.Permissions.Mode = permission.Default
		l.warnings = append(l.warnings, Warning{Origin: c.origins[modeKey], Text: modeKey + ": " + text})
	}
	l.eachPrincipal(func(of personalTable, v *values) {
		if v.Mode != nil && *v.Mode == permission.Auto.String() {
			key, mode := of.key("mode"), permission.Default.String()
			v.Mode = &mode
			l.warnings = append(l.warnings, Warning{Origin: c.origins[key], Text: key + ": " + text})
		}
	})
}

// Keys that are spoken of apart from the table.
const (
	modeKey        = "permissions.mode"
	denyKey        = "permissions.deny"
	askFallbackKey = "permissions.ask_fallback"
	additionalKey  = "permissions.additional_dirs"
)

// Start returns the mode in which a session starts that asks for m: not auto without a classifier, and none looser than
// what the machine's administrator fixed.
func (p Permissions) Start(m permission.Mode) permission.Mode {
	if m == permission.Auto && len(p.Classifier) == 0 {
		m = permission.Default
	}
	return p.Limit(m)
}

// Limit returns m, or Highest if m is not stricter, in the order in which project files narrow.
func (p Permissions) Limit(m permission.Mode) permission.Mode {
	if (mode{&m}).rank() >= (mode{&p.Highest}).rank() {
		return p.Highest
	}
	return m
}

// additionalDirs checks the directories that are used like roots.
func (l *loader) additionalDirs() {
	const key = additionalKey
	for _, dir := range l.config.Permissions.AdditionalDirs {
		if err := existing(dir); err != nil {
			l.problems.add(l.config.origins[key], key+": "+err.Error())
			continue
		}
		l.warnAboutHome(dir)
		if !l.src.Serve {
			continue
		}
		for _, list := range l.templates() {
			for _, root := range list.roots {
				if personal(root) && overlap(canonical(root), Canonical(dir)) {
					l.problems.add(l.config.origins[key],
						fmt.Sprintf("%s: %s overlaps with %s of the root %s, so everyone could reach somebody's files",
							key, dir, placeholder, root))
				}
			}
		}
	}
}

// planDirectory refuses a directory for plans that no session could write to. before is what held without the project
// files: one of theirs is left out instead, since a repository must not keep the server from starting.
func (l *loader) planDirectory(before, origin string) {
	const key = "plan.directory"
	c := &l.config
	if c.Plan.Directory != before && !l.inRoots(c.Plan.Directory) {
		l.warnings = append(l.warnings,
			Warning{Origin: c.origins[key], Text: key + ": ignored: " + c.Plan.Directory + " is not inside a root"})
		c.Plan.Directory, c.origins[key] = before, origin
	}
	if c.Plan.Directory != "" && !l.inRoots(c.Plan.Directory) {
		l.problems.add(c.origins[key], key+": "+c.Plan.Directory+" must lie inside a root")
	}
}

// inRoots says whether dir lies in a root of any principal.
func (l *loader) inRoots(dir string) bool {
	lists := []rootList{{"", l.config.Roots}, {"", l.config.Permissions.AdditionalDirs}}
	if l.src.Serve {
		lists = append(lists, l.templates()...)
		if len(l.config.Roots) == 0 && len(l.config.Principals.Default.Roots) == 0 {
			return true // workspaces at their default place; each principal looks for itself
		}
	}
	at := components(Canonical(dir))
	for _, list := range lists {
		for _, root := range list.roots {
			if root := canonical(root); len(components(root)) <= len(at) && overlap(root, Canonical(dir)) {
				return true
			}
		}
	}
	return false
}
