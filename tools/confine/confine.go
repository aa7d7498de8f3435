package confine

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"codehand/filestate/owner"
	"codehand/tools/confine/look"
	"codehand/tools/credentials"
	"codehand/tools/git"
	"codehand/tools/permission"
	"codehand/tools/sandbox"
	"codehand/tools/web/guard"
)

// Options are what all commands of one principal have in common.
type Options struct {
	Places                 // of settings
	Protected       Names  // names that commands do not change unless a person allowed it
	Whose                  // commands they are
	State           string // the server's own directory, which holds no toolchain; "": it has none
	Caches          string // private caches are directories below it; "": none
	Network         Network
	Off             bool                          // commands are not confined
	Proven          func() sandbox.Report         // what this machine does; it may take a moment
	Known           func() (sandbox.Report, bool) // the same, as far as it is known without waiting
	Needed          func() sandbox.Level          // below it no command runs
	AutoAllow       bool                          // a command at level 3 needs no question
	Credentials     string                        // mode of the desk for passwords of git; "": there is none
	CredentialSites []string                      // besides those of remotes, as credentials.Site returns them
}

// Places are what settings say of paths, all absolute.
type Places struct {
	Readable, Writable, Hide []string // the operator's
	// Named are further paths, that commands must not change where they could: from them the server opens places to
	// commands, or starts programs outside of the sandbox
	Named []Named
}

// A Named is a path that a setting names.
type Named struct{ Path, By string }

// Whose are commands, and where these people keep what is theirs.
type Whose struct {
	Owner    string   // the principal, who has private caches
	Roots    []string // of the principal, canonical; a session may have a part of them
	Home     string   // of who started the server; "": unknown
	Personal bool     // commands are those of the person whose home that is
	// Apart are directories of others and of the server's, of which commands see nothing but what is theirs, whatever
	// makes something around readable; nil: there are none. It may take no time.
	Apart func() []string
}

// A Network is what commands that write may connect to.
type Network struct {
	sandbox.Network

	Domains   []guard.Domain // of NetworkList
	Addresses guard.Options  // likewise
}

// Names tells protected names of files from others.
type Names interface {
	Find(rel string) string // the name that a path below a root falls under; "": none
	Texts() []string
}

// A Confiner makes profiles. It is safe for concurrent use.
type Confiner struct {
	o    Options
	self owner.Hand      // who names notes about commands that run
	env  func() []string // of commands; where its programs are may be read
	home func() []string // what commands may read of the home directory

	looker look.Looker
	untold atomic.Bool // a model was told where it works before it was known how far commands are confined

	mu      sync.Mutex
	commons map[string]string   // repositories of linked work trees outside of them, by root; "": it is none
	indexes map[string]index    // of git, by their paths
	places  map[string][]string // of repositories, by root, as it was last looked at
	shared  map[string]int      // running commands with a copy of a file with git's configuration, by its path
}

// New returns a Confiner for commands with the environment env, which is asked for when the first one starts.
func New(o Options, env func() []string) *Confiner {
	c := &Confiner{
		o: o, env: env,
		self:    owner.Hand{Process: owner.ProcessOf(os.Getpid()), Host: owner.ThisHost()},
		home:    sync.OnceValue(func() []string { return toolchains(o, env()) }),
		commons: map[string]string{}, indexes: map[string]index{},
		places: map[string][]string{}, shared: map[string]int{},
	}
	for _, root := range o.Roots {
		c.common(root) // as it is before any command runs
	}
	return c
}

// common returns the repository of a linked work tree at root that lies outside of it; "": there is none. It is looked
// for once: later a command may have made what leads to it.
func (c *Confiner) common(root string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	found, known := c.commons[root]
	if !known {
		written := slices.Concat(c.o.Roots, c.o.Writable)
		if c.o.State != "" {
			written = append(written, c.o.State) // caches and temporary directories are there
		}
		found = git.LinkedCommon(root, written)
		c.commons[root] = found
	}
	if found == "" || gone(found) {
		return ""
	}
	return found
}

// Common returns the repository of a linked work tree that is a root of a principal and was one when the server
// started, where it lies outside of that root; "": there is none.
func (c *Confiner) Common(root string) string {
	if c == nil || !slices.Contains(c.o.Roots, root) {
		return ""
	}
	return c.common(root)
}

