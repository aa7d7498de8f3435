package bash

import (
	"path"
	"strings"
)

// maxPath is how long a path is at most that is put together of several, in bytes, as in the Linux kernel.
const maxPath = 4096

// enter follows a `cd DIR` with a literal directory.
func (sc *scope) enter(words []spelt) {
	i := 1
	switch words[0].bare {
	case "cd", "pushd":
	case "popd":
		sc.lost, sc.astray = true, "$OLDPWD"
		return
	default:
		return
	}
	for i < len(words) && (words[i].bare == "-P" || words[i].bare == "-L" || words[i].bare == "--") {
		i++
	}
	if i+1 != len(words) || words[i].shape&^homely != 0 || words[i].text == "" || words[i].text == "-" {
		sc.dir, sc.lost = "", i != len(words) // `cd` alone goes home
		if i == len(words) {
			sc.dir = "~"
		} else if sc.astray = words[len(words)-1].text; sc.astray == "-" {
			sc.astray = "$OLDPWD"
		}
		return
	}
	sc.dir, sc.lost = under(sc.dir, words[i].text), sc.lost && !rooted(words[i].text)
	if len(sc.dir) > maxPath {
		sc.dir, sc.lost, sc.astray = "", true, "" // no system goes there
	}
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
	if dir[0] == '~' { // where that is, nobody knows here
		user, rest, _ := strings.Cut(dir, "/")
		return user + "/" + path.Join(rest, p)
	}
	return path.Join(dir, p)
}
