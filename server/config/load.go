package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Sources are what a Config is made from. Nothing else is looked at, so a test needs no real environment.
type Sources struct {
	Serve bool // the command is serve: ROOT arguments are templates, and some defaults are other ones
	// ROOT arguments; they win over every other source of roots, or of principals.default.roots
	Roots   []string
	Flags   map[string]string // by flag as in Setting.Flag, with or without its dashes
	Env     []string          // NAME=value, as os.Environ
	Home    string            // absolute; "": from Env
	WorkDir string            // absolute; what relative paths in arguments, flags and environment start at
	// the operator's file, which must exist then; "": the platform's place, where it may be missing
	UserFile string
	// ManagedFile is the file of the machine's administrator, as Process finds it; "": none. It stands above
	// everything.
	ManagedFile string
	managedBy   int // the user that it must belong to; 0, but in tests

	ProjectDir string // whose .codehand/config.toml may narrow; "": each root

	Rootless bool // the command uses no file of a workspace: it may start anywhere, and no project file counts
}

// projectFile is where a project keeps its settings, below its directory.
const projectFile = ".codehand/config.toml"

// Process returns the Sources of this process, without arguments and flags. With an error only WorkDir is missing,
// which a Rootless command can do without.
func Process() (Sources, error) {
	src := Sources{Env: os.Environ(), ManagedFile: managedFile()}
	var err error
	if src.WorkDir, err = os.Getwd(); err != nil {
		return src, fmt.Errorf("working directory: %w", err)
	}
	return src, nil
}

// Load makes the Config: the administrator's file before flags before environment before project files before the
// user's file before defaults. Project files narrow whatever the others say. The error is Problems: all that is wrong,
// not the first thing. Warnings come with an error, too.
func Load(src Sources) (Config, []Warning, error) {
	l := loader{src: src, env: environment(src.Env)}
	l.config = defaults()
	l.table = table(&l.config)
	l.config.Web.Search.lookup = variables(l.env)
	l.config.Tools.Agent.API.lookup = variables(l.env)
	l.config.origins, l.config.typed = map[string]string{}, map[string]string{}
	for _, s := range l.table {
		l.config.origins[s.key] = byDefault
	}
	l.places()
	l.serveDefaults()
	l.userFile()
	l.environment()
	l.flags()
	l.managedFile()
	l.auto()
	l.holdManaged()
	l.together()
	checkAgent(&l)
	checkMounts(&l)
	checkLanguageServers(&l)
	l.stateDir()
	mode := l.config.Permissions.Mode
	if src.Rootless {
		l.config.Roots = nil
	} else {
		l.workspaces()
	}
	l.session()
	l.bypass()
	l.serveModes(l.managed.fixed[modeKey] || l.config.Permissions.Mode != mode)
	if len(l.problems) > 0 {
		return Config{}, l.warnings, l.problems
	}
	return l.config, l.warnings, nil
}

// workspaces decides which directories sessions may use, and applies the project files in them.
func (l *loader) workspaces() {
	l.roots()
	l.additionalDirs()
	plans, from := l.config.Plan.Directory, l.config.origins["plan.directory"]
	l.projects()
	l.auto()
	l.planDirectory(plans, from)
	l.keepApart()
}

// A loader is one Load.
type loader struct {
	src      Sources
	env      map[string]string
	config   Config
	table    []setting // bound to config
	managed  managed
	problems Problems
	warnings []Warning
}

// byDefault is the origin of a value that is not set.
const byDefault = "default"

func environment(list []string) map[string]string {
	env := map[string]string{}
	for _, entry := range list {
		name, value, _ := strings.Cut(entry, "=")
		if runtime.GOOS == "windows" { // where SystemRoot and SYSTEMROOT are the same
			name = strings.ToUpper(name)
		}
		env[name] = value
	}
	return env
}

// variables looks up in an environment; "": a variable is not set.
func variables(env map[string]string) func(name string) string {
	return func(name string) string {
		if runtime.GOOS == "windows" {
			name = strings.ToUpper(name)
		}
		return env[name]
	}
}

