package confine

import (
	"os"
	"path/filepath"
)

// python lets `pip install` outside of a virtual environment install into the private caches, where the system's
// directories are read-only: it takes the user's base then. What the person has there stays in sight, by a file that
// names it. A base that the person has chosen stays.
func (c *Confiner) python(cache string) (env []string, bin string) {
	if value(c.env(), "PYTHONUSERBASE") != "" {
		return nil, ""
	}
	base := filepath.Join(cache, "python")
	if c.o.Home != "" && c.o.Personal {
		own, _ := filepath.Glob(filepath.Join(globEscape(c.o.Home), ".local", "lib", "python*", "site-packages"))
		for _, packages := range own {
			namePackages(cache, packages)
		}
	}
	return []string{"PYTHONUSERBASE=" + base}, filepath.Join(base, "bin")
}

// namePackages makes one version of python look into packages, too. Commands may have made links of what is in cache,
// so nothing outside of it is written, and what is there stays.
func namePackages(cache, packages string) {
	root, err := os.OpenRoot(cache)
	if err != nil {
		return
	}
	defer func() { _ = root.Close() }() // a directory handle holds no data
	dir := filepath.Join("python", "lib", filepath.Base(filepath.Dir(packages)), "site-packages")
	if root.MkdirAll(dir, 0o700) != nil {
		return
	}
	f, err := root.OpenFile(filepath.Join(dir, "codehand-home.pth"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return // it is there
	}
	_, _ = f.WriteString(packages + "\n") // without it python finds less
	_ = f.Close()
}