// commons returns the repositories of linked work trees that a session has besides its roots.
func (u *Use) commons(c *Confiner) (all []string) {
	for _, root := range u.Roots {
		common := c.common(root)
		if common != "" && !slices.ContainsFunc(u.Roots, func(r string) bool { return within(common, r) }) {
			all = append(all, common)
		}
	}
	for _, repository := range u.Repositories {
		if exists(repository) && !slices.Contains(all, repository) {
			all = append(all, repository)
		}
	}
	return all
}

// A Use is what one command is about.
type Use struct {
	Roots    []string           // of its session, canonical
	Dir      string             // where it begins, canonical; "": in the first root
	Rules    *permission.Policy // of its session
	ReadOnly bool               // it was proved to change nothing
	Readable []string           // what else its session may read: kept results, logs of jobs, skills
	Temp     string             // the session's temporary directory, which exists
	// Allowed are protected files that the decision about the command named, so that a person has allowed it
	Allowed []string
	// Removed are directories that the command may remove with all that is in them, also a repository: it does nothing
	// else, and a person has allowed it, or git looks at what would be lost
	Removed []string
	// Open are further directories that it may write, also where a protected name holds them; they exist
	Open []string
	// Repositories are those of linked work trees in Roots which lie outside of these, and which the session may change
	// in any case; without links
	Repositories []string
	// Configs lets the command change git's configuration in copies of its own. The caller then calls Command.Over, or
	// Command.Drop
	Configs bool
	// Ask puts a question of git's to the person while the command runs; nil: nobody can be asked. It counts with
	// Configs only
	Ask credentials.Asking
	// Background: it goes on beside what the person and other calls do, so neither what appears nor a link that leads
	// elsewhere is taken for its work
	Background bool
}

// profile says what a command may reach, which files with git's configuration and what git obeys are in it, and what
// the rules of its session come to. It takes out of u what these deny as a whole; not is what they deny.
func (c *Confiner) profile(u *Use) (p sandbox.Profile, found names, now ruled, not denied) {
	now = ruledNow(&c.looker, u.Rules, u.Roots)
	not = c.deniedBy(now, u.Roots)
	masked := c.apart(u.Roots)
	open := func(paths []string) []string { return not.but(beside(paths, masked, u.Roots)) }
	usual := func(paths []string) []string { return not.butUsual(beside(paths, masked, u.Roots)) }
	u.Roots, u.Open, u.Readable = not.but(u.Roots), not.but(u.Open), not.but(u.Readable)
	p = sandbox.Profile{
		Masked:   masked,
		Readable: slices.Concat(usual(c.home()), open(c.o.Readable), u.Readable),
		Hidden:   slices.Concat(not.rules, c.o.Hide, secretsOf(c.o.Home, u.Roots), misowned(os.Geteuid())),
	}
	if u.ReadOnly {
		p.Readable = append(p.Readable, u.Roots...)
		p.Hidden = around(p.Hidden, p.Readable)
		p.Readable = append(p.Readable, u.commons(c)...)
		if cache, inspected := c.cache(); cache != "" {
			p.Readable, p.Writable = append(p.Readable, cache), []string{inspected}
			p.Hidden = around(p.Hidden, []string{cache, inspected})
		}
		return p, names{}, now, not
	}
	p.Writable = slices.Concat(u.Roots, slices.DeleteFunc(open(c.o.Writable), gone), u.Open)
	if cache, _ := c.cache(); cache != "" {
		p.Writable = append(p.Writable, cache)
	}
	p.Temp, p.Network, p.Sockets = u.Temp, c.o.Network.Network, true
	protected, found, whole := c.protectedNames(*u)
	p.Protected, p.Unwatched = slices.Concat(now.Keep, protected), u.Background
	desktop := c.desktop()
	p.Readable = append(p.Readable, usual(desktop.paths)...)
	keep := slices.Concat(p.Readable, p.Writable, []string{u.Temp})
	for _, l := range desktop.links {
		missing := !exists(l.Path) && strictlyIn(l.Path, keep) // nothing to put the link on
		if !missing && len(usual([]string{l.Path})) > 0 && slices.Contains(p.Readable, l.Target) {
			p.Linked = append(p.Linked, l)
			keep = append(keep, l.Path)
		}
	}
	p.Hidden = around(p.Hidden, keep)
	for _, common := range u.commons(c) {
		p.Writable = append(p.Writable, common)
		in, ok := c.finder(nil).repositoryOf(common)
		whole = whole && ok
		found.configs = append(found.configs, in.configs...)
		p.Protected = append(p.Protected, in.found...)
		if !u.Background {
			p.Protected = append(p.Protected, in.missing...)
		}
	}
	p.Held = slices.DeleteFunc(not.but(c.o.Writable), func(dir string) bool { return !strictlyIn(dir, p.Writable) })
	for _, l := range c.namedIn(*u, p.Writable) {
		if now.by[l.path] == "" && (exists(l.path) || !u.Background) {
			p.Protected = append(p.Protected, l.path)
		}
		now.by[l.path] = l.by
	}
	for _, repository := range u.Repositories {
		p.Protected = append(p.Protected, otherTrees(repository, u.Roots)...)
	}
	if !whole {
		broken := permission.Rule{Text: "names that are protected", Origin: "permissions.protect"}
		now.Broken = append(now.Broken, broken)
	}
	found.configs = sorted(found.configs)
	return p, found, now, not
}

