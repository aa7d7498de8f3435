package install

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"codehand/server/clients"
)

// stray refuses a file of the project that a link leads out of it, or into its `.git`: whoever wrote a repository that
// was cloned chose where the link leads. A link of the person's own files is followed, wherever it leads.
func stray(p Places, at string) error {
	if !ofProject(p, at) {
		return nil
	}
	project := p.real(p.Project)
	rest, err := filepath.Rel(project, p.real(at))
	if err != nil {
		return &RefusedError{File: at, err: err}
	}
	on := project
	for _, name := range strings.Split(rest, string(filepath.Separator)) {
		on = filepath.Join(on, name)
		info, err := os.Lstat(on)
		if err != nil {
			//nolint:nilerr // the reader says what is wrong, and what is missing is made where it belongs
			return nil
		}
		if info.Mode()&(fs.ModeSymlink|fs.ModeIrregular) == 0 { // a junction of Windows is irregular
			continue
		}
		if err := leaves(project, on); err != nil {
			return &RefusedError{File: at, err: err}
		}
	}
	return nil
}

// leaves says why a link is not followed; nil: it leads to something in the project.
func leaves(project, link string) error {
	top, err := filepath.EvalSymlinks(project)
	if err != nil {
		return err
	}
	target, err := filepath.EvalSymlinks(link)
	if err != nil { // it leads nowhere, and writing would make what it names
		if target, err = os.Readlink(link); err != nil {
			return err
		}
		return fmt.Errorf("%s is a link to %s, where nothing is; remove the link first", link, target)
	}
	within, err := filepath.Rel(top, target)
	first, _, _ := strings.Cut(within, string(filepath.Separator))
	if err == nil && filepath.IsLocal(within) && first != ".git" {
		return nil
	}
	return fmt.Errorf("%s is a link of the project to %s, which is no file of it; replace the link by a file, or "+
		"install for yourself without --project", link, target)
}

// ofProject says whether a file belongs to the project, and not to the person whose home directory lies in it.
func ofProject(p Places, at string) bool {
	if p.Project == "" || !strings.HasPrefix(p.slashed(at), strings.TrimSuffix(p.slashed(p.Project), "/")+"/") {
		return false
	}
	for _, s := range clients.Local(clients.Launch{}) {
		for _, own := range append(p.userFiles(s), p.expand(s.Twin.On(p.GOOS)), p.exclusiveFile(s.ID, false)) {
			if own == at {
				return false
			}
		}
	}
	return true
}
