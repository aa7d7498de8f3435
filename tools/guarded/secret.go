package guarded

import (
	"slices"
	"strings"
)

// secrets are the names of files that hold keys and passwords, wherever they stand.
var secrets = newNames(slices.Concat(
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

// Secret says whether one component of a path is the name of a secret, wherever it stands.
func Secret(component string) bool {
	return strings.IndexByte(component, '/') < 0 && secrets.Find(component) != ""
}

// SecretNames returns the names of secrets without those of unprotect; find of it takes a path relative to its root,
// and what it returns makes the rule about it (`Read(**/.env)`).
func SecretNames(unprotect []string) (*Names, error) {
	names, err := without(secrets, unprotect)
	if err != nil || len(unprotect) == 0 {
		return secrets, err
	}
	return newNames(names), nil
}

// OfSystem returns the rule about path, which is clean and in lower case, if it is one of the files of the machine that
// hold secrets; "": it is none.
func OfSystem(path string) string {
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

func below(dir, path string) (rel string, ok bool) {
	return strings.CutPrefix(path, dir+"/")
}
