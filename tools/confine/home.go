package confine

import (
	"os"
	"path/filepath"
	"slices"

	"codehand/tools/guarded"
)

// toolchainVariables name directories of programs and of what they need.
var toolchainVariables = []string{
	"JAVA_HOME", "GOROOT", "GOPATH", "NVM_DIR", "PYENV_ROOT", "VIRTUAL_ENV", "CONDA_PREFIX", "RUSTUP_HOME",
	"SDKMAN_DIR", "ANDROID_HOME",
}

// ofHome is what commands may read of a home directory: settings without secrets, and what programs are installed to.
var ofHome = []string{
	".gitconfig", ".config/git/config", ".config/git/ignore", ".config/git/attributes", ".ssh/known_hosts",
	".ssh/config", "go/pkg/mod", "go/bin", ".cargo/bin", ".cargo/registry", ".cargo/config.toml", ".rustup", ".nvm",
	".pyenv", ".sdkman", ".local/lib", ".local/share/pipx", ".local/share/uv", ".local/share/mise",
	".local/share/fnm", ".local/share/pnpm", ".bun/bin", ".deno/bin", ".dotnet",
}

// plain reports whether an absolute path is there and has no link on its way: a profile has no other.
func plain(path string) bool {
	real, err := filepath.EvalSymlinks(path)
	return err == nil && filepath.IsAbs(path) && real == path
}

// toolchains returns what commands may read besides the system's directories and the roots, so that the programs of env
// run and know who their user is. What has a link on its way is none of it: a command may have put the link there, and
// those of the system lead to what every command reads.
func toolchains(o Options, env []string) []string {
	home := o.Home
	var found []string
	add := func(path string) {
		path = filepath.Clean(path)
		own := o.State != "" && (within(o.State, path) || within(path, o.State)) || home != "" && within(home, path)
		if plain(path) && !ofSystem(path) && !own && !slices.Contains(found, path) &&
			(o.Personal || home == "" || !within(path, home)) {
			found = append(found, path)
		}
	}
	for _, dir := range filepath.SplitList(value(env, "PATH")) {
		add(dir)
		// A toolchain of its own has its libraries beside its programs; a bin of a home directory has the home there.
		up := filepath.Dir(filepath.Clean(dir))
		if filepath.Base(dir) == "bin" && up != home && filepath.Dir(up) != home && up != string(filepath.Separator) {
			add(up)
		}
	}
	for _, name := range toolchainVariables {
		for _, dir := range filepath.SplitList(value(env, name)) {
			add(dir)
		}
	}
	if home != "" && o.Personal {
		for _, name := range ofHome {
			add(filepath.Join(home, name))
		}
	}
	return found
}

// systemDirs are what every command reads.
var systemDirs = []string{"/usr", "/bin", "/sbin", "/lib", "/lib64", "/opt", "/etc", "/nix/store"}

// ofSystem says whether every command can read path, which has no links, as one of the system's.
func ofSystem(path string) bool {
	return slices.ContainsFunc(systemDirs, func(dir string) bool { return within(path, dir) })
}

// misowned are files of the system that stop a program because of their owner. In the user namespace of a command that
// is not root's, files of root belong to nobody, and ssh starts nowhere with such a file in the directory (OpenSSH,
// readconf.c: "Bad owner or permissions"), as systemd and Fedora have some. It starts without the directory.
func misowned(user int) []string {
	const dir = "/etc/ssh/ssh_config.d"
	if user <= 0 || !exists(dir) { // -1: the system has no such numbers
		return nil
	}
	return []string{dir}
}

// secretsOf returns the secrets of a home directory that lies in one of roots, or holds one: a person who gives a home
// as a root does not mean its keys. A root inside of one stays readable.
func secretsOf(home string, roots []string) []string {
	if home == "" || !slices.ContainsFunc(roots, func(root string) bool { return within(home, root) }) {
		return nil
	}
	entries, err := os.ReadDir(home)
	if err != nil {
		return nil
	}
	var found []string
	for _, e := range entries {
		path := filepath.Join(home, e.Name())
		if (guarded.Secret(e.Name()) || e.Name() == ".config") &&
			!slices.ContainsFunc(roots, func(root string) bool { return within(root, path) }) {
			found = append(found, path)
		}
	}
	return found
}

// around returns what hides as much of hidden as it can without hiding any of keep: of a directory that holds some of
// it, what lies beside.
func around(hidden, keep []string) []string {
	var out []string
	for _, path := range hidden {
		if slices.ContainsFunc(keep, func(k string) bool { return k != "" && path == k }) {
			continue
		}
		if !slices.ContainsFunc(keep, func(k string) bool { return k != "" && within(k, path) }) {
			out = append(out, path)
			continue
		}
		entries, err := os.ReadDir(path)
		if err != nil {
			continue // nothing is there
		}
		below := make([]string, len(entries))
		for i, e := range entries {
			below[i] = filepath.Join(path, e.Name())
		}
		out = append(out, around(below, keep)...)
	}
	return out
}
