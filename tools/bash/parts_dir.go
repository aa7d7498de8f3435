package bash

import (
	"path"
	"slices"
	"strings"
)

// maxPath is how long a path is at most that is put together of several, in bytes, as in the Linux kernel.
const maxPath = 4096

// maxGrounds is in how many directories a shell may stand at most.
const maxGrounds = 16

// A stand is where a shell stands.
type stand struct {
	ground
	others []ground // where it may stand instead: a cd before may have failed, or not have been run
	failed []ground // where it stands if the last command failed, or one before it that decides whether it runs
}

// A ground is a directory as far as the text tells.
type ground struct {
	dir    string // where `cd DIR` leads, seen from where the line starts
	lost   bool   // a cd has an unknown target
	astray string // the word of that cd, as written
	wild   string // a glob, behind which dir goes on; seen as dir, which then counts as lost; "": there is none
}

// follow follows a cd from all grounds.
func (st *stand) follow(words []spelt, searched bool) {
	if !isOneOf(words[0].bare, "cd pushd popd") {
		return
	}
	others := slices.Clone(st.others)
	st.failed = few(union(st.failed, append(others, st.ground)))
	for i := range others {
		others[i].enter(words, searched)
	}
	st.ground.enter(words, searched)
	st.others = union(nil, others)
}

// settle notes that what follows runs whether the last command failed or not.
func (st *stand) settle() {
	if st.failed != nil {
		others := few(union(st.others, st.failed))
		st.others = slices.DeleteFunc(others, func(g ground) bool { return g == st.ground })
		st.failed = nil
	}
}

// few returns a list from which union dropped nothing; else the working directory counts as unknown.
func few(list []ground) []ground {
	if len(list) > maxGrounds {
		return []ground{{lost: true, astray: "$OLDPWD"}}
	}
	return list
}

// union returns what is in a or b, once; more than maxGrounds are not looked at.
func union(a, b []ground) []ground {
	a = slices.Clone(a)
	for _, g := range b {
		if len(a) <= maxGrounds && !slices.Contains(a, g) {
			a = append(a, g)
		}
	}
	return a
}

// enter follows a `cd DIR` with a literal directory, or with a glob. searched: it may be found by CDPATH.
func (st *ground) enter(words []spelt, searched bool) {
	i := 1
	if words[0].bare == "popd" {
		*st = ground{lost: true, astray: "$OLDPWD"}
		return
	}
	for i < len(words) && (words[i].bare == "-P" || words[i].bare == "-L" || words[i].bare == "--") {
		i++
	}
	if i == len(words) && words[0].bare == "cd" { // home
		*st = ground{dir: "~", astray: st.astray}
		return
	}
	if i == len(words) || words[0].bare == "pushd" && strings.Trim(words[i].text, "+-0123456789") == "" {
		*st = ground{lost: true, astray: "$OLDPWD"}
		return
	}
	w := &words[i]
	t, known := throughProc(w.text)
	known = known && i+1 == len(words) && w.shape&^(homely|globbed) == 0 && t != "" && t != "-" &&
		(!searched || rooted(t) || t[0] == '.')
	switch {
	case known && w.shape&globbed != 0 && (!st.lost || rooted(t) || st.wild != ""):
		*st = ground{lost: true, astray: t, wild: st.globbed(t, true)}
	case !known || w.shape&globbed != 0:
		*st = ground{lost: true, astray: words[len(words)-1].text}
		if st.astray == "-" {
			st.astray = "$OLDPWD"
		}
	default:
		if rooted(t) {
			st.lost, st.wild = false, ""
		}
		st.dir = under(st.dir, t)
	}
	if len(st.dir)+len(st.wild) > maxPath {
		*st = ground{lost: true} // no system goes there
	}
}

// globbed is a word behind the globs that lead to where the shell stands, as one glob. is: it is a glob itself.
func (st *ground) globbed(text string, is bool) string {
	if rooted(text) {
		return text
	}
	quote := func(s string) string { return globQuotes.Replace(s) }
	if !is {
		text = quote(text)
	}
	if st.dir != "" {
		text = quote(st.dir) + "/" + text
	}
	if st.wild != "" {
		text = st.wild + "/" + text
	}
	return text
}

// globQuotes makes a name of a glob.
var globQuotes = strings.NewReplacer("*", `\*`, "?", `\?`, "[", `\[`, `\`, `\\`)

// throughProc is a path without the names in /proc by which a process reaches its own directory and the root. Not ok:
// what the kernel makes of it is not in the text.
func throughProc(p string) (plain string, ok bool) {
	if !strings.HasPrefix(p, "/") {
		return p, true
	}
	var at []string
	for rest := p; rest != ""; {
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		switch name {
		case "", ".":
			continue
		case "..":
			at = at[:max(len(at)-1, 0)]
			continue
		}
		if at = append(at, name); at[0] != "proc" && at[0] != "dev" {
			return p, true
		}
		own := len(at) == 3 && (at[1] == "self" || at[1] == "thread-self")
		rest = strings.TrimLeft(rest, "/")
		switch {
		case len(at) < 3 && (at[0] == "proc" || name != "fd"):
		case name == "fd": // a stream of the process itself was opened by a word that rules see
			stream := !strings.Contains(rest, "/") && (own || at[0] == "dev")
			return p, rest == "" || stream
		case at[0] == "dev", name != "cwd" && name != "root" && name != "map_files":
		case !own || name == "map_files":
			return p, false
		case name == "root":
			return throughProc("/" + rest)
		case rest == "":
			return ".", true
		default:
			return rest, true
		}
	}
	return p, true
}

// rooted says whether a path means the same wherever one stands.
func rooted(p string) bool { return strings.HasPrefix(p, "/") || strings.HasPrefix(p, "~") }

// under returns p as seen from where the line starts, if one stands in dir.
func under(dir, p string) string {
	if dir == "" || rooted(p) {
		return p
	}
	if p == "" || p == "." {
		return dir
	}
	if dir[0] == '~' { // the text does not tell where that is
		user, rest, _ := strings.Cut(dir, "/")
		return user + "/" + path.Join(rest, p)
	}
	return path.Join(dir, p)
}