// places fills in the directories of this user.
func (l *loader) places() {
	c := &l.config
	if c.WorkDir = l.src.WorkDir; c.WorkDir != "" {
		c.WorkDir = filepath.Clean(c.WorkDir)
	}
	c.Home = l.src.Home
	for _, name := range []string{"HOME", "USERPROFILE"} {
		if c.Home == "" && filepath.IsAbs(l.env[name]) {
			c.Home = l.env[name]
		}
	}
	if c.Home != "" {
		c.Home = Canonical(filepath.Clean(c.Home)) // rules are compared with canonical paths
	}
	c.ConfigHome = l.base("XDG_CONFIG_HOME", ".config")
}

// base is a directory that the environment may name, with its default below the home directory; "" if neither is
// known. The XDG rules say that a relative value is ignored.
func (l *loader) base(name, below string) string {
	if dir := l.env[name]; filepath.IsAbs(dir) {
		return filepath.Clean(dir)
	}
	if l.config.Home == "" {
		return ""
	}
	return filepath.Join(l.config.Home, filepath.FromSlash(below))
}

// userFilePath is the platform's place for the operator's file; "": none.
func (l *loader) userFilePath() string {
	var dir string
	switch runtime.GOOS {
	case "windows":
		dir = l.base("APPDATA", "AppData/Roaming")
	case "darwin":
		dir = l.base("", "Library/Application Support")
	default:
		dir = l.config.ConfigHome
	}
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, "codehand", "config.toml")
}

func (l *loader) userFile() {
	path, asked := l.src.UserFile, l.src.UserFile != ""
	if asked {
		path = l.join(path)
	} else if path = l.userFilePath(); path == "" {
		return
	}
	l.config.Permissions.UserFile = path
	data, err := readUserFile(path)
	switch {
	case err != nil:
		l.problems.add(path, err.Error())
	case data == nil && asked:
		l.problems.add(path, "there is no such file")
	case data != nil:
		l.config.Files = append(l.config.Files, path)
		l.file(path, data)
	}
}

// file applies all entries of the operator's file.
func (l *loader) file(path string, data []byte) {
	entries, err := parse(path, data)
	if err != nil {
		l.fail(err)
		return
	}
	for _, e := range entries {
		in := input{raw: e.raw, origin: e.origin, lines: e.lines, home: l.config.Home, file: true}
		switch s := l.find(e.key); {
		case named(e.path):
			l.principal(e, in)
		case mountPath(e.path):
			l.mount(e, in)
		case lspPath(e.path):
			l.languageServer(e, in)
		case hookArray(e.path):
			l.hook(e, in)
		case issuerArray(e.path):
			readIssuer(l, e, in)
		case s != nil:
			l.set(*s, in)
		default:
			l.problems.add(e.origin, notThere(e))
		}
	}
}

func (l *loader) fail(err error) {
	if p, ok := errors.AsType[Problem](err); ok {
		l.problems.add(p.Origin, p.Text)
		return
	}
	l.problems.add("", err.Error())
}

func (l *loader) find(key string) *setting {
	i := slices.IndexFunc(l.table, func(s setting) bool { return s.key == key })
	if i < 0 {
		return nil
	}
	return &l.table[i]
}

// set stores a value, or notes what is wrong with it.
func (l *loader) set(s setting, in input) {
	if err := s.at.set(in); err != nil {
		l.refuse(s.key, in.origin, err)
		return
	}
	l.config.origins[s.key] = in.origin
}

// refuse notes what is wrong with the value of key.
func (l *loader) refuse(key, origin string, err error) {
	problems, ok := errors.AsType[Problems](err) // one for each entry of a list
	if !ok {
		problems = Problems{{Origin: origin, Text: err.Error()}}
	}
	for _, p := range problems {
		l.problems.add(p.Origin, key+": "+p.Text)
	}
}

func (l *loader) join(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(l.config.WorkDir, path)
}
