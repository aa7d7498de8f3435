package permission

// protectedName returns the built-in name (as `.git/hooks/**`) that path falls under, at any depth; "": none. path has
// slashes and may be relative.
func protectedName(path string) string { return "" }

// secretName says whether one component of a path is the name of a secret, wherever it stands.
func secretName(component string) bool { return false }
