package sandbox

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// EnvOptions say what an environment is made of.
type EnvOptions struct {
	Roots       []string // PATH entries below these are left out
	Temp        string   // TMPDIR
	Allow       []string // further names or NAME_* the operator passes on
	AllowSecret []string // likewise; only these may sound like a secret (TOKEN, KEY …) or hold one
	Withhold    []string // names that are never passed: they hold keys of the operator
	Personal    bool     // commands are those of the person whose environment this is: agents pass, too
	Display     bool     // and so does the display
}

// passed are the server's variables that a command gets.
var passed = []string{
	"HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "LC_*", "TZ",
	"JAVA_HOME", "GOROOT", "GOPATH", "GOPRIVATE", "GONOSUMDB", "GONOPROXY", "GOSUMDB", "GOPROXY", "GOFLAGS",
	"GOTOOLCHAIN", "GOEXPERIMENT", "CGO_ENABLED", "NODE_ENV", "CI", "PYTHONPATH",
	"NVM_DIR", "PYENV_ROOT", "VIRTUAL_ENV", "CONDA_PREFIX", "RUSTUP_HOME", "SDKMAN_DIR", "ANDROID_HOME",
	"XDG_DATA_HOME", "XDG_CONFIG_HOME",
	// how builds and programs that are being developed are told what to do
	"GOOS", "GOARCH", "GODEBUG", "GOMAXPROCS", "GOWORK", "RUST_BACKTRACE", "RUST_LOG", "RUSTFLAGS", "CC", "CXX",
	"CFLAGS", "CXXFLAGS", "LDFLAGS", "MAKEFLAGS", "PKG_CONFIG_PATH", "CMAKE_PREFIX_PATH", "PYTHONUNBUFFERED",
	"PYTHONDONTWRITEBYTECODE", "DJANGO_SETTINGS_MODULE", "FLASK_APP", "FLASK_ENV", "RAILS_ENV", "RACK_ENV", "APP_ENV",
	"DOTNET_ROOT", "VOLTA_HOME", "PNPM_HOME", "BUN_INSTALL",
	"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy",
	// without these nothing is reached behind a company's proxy
	"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "PIP_CERT",
	"AWS_CA_BUNDLE", "CARGO_HTTP_CAINFO", "GIT_SSL_CAINFO", "NIX_SSL_CERT_FILE",
	"PIP_FIND_LINKS", "PIP_NO_INDEX", "PIP_DEFAULT_TIMEOUT", "PIP_DISABLE_PIP_VERSION_CHECK",
	"PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_TRUSTED_HOST", "UV_INDEX_URL", "UV_DEFAULT_INDEX",
	"npm_config_registry", "NPM_CONFIG_REGISTRY", "YARN_NPM_REGISTRY_SERVER",
}

