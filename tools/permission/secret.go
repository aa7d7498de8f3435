package permission

import (
	"slices"
	"strings"

	"codehand/tools/guarded"
)

// secret returns the built-in rule that denies path (clean) to every tool, whatever the operator's rules say; "": none
// does. These are the keys and passwords of the person and of the machine. Letter case is ignored, because a file
// system that ignores it would give the file away under another spelling.
func (p *Policy) secret(path string) string {
	path = strings.ToLower(path)
	if rule := guarded.OfSystem(path); rule != "" {
		return rule
	}
	if rel, ok := below(p.homeLower, path); ok {
		if rule := p.secretOfHome(path, rel); rule != "" {
			return rule
		}
	}
	for _, homes := range [...]string{"/home", "/users"} {
		if rel, ok := below(homes, path); ok {
			if _, rel, ok = strings.Cut(rel, "/"); ok {
				return p.secretOfHome(path, rel)
			}
		}
	}
	if rel, ok := below("/root", path); ok {
		return p.secretOfHome(path, rel)
	}
	return ""
}

// secretOfHome looks at the first component below a home directory. A root at or below the secret makes it an ordinary
// directory within that root: the operator pointed at it. So does a directory of Reading.
func (p *Policy) secretOfHome(path, rel string) string {
	name, _, deep := strings.Cut(rel, "/")
	if !guarded.Secret(name) && name != ".config" { // which holds the tokens of many programs, in a home directory only
		return ""
	}
	secret := path
	if deep {
		secret = path[:len(path)-len(rel)+len(name)]
	}
	for _, root := range slices.Concat(p.rootsLower, p.openLower) {
		_, inSecret := below(secret, root)
		_, inRoot := below(root, path)
		if (inSecret || root == secret) && (inRoot || root == path) {
			return ""
		}
	}
	return "Read(~/" + name + ")"
}
