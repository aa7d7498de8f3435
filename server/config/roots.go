package config

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"codehand/server/auth"
	"codehand/tools/permission"
)

// rootArgument is where the roots come from that the command line names.
const rootArgument = "argument ROOT"

// roots decides which directories sessions may touch: arguments, else the setting, else the working directory, unless
// that is where a program happens to be started.
func (l *loader) roots() {
	if l.src.Serve {
		l.rootsOfServe()
		return
	}
	switch {
	case len(l.src.Roots) > 0:
		l.config.Roots = l.rootArguments(absolute)
		l.config.origins["roots"] = rootArgument
	case len(l.config.Roots) == 0:
		l.startedIn(`add a directory after "stdio" in the client's configuration`)
	}
	l.checkRoots()
}

// rootsOfServe decides where principals work. Arguments replace what the file says about all of them. By default each
// has a workspace of its own in the data directory. Without sign-in the default is that of stdio: `roots`, or the
// working directory of the person who started serve.
func (l *loader) rootsOfServe() {
	const key = principalsTable + "." + everyone + ".roots"
	c := &l.config
	if len(l.src.Roots) > 0 {
		c.Principals.Default.Roots = l.rootArguments(readTemplate)
		c.origins[key] = rootArgument
	}
	l.checkTemplates()
	templates := c.Principals.Default.Roots
	switch {
	case slices.ContainsFunc(templates, personal):
		c.Roots = nil
	case len(templates) > 0:
		c.Roots, c.origins["roots"] = slices.Clone(templates), c.origins[key] // checked with the templates
	case !personalRoots(c.Auth.Mode), c.Auth.Mode == "auto" && len(c.Auth.Issuers) > 0: // auto will be oidc
		c.Roots = nil
	case len(c.Roots) > 0:
		l.checkRoots()
	default:
		l.startedIn(`without tokens, add a directory after "serve"`)
	}
}

// personalRoots says whether one person may call in a mode of auth: the one who started serve, or its owner.
func personalRoots(mode string) bool {
	m, err := auth.ParseModes(mode)
	return err != nil || m.None || m.Owner // auto is decided later
}

// rootArguments reads the arguments.
func (l *loader) rootArguments(read func(string, input) (string, error)) (roots []string) {
	for _, arg := range l.src.Roots {
		path, err := read(arg, l.typed(arg, "argument"))
		if err != nil {
			l.problems.add(rootArgument, err.Error())
			continue
		}
		roots = append(roots, path)
	}
	return roots
}

// startedIn takes the working directory as root, unless a program happens to be started there; then it says what to do.
func (l *loader) startedIn(remedy string) {
	dir := l.config.WorkDir
	switch why := l.byAccident(dir); {
	case why != "":
		l.warnings = append(l.warnings,
			Warning{NoRoot: why, Text: fmt.Sprintf("no directory can be used: codehand was started in %s, which is "+
				"never a root by itself, because %s; %s", dir, why, remedy)})
	case dir != "":
		l.config.Roots = []string{dir}
		l.config.origins["roots"] = "working directory"
		l.checkRoots()
	}
}

// byAccident says why dir is where a program starts when no person chose a directory; "": it is not.
func (l *loader) byAccident(dir string) string {
	if dir == "" {
		return ""
	}
	real := Canonical(dir)
	const system = "the system's files are there"
	switch windows := l.env["WINDIR"]; {
	case real == filepath.Dir(real):
		return "all files are below it"
	case l.isHome(real):
		return "it is the home directory"
	case windows != "" && Canonical(windows) == real:
		return system
	}
	if windows := l.env["SYSTEMROOT"]; windows != "" && contains(Canonical(windows), real) {
		return system
	}
	if l.src.Serve { // a unit of systemd likes to start where the data is
		for _, d := range l.config.keptDirs() {
			if how := l.config.meeting(dir, d); how != "" {
				return "it " + how + " the " + d.name
			}
		}
	}
	if slices.ContainsFunc([]string{"/proc", "/sys", "/dev", "/etc",
		"/private/etc", "/System", "/Library"}, // where macOS keeps its own
		func(d string) bool { return contains(d, real) }) {
		return system
	}
	return ""
}

// checkRoots checks the roots of one person. One that is not there any more, such as a folder on a disk that is not
// plugged in, is left out while another is: a client that starts codehand shows no reason when that fails.
func (l *loader) checkRoots() {
	var roots []string
	var missing Problems
	for _, root := range l.config.Roots {
		switch err := existing(root); {
		case errors.Is(err, fs.ErrNotExist):
			missing.add(l.config.origins["roots"], err.Error())
		case err != nil:
			l.problems.add(l.config.origins["roots"], err.Error())
		default:
			roots = append(roots, root)
			l.warnAboutHome(root)
		}
	}
	if len(roots) == 0 {
		for _, p := range missing {
			l.problems.add(p.Origin, p.Text+"; make it, or name another directory")
		}
		return
	}
	for _, p := range missing {
		l.warnings = append(l.warnings, Warning{Origin: p.Origin, Text: p.Text + "; it is left out"})
	}
	l.config.Roots = roots
}