// A led is a file or directory in the roots that a setting names.
type led struct{ path, by string }

// namedIn returns what settings name where the command could change it, and what its session reads from there besides
// its roots, as skills of a person's to which a link leads. Where it led elsewhere, the next session would open that.
func (c *Confiner) namedIn(u Use, writable []string) (all []led) {
	for _, n := range c.o.Named {
		if strictlyIn(n.Path, writable) && !slices.Contains(writable, n.Path) {
			all = append(all, led{n.Path, n.By})
		}
	}
	for _, path := range u.Readable {
		if strictlyIn(path, u.Roots) {
			all = append(all, led{path, "it is a directory of skills or agents"})
		}
	}
	return all
}

// strictlyIn says whether a path lies below one of dirs.
func strictlyIn(path string, dirs []string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool { return path != dir && within(path, dir) })
}

// protectedIn returns what a root has of protected names.
func (f *finder) protectedIn(root string) (all names, whole bool) {
	all, whole = f.protectedNow(root)
	seen := map[string]bool{}
	add := func(file, top string) {
		more, ok := f.gitlinks(root, file, top, seen)
		all.add(more)
		whole = whole && ok
	}
	for _, dot := range all.gits {
		add(filepath.Join(dot, "index"), filepath.Dir(dot))
	}
	if place, ok := git.Find(root); ok { // one around the root, or of a linked work tree
		if dot := filepath.Join(place.Top, ".git"); !slices.Contains(all.gits, dot) && !slices.Contains(all.dots, dot) {
			all.obeyed = append(all.obeyed, f.obeyedBy(place.Dir, place.Common, place.Top)...)
		}
		add(filepath.Join(place.Dir, "index"), place.Top)
	}
	more, ok := f.led(root, all)
	all.add(more)
	whole = whole && ok
	f.keepPlaces(root, all.places())
	all.found, all.configs, all.missing = sorted(all.found), sorted(all.configs), sorted(all.missing)
	return all, whole
}

// led returns what repositories have of protected names to which a `.git` leads, or the commondir of one that is a
// directory, and which a look by their names does not find: git obeys them wherever they are. Those outside of the
// principal's roots are none of what commands change. root is without links.
func (f *finder) led(root string, all names) (more names, whole bool) {
	seen, whole := map[string]bool{}, true
	for _, dot := range all.places() {
		dir, common := f.leads(dot)
		more.obeyed = append(more.obeyed, f.obeyedFrom(dot, dir, common)...)
		for _, at := range []string{dir, common} {
			covered := func(git string) bool {
				below := func(name string) bool { return within(at, filepath.Join(git, name)) }
				return at == git || below("modules") || below("worktrees")
			}
			inside := func(top string) bool { return within(at, top) }
			if at == "" || seen[at] || !inside(root) && !slices.ContainsFunc(f.o.Roots, inside) ||
				slices.ContainsFunc(all.gits, covered) {
				continue
			}
			seen[at] = true
			found, ok := f.repositoryOf(at)
			more.add(found)
			whole = whole && ok
		}
	}
	return more, whole
}

// leads is git.Leads, also where what says it was shut.
func (f *finder) leads(dot string) (dir, common string) {
	defer f.peek(dot)()
	dir, common, ok := git.Leads(dot)
	if ok {
		defer f.peek(filepath.Join(dir, "commondir"))()
		dir, common, _ = git.Leads(dot)
	}
	return dir, common
}