// accounts say which account and which machine of the person is meant: names, and paths of files that commands do not
// see. They pass where commands are the person's own.
var accounts = []string{"KUBECONFIG", "AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "DOCKER_HOST"}

// passedWindows are those without which programs on Windows do not start or find nothing. Letter case does not count.
var passedWindows = []string{
	"SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "PROGRAMFILES", "PROGRAMFILES(X86)", "PROGRAMW6432",
	"COMMONPROGRAMFILES", "PROGRAMDATA", "ALLUSERSPROFILE", "PUBLIC", "USERNAME", "USERDOMAIN", "COMPUTERNAME",
	"USERPROFILE", "HOMEDRIVE", "HOMEPATH", "APPDATA", "LOCALAPPDATA", "OS", "NUMBER_OF_PROCESSORS",
	"PROCESSOR_ARCHITECTURE",
}

// personal are the variables by which programs find the agents of the person at the machine. The session bus is none:
// whoever reaches it has what is outside of the sandbox do anything (systemd-run --user, the keyring).
var personal = []string{"SSH_AUTH_SOCK", "GPG_TTY", "XDG_*"}

// display are those by which they find the display, whose windows a program can read and type into.
var display = []string{"DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY"}

// never are passed whatever is configured, but for those of personal on stdio: they make programs load or run something
// else, change how bash reads a command, or lead to agents and daemons with rights of their own.
var never = []string{
	"LD_*", "DYLD_*", "BASH_ENV", "ENV", "BASH_FUNC_*", "IFS", "PS4", "PROMPT_COMMAND", "SHELLOPTS", "BASHOPTS",
	"CDPATH", "GLOBIGNORE", "GIT_*", "SSH_AUTH_SOCK", "GPG_AGENT_INFO", "DOCKER_HOST", "CODEHAND_*", "CODEHAND",
}

// secretWords in a name mean that its value may be one.
var secretWords = []string{"KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "AUTH"}

// ours returns what we set, always.
func ours() map[string]string {
	return map[string]string{
		"SHELL": "/bin/bash", "TERM": "dumb", "NO_COLOR": "1", "PAGER": "cat", "GIT_PAGER": "cat", "MANPAGER": "cat",
		"GIT_EDITOR": "true", "GIT_TERMINAL_PROMPT": "0", "DEBIAN_FRONTEND": "noninteractive", "CODEHAND": "1",
	}
}

// Interactive returns the environment of a command with a terminal that somebody types into: env, made by Environ,
// without what keeps programs from asking. Pagers stay off: an output that waits for a key helps nobody.
func Interactive(env []string) []string {
	env = slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		name, value, _ := strings.Cut(entry, "=")
		return ours()[name] == value &&
			slices.Contains([]string{"TERM", "GIT_EDITOR", "GIT_TERMINAL_PROMPT", "DEBIAN_FRONTEND"}, name)
	})
	return append(env, "TERM=xterm-256color")
}

// variable is a name that every shell can use; an exported function has another form.
var variable = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`) })

// credentials is what a value with user:password@ looks like, in an URL or without a scheme. An URL with anything
// before an @ in its host counts, too: a token is often given as the user alone.
var credentials = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`://[^\s/?#]*@|://[^\s/:?#]+:[^\s@]*@|(?:^|[\s,;=])[^\s/@:]+:[^\s/@]+@`)
})

// userinfo is the user of an URL, with what may be a password. The URL is passed on without it.
var userinfo = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`://[^\s/?#@]*@`) })

const onWindows = runtime.GOOS == "windows"

// WindowsDirs returns where Windows keeps installed programs and itself; "": unknown, or another system.
func WindowsDirs() (programs, system string) {
	if !onWindows {
		return "", ""
	}
	return os.Getenv("ProgramFiles"), os.Getenv("SystemRoot")
}

// Environ builds the environment of a command from nothing: an allow-list of the server's own variables, and ours. It
// is sorted.
func Environ(o EnvOptions) []string {
	env := map[string]string{}
	for _, entry := range os.Environ() {
		name, value, ok := strings.Cut(entry, "=")
		pass := passes(name, o) || onWindows && slices.Contains(passedWindows, strings.ToUpper(name)) &&
			!withheld(name, o.Withhold)
		if ok && pass && !Matches(o.AllowSecret, name) {
			value = userinfo().ReplaceAllString(value, "://")
			pass = !credentials().MatchString(value)
		}
		if ok && pass {
			env[name] = value
		}
	}
	maps.Copy(env, ours())
	env["PATH"] = cleanPath(os.Getenv("PATH"), o.Roots)
	if o.Temp != "" {
		env["TMPDIR"] = o.Temp
		if onWindows {
			env["TEMP"], env["TMP"] = o.Temp, o.Temp
		}
	}
	list := make([]string, 0, len(env))
	for name, value := range env {
		list = append(list, name+"="+value)
	}
	slices.Sort(list)
	return list
}

// Outside returns the whole environment of this process, for a program of the person's that runs outside on behalf of a
// command: without the variables that drop names, and without the entries of PATH where a command could have put a
// program, which are those below written.
func Outside(written []string, drop func(name string) bool) []string {
	env := slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return name == "PATH" || drop(name)
	})
	return append(env, "PATH="+cleanPath(os.Getenv("PATH"), written))
}

