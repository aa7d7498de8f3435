package permission

import "strings"

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
// directory within that root: the operator pointed at it.
func (p *Policy) secretOfHome(path, rel string) string {
	name, _, deep := strings.Cut(rel, "/")
	if !isSecret(name) {
		return ""
	}
	secret := path
	if deep {
		secret = path[:len(path)-len(rel)+len(name)]
	}
	for _, root := range p.rootsLower {
		_, inSecret := below(secret, root)
		_, inRoot := below(root, path)
		if (inSecret || root == secret) && (inRoot || root == path) {
			return ""
		}
	}
	return "Read(~/" + name + ")"
}

// isSecret knows the names (in lower case) that hold secrets when they stand in a home directory.
func isSecret(name string) bool {
	switch name {
	case ".ssh", ".aws", ".gnupg", ".kube", ".docker", ".azure", ".password-store", ".netrc", ".npmrc", ".pypirc",
		".git-credentials", ".vault-token", ".htpasswd", ".env", ".config", "credentials", "shadow", "gshadow", "sudoers":
		return true
	case ".env.example", ".env.sample", ".env.template", ".env.dist":
		return false
	}
	if strings.HasPrefix(name, ".env.") {
		return true
	}
	for _, key := range [...]string{"id_rsa", "id_ed25519", "id_ecdsa"} {
		if strings.HasPrefix(name, key) {
			return !strings.HasSuffix(name, ".pub")
		}
	}
	return false
}