// peek opens a file that this user shut, until done is called or the look is over: what it says counts also where a
// command opens it only later.
func (f *finder) peek(path string) (done func()) {
	if f.open != nil {
		f.open(path)
		return func() {}
	}
	was := sandbox.Unshut(path, path, 0o500)
	return func() {
		for _, s := range was {
			s.Again()
		}
	}
}

// repositoryOf returns what a repository has of protected names.
func (f *finder) repositoryOf(dir string) (all names, whole bool) {
	f.left = f.most(f.looker.Limit())
	return f.repositoryNow(dir)
}

// gone says that nothing is there.
func gone(path string) bool { return !exists(path) }

// protectedNames returns what exists of protected names in the roots, and those at their tops and in their repositories
// that do not exist, and what git obeys, but for what a person allowed. other has the files with git's configuration
// and all that git obeys. whole is false if there was too much to look at.
func (c *Confiner) protectedNames(u Use) (all []string, other names, whole bool) {
	whole = true
	for _, root := range u.Roots {
		found, ok := c.finder(nil).protectedIn(root)
		whole, other.configs = whole && ok, append(other.configs, found.configs...)
		other.obeyed = append(other.obeyed, found.obeyed...)
		all = append(all, found.found...)
		if !u.Background {
			all = slices.Concat(all, missing(root, c.o.Protected.Texts()), missingTop(root), found.missing)
			// the person's own git obeys what is there
			if c.o.Home != root && c.o.Home != "" && within(c.o.Home, root) {
				all = append(all, missing(c.o.Home, c.o.Protected.Texts())...)
			}
		}
	}
	for _, o := range other.obeyed {
		if exists(o.Path) || !u.Background {
			all = append(all, o.Path)
		}
	}
	// A name above a protected one, as the root, was not what a person was asked about.
	named := func(path string) bool {
		_, obeyed := other.obeyed.Find(path)
		return obeyed || slices.ContainsFunc(u.Roots, func(root string) bool {
			rel, err := filepath.Rel(root, path)
			return err == nil && filepath.IsLocal(rel) && c.o.Protected.Find(filepath.ToSlash(rel)) != ""
		})
	}
	removed := u.removed()
	all = slices.DeleteFunc(all, func(path string) bool {
		return slices.ContainsFunc(u.Allowed, func(a string) bool {
			return within(a, path) || within(path, a) && named(a)
		}) || slices.ContainsFunc(removed, func(dir string) bool { return within(path, dir) })
	})
	other.configs = slices.DeleteFunc(other.configs, func(path string) bool {
		return slices.ContainsFunc(removed, func(dir string) bool { return within(path, dir) })
	})
	return all, other, whole
}

// removed are the directories of Removed that hold no root, and what the repository in the roots keeps of those that
// are linked work trees.
func (u *Use) removed() (dirs []string) {
	below := func(dir string) bool {
		return !slices.ContainsFunc(u.Roots, func(root string) bool { return within(root, dir) }) &&
			slices.ContainsFunc(u.Roots, func(root string) bool { return within(dir, root) })
	}
	dirs = slices.DeleteFunc(slices.Clone(u.Removed), func(dir string) bool { return !below(dir) })
	for _, dir := range slices.Clone(dirs) {
		place, ok := git.Find(dir)
		linked := filepath.Dir(place.Dir) == filepath.Join(place.Common, "worktrees")
		if ok && place.Top == dir && linked && below(place.Dir) {
			dirs = append(dirs, place.Dir)
		}
	}
	return dirs
}

// Environ returns what a command with this profile gets besides its usual environment: of two values of a name the
// later one counts. full says that it runs at level 3, where its temporary directory is at /tmp.
func (c *Confiner) Environ(u Use, full bool) []string {
	if u.ReadOnly {
		return c.inspectEnv()
	}
	env := []string{"TMPDIR=" + u.Temp}
	if full {
		env = []string{"TMPDIR=/tmp"}
	}
	if c.o.Network.Network != sandbox.NetworkOn {
		for _, name := range personal {
			env = append(env, name+"=")
		}
	}
	if c.o.Network.Network == sandbox.NetworkOff {
		env = append(env, impatient...)
	}
	cache, _ := c.cache()
	if cache == "" {
		return env
	}
	for _, v := range cacheVars {
		env = append(env, v.name+"="+filepath.Join(cache, v.dir))
	}
	return slices.Concat(env, []string{"GOPROXY=" + c.goProxy()}, c.maven(cache), c.installed(cache))
}

