package guarded

import (
	"slices"
	"strings"
	"sync"
)

// secrets are the names of files that hold keys and passwords, wherever they stand.
var secrets = sync.OnceValue(func() *Names {
	return newNames(slices.Concat(
		namesOf(nil, ".ssh", ".aws", ".gnupg", ".kube", ".docker", ".azure", ".password-store", ".netrc", ".npmrc",
			".pypirc", ".git-credentials", ".vault-token", ".htpasswd", ".env", "credentials", "shadow", "gshadow",
			"sudoers"),
		namesOf(func(n *fileName) { n.plain = envExample }, ".env.*"),
		namesOf(func(n *fileName) { n.plain = publicKey }, "id_rsa*", "id_ed25519*", "id_ecdsa*"),
	))
})

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
	return strings.IndexByte(component, '/') < 0 && secrets().Find(component) != ""
}

// SecretNames returns the names of secrets without those of unprotect; find of it takes a path relative to its root,
// and what it returns makes the rule about it (`Read(**/.env)`).
func SecretNames(unprotect []string) (*Names, error) {
	names, err := without(secrets(), unprotect)
	if err != nil || len(unprotect) == 0 {
		return secrets(), err
	}
	return newNames(names), nil
}

// OfSystem returns the rule about path, which is clean and in lower case, if it is one of the files of the machine that
// hold secrets; "": it is none.
func OfSystem(path string) string {
	for _, etc := range [...]string{"/etc", "/private/etc"} { // of macOS, whose /etc is a link
		rel, ok := below(etc, path)
		if !ok {
			continue
		}
		for _, name := range [...]string{"shadow", "gshadow", "sudoers", "master.passwd"} { // and their backups
			if strings.HasPrefix(rel, name) {
				return "Read(/" + etc + "/" + name + "*)"
			}
		}
		if rel, ok := below("ssh", rel); ok && strings.HasSuffix(rel, "_key") {
			return "Read(/" + etc + "/ssh/*_key)"
		}
	}
	if disk, rel, ok := strings.Cut(path, "/windows/system32/config/"); ok && isDisk(disk) {
		switch name, _, _ := strings.Cut(rel, "."); name {
		case "sam", "security", "system": // passwords and keys of the machine
			return "Read(//**/Windows/System32/config/" + name + ")"
		}
	}
	if rel, ok := below("/var/db/dslocal/nodes/default/users", strings.TrimPrefix(path, "/private")); ok && rel != "" {
		return "Read(//var/db/dslocal/nodes/default/users/*)" // passwords of macOS
	}
	if rel, ok := below("/proc", path); ok {
		switch name := rel[strings.LastIndexByte(rel, '/')+1:]; name {
		case "environ", "mem", "maps":
			return "Read(//proc/**/" + name + ")"
		}
	}
	return ""
}

// isDisk says whether a path is where a disk of Windows begins: c:, or as WSL mounts it.
func isDisk(path string) bool {
	letter, drive := strings.CutSuffix(strings.TrimPrefix(path, "/"), ":")
	if !drive {
		letter, drive = strings.CutPrefix(path, "/mnt/")
	}
	return path == "" || drive && len(letter) == 1
}

func below(dir, path string) (rel string, ok bool) {
	return strings.CutPrefix(path, dir+"/")
}
