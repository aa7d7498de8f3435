package permission

import (
	"slices"
	"strings"
)

// secret returns the built-in rule that denies path (clean) to every tool, whatever the operator's rules say; "": none
// does. These are the keys and passwords of the person and of the machine. Letter case is ignored, because a file
// system that ignores it would give the file away under another spelling.
func (p *Policy) secret(path string) string {
	path = strings.ToLower(path)
	if rule := secretOfSystem(path); rule != "" {
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

func secretOfSystem(path string) string {
	if rel, ok := below("/etc", path); ok {
		for _, name := range [...]string{"shadow", "gshadow", "sudoers"} { // and their backups and directories
			if strings.HasPrefix(rel, name) {
				return "Read(//etc/" + name + "*)"
			}
		}
		if rel, ok := below("ssh", rel); ok && strings.HasSuffix(rel, "_key") {
			return "Read(//etc/ssh/*_key)"
		}
	}
	if rel, ok := below("/proc", path); ok {
		switch name := rel[strings.LastIndexByte(rel, '/')+1:]; name {
		case "environ", "mem", "maps":
			return "Read(//proc/**/" + name + ")"
		}
	}
	return ""
}

// secretOfHome looks at the first component below a home directory. A root at or below the secret makes it an ordinary
// directory within that root: the operator pointed at it. So does a directory of Reading.
func (p *Policy) secretOfHome(path, rel string) string {
	name, _, deep := strings.Cut(rel, "/")
	if !secretName(name) && name != ".config" { // which holds the tokens of many programs, in a home directory only
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

// secrets are the names of files that hold keys and passwords, wherever they stand.
var secrets = newNameSet(slices.Concat(
	namesOf(nil, ".ssh", ".aws", ".gnupg", ".kube", ".docker", ".azure", ".password-store", ".netrc", ".npmrc",
		".pypirc", ".git-credentials", ".vault-token", ".htpasswd", ".env", "credentials", "shadow", "gshadow",
		"sudoers"),
	namesOf(func(n *fileName) { n.plain = envExample }, ".env.*"),
	namesOf(func(n *fileName) { n.plain = publicKey }, "id_rsa*", "id_ed25519*", "id_ecdsa*"),
))

// envExample and publicKey know the exact spellings of what is made to be shown.
func envExample(component string) bool {
	switch component {
	case ".env.example", ".env.sample", ".env.template", ".env.dist":
		return true
	}
	return false
}

func publicKey(component string) bool { return strings.HasSuffix(component, ".pub") }

// secretName says whether one component of a path is the name of a secret, wherever it stands.
func secretName(component string) bool {
	return strings.IndexByte(component, '/') < 0 && secrets.find(component) != ""
}

// secretNames returns the names of secrets without those of unprotect; find of it takes a path relative to its root,
// and what it returns makes the rule about it (`Read(**/.env)`).
func secretNames(unprotect []string) (*nameSet, error) {
	names, err := without(secrets, unprotect)
	if err != nil || len(unprotect) == 0 {
		return secrets, err
	}
	return newNameSet(names), nil
}