// Modules lets a server that only reads have the modules of go that its user and the commands have: it copies what it
// needs into the cache of commands that only read, and goes to no network. nil: there are no private caches.
func (c *Confiner) Modules() []string {
	cache, inspected := c.cache()
	if cache == "" {
		return nil
	}
	from := []string{"file://" + filepath.ToSlash(filepath.Join(cache, "go-mod", "cache", "download"))}
	if own, _, found := strings.Cut(c.goProxy(), ","); found && strings.HasPrefix(own, "file://") {
		from = append(from, own)
	}
	return []string{"GOMODCACHE=" + filepath.Join(inspected, "go-mod"),
		"GOPROXY=" + strings.Join(append(from, "off"), ","), "GOPATH=" + filepath.Join(inspected, "go"),
		"GOWORK=", "GODEBUG="}
}

// installed lets commands install programs of their own, in the directory of the private caches, and find them behind
// all others: `go install`, `npm install -g`, `cargo install`, `gem install`, `pip install`, `pipx` and `uv tool`.
func (c *Confiner) installed(cache string) []string {
	in := func(parts ...string) string { return filepath.Join(append([]string{cache}, parts...)...) }
	env := []string{
		"GOPATH=" + in("go"), // with go's notes about sums of modules
		"PIPX_HOME=" + in("pipx"), "PIPX_BIN_DIR=" + in("bin"),
		"UV_TOOL_DIR=" + in("uv-tools"), "UV_TOOL_BIN_DIR=" + in("bin"), "COREPACK_HOME=" + in("corepack"),
	}
	path := []string{value(c.env(), "PATH"), in("go", "bin"), in("cargo", "bin"), in("bin")}
	// nvm refuses to work beside this variable
	if value(c.env(), "NVM_DIR") == "" && (c.o.Home == "" || !exists(filepath.Join(c.o.Home, ".nvm"))) {
		env, path = append(env, "npm_config_prefix="+in("npm-global")), append(path, in("npm-global", "bin"))
	}
	if more, bin := c.python(cache); bin != "" {
		env, path = append(env, more...), append(path, bin)
	}
	if value(c.env(), "GEM_HOME") == "" { // those of rvm and rbenv stay
		env, path = append(env, "GEM_HOME="+in("gems")), append(path, in("gems", "bin"))
	}
	return append(env, "PATH="+strings.Join(path, string(filepath.ListSeparator)))
}

// impatient makes programs say at once that they have no network. They would try again for 10 s (pip) to 70 s (npm).
var impatient = []string{
	"npm_config_fetch_retries=0", "PIP_RETRIES=0", "CARGO_NET_RETRY=0", "UV_HTTP_RETRIES=0", "BUNDLE_RETRY=0",
	"POETRY_REQUESTS_MAX_RETRIES=0", "YARN_HTTP_RETRY=0",
}

// cacheVars are the variables by which programs find where they keep what can be had again.
var cacheVars = []struct{ name, dir string }{
	{"XDG_CACHE_HOME", "xdg"}, {"GOCACHE", "go-build"}, {"GOMODCACHE", "go-mod"}, {"npm_config_cache", "npm"},
	{"PIP_CACHE_DIR", "pip"}, {"UV_CACHE_DIR", "uv"}, {"CARGO_HOME", "cargo"}, {"GRADLE_USER_HOME", "gradle"},
	{"YARN_GLOBAL_FOLDER", "yarn"}, {"BUN_INSTALL_CACHE_DIR", "bun"}, {"DENO_DIR", "deno"},
	{"NUGET_PACKAGES", "nuget"}, {"DOTNET_CLI_HOME", "dotnet"}, {"MIX_HOME", "mix"}, {"HEX_HOME", "hex"},
	{"PUB_CACHE", "pub"}, {"PUPPETEER_CACHE_DIR", "puppeteer"}, {"CYPRESS_CACHE_FOLDER", "cypress"},
}

// builders are programs whose first build is slow without a cache, and where below the private caches that is.
var builders = []struct{ program, dir string }{
	{"go", "go-build"}, {"cargo", "cargo/registry"}, {"gradle", "gradle/caches"}, {"gradlew", "gradle/caches"},
	{"mvn", "maven"}, {"mvnw", "maven"}, {"npm", "npm/_cacache"}, {"npx", "npm/_cacache"}, {"dotnet", "nuget"},
}