func (l *loader) warnAboutHome(root string) {
	if l.isHome(root) {
		l.warnings = append(l.warnings,
			Warning{Text: root + " is the home directory; use a project's directory instead"})
	}
}

func (l *loader) isHome(root string) bool {
	return l.config.Home != "" && Canonical(root) == Canonical(l.config.Home)
}

// keepApart refuses roots that hold, or lie in, a directory of ours: what the model can change must not be what we
// remember. A home directory as root always holds the state directory, so there a rule keeps tools away from it; in
// serve, where the directory holds what others do, too, even that is refused.
func (l *loader) keepApart() {
	c := &l.config
	lists := []rootList{{"", c.Roots}}
	if l.src.Serve {
		if lists = append(lists, l.templates()...); len(c.Principals.Default.Roots) > 0 {
			lists = lists[1:] // the same ones
		}
	}
	lists = append(lists, rootList{additionalKey, c.Permissions.AdditionalDirs})
	for _, list := range lists {
		for _, root := range list.roots {
			for _, dir := range c.keptDirs() {
				l.keepFrom(list.key, root, dir)
			}
			if l.src.Serve {
				l.keepFilesFrom(root)
			} else {
				denyKeys(&l.config, root)
			}
		}
	}
}

func (l *loader) keepFrom(key, root string, dir keptDir) {
	how := l.config.meeting(root, dir)
	held := l.src.Serve && dir.path == l.config.HTTP.DataDir
	switch {
	case how == "":
		return
	case how == "contains" && l.isHome(root) && !held:
		l.denyState(Canonical(dir.path))
		return
	}
	text := fmt.Sprintf("%s %s the %s %s", root, how, dir.name, dir.path)
	if how != "lies in" {
		text += fmt.Sprintf("; set %s to a directory outside", dir.key)
	}
	if key == "" {
		l.problems.add(l.config.origins["roots"], text)
		return
	}
	l.rootProblem(key, text)
}

// keepFilesFrom refuses a root with a file in it that says who may call, or what was done.
func (l *loader) keepFilesFrom(root string) {
	c := &l.config
	for _, file := range []struct{ key, path string }{
		{"auth.token_file", c.Auth.TokenFile}, {"audit.dir", c.Audit.Dir}, {"metrics.token_file", c.Metrics.TokenFile},
		{"http.tls_cert", c.HTTP.TLSCert}, {"http.tls_key", c.HTTP.TLSKey}, {"http.client_ca", c.HTTP.ClientCA},
		{"store.nats.creds_file", c.Store.NATS.CredsFile}, {"store.nats.nkey_file", c.Store.NATS.NKeyFile},
		{"store.nats.password_file", c.Store.NATS.PasswordFile}, {"store.nats.ca_file", c.Store.NATS.CAFile},
		{"store.nats.cert_file", c.Store.NATS.CertFile}, {"store.nats.key_file", c.Store.NATS.KeyFile},
		{caFileKey, c.Web.CAFile}, {"web.search.key_file", c.Web.Search.KeyFile},
	} {
		if file.path == "" || file.path == "-" {
			continue
		}
		if at, root := Canonical(file.path),
			canonical(root); len(components(root)) <= len(components(at)) && overlap(root, at) {
			l.problems.add(c.origins[file.key],
				fmt.Sprintf("%s: %s lies in the root %s, where sessions could read or change it", file.key, file.path,
					root))
		}
	}
}

func (l *loader) denyState(state string) { denyPath(&l.config, "Edit", state, "/**") }

// denyKeys keeps calls from reading a key of the operator that lies in a root of that person's own.
func denyKeys(c *Config, root string) {
	for _, file := range c.KeyFiles() {
		if at, root := Canonical(file), canonical(root); len(components(root)) <= len(components(at)) &&
			overlap(root, at) {
			denyPath(c, "Read", at, "")
		}
	}
}

// denyPath adds a rule against a path, with what follows it in the pattern.
func denyPath(c *Config, name, path, rest string) {
	pattern := strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(filepath.ToSlash(path))
	c.Permissions.Deny = append(c.Permissions.Deny, permission.Rule{
		Text: name + "(//" + strings.TrimPrefix(pattern, "/") + rest + ")", Origin: permission.BuiltIn,
	})
}

// contains says whether path is dir or lies in it, by whole components.
func contains(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// Canonical resolves the links in the part of path that exists.
func Canonical(path string) string {
	return auth.Real(path)
}