// passes decides by name alone.
func passes(name string, o EnvOptions) bool {
	switch {
	case !variable().MatchString(name) || withheld(name, o.Withhold):
		return false
	case o.Personal && (slices.Contains(personal, name) || slices.Contains(accounts, name)),
		o.Personal && o.Display && slices.Contains(display, name):
		return true // SSH_AUTH_SOCK and XAUTHORITY only sound like secrets
	case slices.Contains(passed, name): // GIT_SSL_CAINFO names a file only
		return true
	case Matches(never, name):
		return false
	case Matches(o.AllowSecret, name):
		return true
	case SoundsSecret(name):
		return false
	}
	return Matches(passed, name) || Matches(o.Allow, name) || o.Personal && Matches(personal, name)
}

// withheld compares whole names, without letter case where the system does.
func withheld(name string, names []string) bool {
	return slices.ContainsFunc(names, func(n string) bool {
		return n == name || onWindows && strings.EqualFold(n, name)
	})
}

// SoundsSecret says that the value of a variable of that name may be a secret.
func SoundsSecret(name string) bool {
	upper := strings.ToUpper(name)
	return slices.ContainsFunc(secretWords, func(word string) bool { return strings.Contains(upper, word) })
}

// Never says that no setting passes a variable of that name on.
func Never(name string) bool { return !variable().MatchString(name) || Matches(never, name) }

// Withheld returns the names of this process's variables that env, made by Environ, lacks, sorted. Those that a shell
// sets itself and our own are not among them.
func Withheld(env []string) []string {
	_, withheld := sorted(env)
	return withheld
}

// Passed returns the names of this process's variables that env, made by Environ, has, perhaps with another value:
// without passwords, or with a directory of a command's own. They are sorted, without those of Withheld's exceptions.
func Passed(env []string) []string {
	passed, _ := sorted(env)
	return passed
}

// sorted tells the names of this process's variables that env has from the others.
func sorted(env []string) (in, out []string) {
	has := map[string]bool{}
	for _, entry := range env {
		name, _, _ := strings.Cut(entry, "=")
		has[name] = true
	}
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		switch {
		case !variable().MatchString(name), strings.HasPrefix(name, "CODEHAND"),
			slices.Contains([]string{"PWD", "OLDPWD", "SHLVL", "_"}, name):
		case has[name]:
			in = append(in, name)
		default:
			out = append(out, name)
		}
	}
	slices.Sort(in)
	slices.Sort(out)
	return in, out
}

// Matches compares name with NAME and PREFIX_*. A lone * matches nothing: it would pass everything on.
func Matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		prefix, wild := strings.CutSuffix(pattern, "*")
		return name == pattern || wild && prefix != "" && strings.HasPrefix(name, prefix)
	})
}

// defaultPath is used if nothing of the server's PATH is left.
const defaultPath = "/usr/local/bin:/usr/bin:/bin"

// cleanPath leaves out of a PATH each entry where another user could put a program: entries that are empty, relative,
// missing, no directory, writable for everybody, or inside a root, by their spelling or by their destination.
func cleanPath(path string, roots []string) string {
	var inside []string
	for _, root := range roots {
		inside = append(inside, root)
		if real, err := filepath.EvalSymlinks(root); err == nil {
			inside = append(inside, real)
		}
	}
	var kept []string
	for _, entry := range filepath.SplitList(path) {
		real, ok := safeEntry(entry)
		if !ok || slices.Contains(kept, entry) || below(inside, entry) || below(inside, real) {
			continue
		}
		kept = append(kept, entry)
	}
	if len(kept) == 0 {
		return defaultPath
	}
	return strings.Join(kept, string(filepath.ListSeparator))
}

func safeEntry(entry string) (real string, ok bool) {
	if !filepath.IsAbs(entry) {
		return "", false
	}
	real, err := filepath.EvalSymlinks(entry)
	if err != nil {
		return "", false
	}
	info, err := os.Stat(real)
	const worldWritable = 0o002
	return real, err == nil && info.IsDir() && info.Mode().Perm()&worldWritable == 0
}

// below reports whether path is one of dirs or inside one.
func below(dirs []string, path string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool {
		rel, err := filepath.Rel(dir, path)
		return err == nil && filepath.IsLocal(rel)
	})
}