// emptyCaches returns the builders whose caches below dir have nothing.
func emptyCaches(dir string) (programs []string) {
	for _, b := range builders {
		f, err := os.Open(filepath.Join(dir, b.dir))
		if err == nil {
			_, err = f.Readdirnames(1)
			_ = f.Close() // only read
		}
		if err != nil {
			programs = append(programs, b.program)
		}
	}
	return programs
}

// maven is the variable by which Maven finds its repository below the private caches: no variable of its own does, and
// it asks the list of users for its home, not HOME. Its script splits the value at blanks, so no directory with one can
// be named.
func (c *Confiner) maven(cache string) []string {
	if strings.ContainsAny(cache, " \t") {
		return nil
	}
	options := strings.TrimSpace(value(c.env(), "MAVEN_OPTS") + " -Dmaven.repo.local=" + filepath.Join(cache, "maven"))
	return []string{"MAVEN_OPTS=" + options}
}

// inspectEnv is Environ for a command that only reads. It has caches that it may write: without one no compiler, linter
// or package manager runs. No other command sees them, so that nothing can be planted there for a command that may do
// more. Modules of go are those of the other commands' cache.
func (c *Confiner) inspectEnv() (env []string) {
	cache, inspected := c.cache()
	for _, v := range cacheVars {
		if cache == "" {
			break
		}
		if v.name == "GOMODCACHE" {
			env = append(env, v.name+"="+filepath.Join(cache, v.dir))
			continue
		}
		env = append(env, v.name+"="+filepath.Join(inspected, v.dir))
	}
	if cache != "" {
		env = append(env, c.maven(inspected)...)
	}
	for _, name := range personal {
		env = append(env, name+"=")
	}
	// what it misses is said at once, and not after a time of asking for it
	return append(env, "GOPROXY=off", "GOTOOLCHAIN=local", "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0",
		"npm_config_fetch_retries=0", "PIP_RETRIES=0")
}

// cache returns the directory of the private caches, which it makes, and the one for commands that only read; "": there
// is none. A command that may write the caches of its user poisons what is built outside of the sandbox. One set serves
// all workspaces of a principal, whose commands may read what others of them leave there in any case.
//
// No command changes what lies around the two. What lies in them is theirs, and may be a link to anywhere.
func (c *Confiner) cache() (all, inspected string) {
	if c.o.Caches == "" {
		return "", ""
	}
	sum := sha256.Sum256([]byte(c.o.Owner))
	dir := filepath.Join(c.o.Caches, hex.EncodeToString(sum[:8]))
	all, inspected = filepath.Join(dir, "commands"), filepath.Join(dir, "inspect")
	if ownDir(dir) != nil || ownDir(all) != nil || ownDir(inspected) != nil {
		return "", ""
	}
	for _, dir := range []string{all, inspected} {
		root, err := os.OpenRoot(dir)
		if err != nil {
			return "", ""
		}
		for _, v := range cacheVars {
			_ = root.Mkdir(v.dir, 0o700) // it is there, or a command made something else of it, and has that
		}
		_ = root.Mkdir("bin", 0o700) // for programs that want theirs to be there
		_ = root.Close()             // no file was written
	}
	return all, inspected
}

// ownDir makes a directory, also in the place of a link that a command made before such places were kept from them.
func ownDir(path string) error {
	info, err := os.Lstat(path)
	if err == nil && info.IsDir() {
		return nil
	}
	if err == nil {
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	return os.MkdirAll(path, 0o700)
}

// goProxy lets go take the modules that its user has, before it asks where its user would.
func (c *Confiner) goProxy() string {
	proxies := value(c.env(), "GOPROXY")
	if proxies == "" {
		proxies = "https://proxy.golang.org,direct"
	}
	if c.o.Home == "" || !c.o.Personal {
		return proxies
	}
	modules := filepath.Join(firstOf(value(c.env(), "GOPATH"), filepath.Join(c.o.Home, "go")), "pkg", "mod")
	if download := filepath.Join(modules, "cache", "download"); exists(download) {
		return "file://" + filepath.ToSlash(download) + "," + proxies
	}
	return proxies
}

// value returns that of a variable in env, the later one of two.
func value(env []string, name string) string {
	for _, entry := range slices.Backward(env) {
		if v, ok := strings.CutPrefix(entry, name+"="); ok {
			return v
		}
	}
	return ""
}

func firstOf(list, other string) string {
	if all := filepath.SplitList(list); len(all) > 0 && all[0] != "" {
		return all[0]
	}
	return other
}
