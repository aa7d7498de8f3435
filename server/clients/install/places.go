package install

import (
	"os"
	"path"
	"path/filepath"
	"strings"

	"codehand/server/clients"
)

// Places tells where the user's files are. Paths are those of the system GOOS; which files are touched is decided by
// Root, so that a test on Linux can try the paths of all systems.
type Places struct {
	GOOS    string              // as runtime.GOOS
	Home    string              // of the user, absolute
	Env     func(string) string // as os.Getenv
	Project string              // absolute directory whose files count, too; "": none
	Root    string              // before all paths, without the colon of a drive; "": the real ones
	Command string              // absolute path of this program, whose entries are ours; "": they are by name alone
	State   string              // our own directory, as it is on the disk: locks, and notes of what was written
}

// real is the path on the disk of a path as people see it.
func (p Places) real(shown string) string {
	if p.Root == "" {
		return filepath.FromSlash(shown)
	}
	return filepath.Join(p.Root, filepath.FromSlash(strings.ReplaceAll(p.slashed(shown), ":", "")))
}

// slashed is a path with slashes.
func (p Places) slashed(shown string) string {
	if p.GOOS == "windows" {
		return strings.ReplaceAll(shown, `\`, "/")
	}
	return shown
}

// join joins elements, written with slashes, as the system writes them.
func (p Places) join(elements ...string) string {
	for i, e := range elements {
		elements[i] = p.slashed(e)
	}
	joined := path.Join(elements...)
	if p.GOOS == "windows" && strings.HasPrefix(elements[0], "//") {
		joined = "/" + joined // \\server\share
	}
	if p.GOOS == "windows" {
		return strings.ReplaceAll(joined, "/", `\`)
	}
	return joined
}

// isAbs says whether a path is absolute on the system.
func (p Places) isAbs(shown string) bool {
	if p.GOOS == "windows" {
		return len(shown) > 2 && shown[1] == ':' || strings.HasPrefix(shown, `\\`)
	}
	return strings.HasPrefix(shown, "/")
}

// expand makes a path of one that begins with the name of a directory. "": the place does not exist on this system, or
// nothing says where it is.
func (p Places) expand(written string) string {
	if config := p.Env("XDG_CONFIG_HOME"); p.GOOS != "darwin" && p.GOOS != "windows" && p.isAbs(config) {
		if rest, ok := strings.CutPrefix(written, "~/.config/"); ok {
			return p.join(config, rest)
		}
	}
	for name, value := range map[string]string{
		"~": p.Home, "%USERPROFILE%": p.Home, "%APPDATA%": p.Env("APPDATA")} {
		if rest, ok := strings.CutPrefix(written, name); ok && p.isAbs(value) {
			return p.join(value, rest)
		}
	}
	return ""
}

// userFiles are the paths where a client's own file may be, in the order in which they count.
func (p Places) userFiles(s clients.Snippet) []string {
	usual := s.Files.On(p.GOOS)
	var all []string
	if dir := p.Env(s.Moved); s.Moved != "" && p.isAbs(dir) {
		all = append(all, p.join(dir, path.Base(p.slashed(usual))))
	}
	for _, f := range append([]clients.Files{s.Files}, s.Other...) {
		if at := p.expand(f.On(p.GOOS)); at != "" {
			all = append(all, at)
		}
	}
	return all
}

// projectFiles are likewise those of the project; none: the client has none, or there is no project.
func (p Places) projectFiles(s clients.Snippet) []string {
	var all []string
	for _, f := range append([]clients.Files{s.Files}, s.Other...) {
		if p.Project != "" && f.Project != "" {
			all = append(all, p.join(p.Project, f.Project))
		}
	}
	return all
}

// first is the path that counts: the first one that is there; else the first one whose directory is there; else the
// first. "": there is none. A variable that moves a directory is obeyed, whether or not the file is there.
func (p Places) first(s clients.Snippet, files []string) string {
	if len(files) == 0 {
		return ""
	}
	if v := s.Moved; v != "" && p.isAbs(p.Env(v)) && strings.HasPrefix(files[0], p.join(p.Env(v))) {
		return files[0]
	}
	for _, at := range files {
		if p.exists(at) {
			return at
		}
	}
	for _, at := range files {
		if p.exists(p.dir(at)) {
			return at
		}
	}
	return files[0]
}

// dir is the directory of a path.
func (p Places) dir(shown string) string { return p.join(shown, "..") }

// exists says whether something has the name, be it a link that leads nowhere.
func (p Places) exists(shown string) bool {
	_, err := os.Lstat(p.real(shown))
	return err == nil
}
