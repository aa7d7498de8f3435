package doctor

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"codehand/server/clients"
	"codehand/server/clients/install"
)

// clientChecks are the checks of a machine that concern its clients.
type clientChecks struct{ Machine }

// projects are the directories whose own files of clients count.
func (m clientChecks) projects() []string {
	if len(m.Config.Roots) == 0 {
		return []string{m.Config.WorkDir}
	}
	return m.Config.Roots
}

// look reads the files of all clients, or of the one that is asked for.
func (m clientChecks) look() []install.Found {
	var out []install.Found
	for i, project := range m.projects() {
		for _, f := range install.Look(install.Places{GOOS: runtime.GOOS, Home: m.Config.Home, Env: m.getenv,
			Project: project, State: m.Config.StateDir}) {
			if (m.Client == "" || m.Client == f.Client) && (i == 0 || f.Project) {
				out = append(out, f)
			}
		}
	}
	return out
}

// installCommand is what writes the entry anew.
func installCommand(f install.Found) string {
	if f.Project {
		return "codehand install --project " + f.Client
	}
	return "codehand install " + f.Client
}

// clients looks into the files of clients for entries about us.
func (m clientChecks) clients(context.Context) []Finding {
	s := &series{id: "clients"}
	var good, unused []string
	own := map[string]install.Found{} // by client, with an entry
	found := m.look()
	for _, f := range found {
		switch {
		case f.Err != nil:
			s.add(Warn, fmt.Sprintf("%s: %s cannot be read: %v", f.Client, f.File, f.Err),
				"fix the file; the client may ignore all of it")
		case f.Entry != nil:
			if bad := m.entry(f); len(bad) > 0 {
				s.found = append(s.found, bad...)
			} else if !slices.Contains(good, f.Client) {
				good = append(good, f.Client)
			}
			if before, twice := own[f.Client]; twice && f.Project && !before.Project {
				s.add(Warn, fmt.Sprintf("%s: two entries of codehand, in %s and in %s", f.Client, before.File, f.File),
					"run: codehand uninstall --project "+f.Client)
			}
			own[f.Client] = f
			if m.rootless(f) {
				s.add(Note, fmt.Sprintf("%s: %s: the client starts it in the home directory, which is no root: "+
					"without ROOT it has none", f.Client, f.File), "run: "+installCommand(f)+" DIRECTORY")
			}
		case f.Present && !f.Project:
			unused = append(unused, f.Client)
		}
	}
	if len(good) > 0 {
		s.add(OK, "configured in "+strings.Join(good, ", "), "")
	}
	unused = slices.DeleteFunc(unused, func(id string) bool { _, ok := own[id]; return ok })
	claude, local := m.claude(found)
	s.found = append(s.found, claude...)
	if local {
		unused = slices.DeleteFunc(unused, func(id string) bool { return id == claudeCode })
	}
	if len(unused) > 0 {
		fix := "codehand install " + unused[0]
		if install.TakesRoots(unused[0]) {
			fix += " DIRECTORY"
		}
		level := Note
		if m.Client != "" {
			level = Fail // the question is whether this one works
		}
		s.add(level, "here, and not configured: "+strings.Join(unused, ", "), fix)
	}
	if m.Client != "" && len(s.found) == 0 {
		s.add(Fail, m.Client+" is not installed, and no file of it names codehand", "install the client, then run: "+
			"codehand install "+m.Client)
	}
	return s.found
}

// entry says what is wrong with an entry, as far as its text tells.
func (m clientChecks) entry(f install.Found) []Finding {
	s := &series{id: "clients"}
	e, at, again := *f.Entry, f.Client+": "+f.File, "run: "+installCommand(f)
	if e.Disabled {
		s.add(Note, at+": the entry is switched off", "switch the server on in the client")
	}
	if e.Remote {
		return s.found
	}
	l := m.launch(f)
	switch {
	case l.unknown != "": // handshake says it
	case l.command == "" && filepath.IsAbs(e.Command):
		s.add(Fail, at+" names "+e.Command+", which is not there or cannot be run", again)
	case l.command == "":
		s.add(Fail, at+" names "+e.Command+", which is not on PATH", again)
	}
	if !e.Ours() && !same(l.command, m.Program) {
		s.add(Warn, fmt.Sprintf("%s: the entry %s starts %s", at, e.Name, e.Command),
			"remove it if it is not meant, and "+again)
		return s.found
	}
	for _, root := range m.lostRoots(f, l) {
		s.add(Fail, fmt.Sprintf("%s: its root %s is not there", at, root), "create the directory, or run: "+
			installCommand(f)+" /path/to/project")
	}
	if path, ok := e.Env["PATH"]; ok {
		if lost := m.stale(path); lost != "" {
			s.add(Warn, fmt.Sprintf("%s: its PATH is not yours any more: %s", at, lost), again)
		}
	}
	return s.found
}

// lostRoots are the directories that an entry of this program names and that are not there: it would not start.
func (m clientChecks) lostRoots(f install.Found, l launch) (lost []string) {
	if !f.Entry.Ours() && !same(l.command, m.Program) {
		return nil
	}
	for _, root := range rootsIn(l.args) {
		if info, err := os.Stat(root); err != nil || !info.IsDir() {
			lost = append(lost, root)
		}
	}
	return lost
}

// rootless says whether a client that starts its entry in the home directory gives it no directory to work in.
func (m clientChecks) rootless(f install.Found) bool {
	client, _ := clients.Of(f.Client)
	l := m.launch(f)
	return client.Start.InHome && !f.Project && f.Entry.Ours() && l.unknown == "" && len(l.args) > 0 &&
		l.args[0] == "stdio" && len(rootsIn(l.args)) == 0
}

// stale says how the PATH of an entry differs from today's, in directories that there are; "": not at all.
func (m clientChecks) stale(path string) string {
	then, now := filepath.SplitList(path), filepath.SplitList(m.getenv("PATH"))
	var lost []string
	for _, dir := range now {
		if info, err := os.Stat(dir); err == nil && info.IsDir() && !slices.Contains(then, dir) {
			lost = append(lost, dir+" is not in it")
		}
	}
	for _, dir := range then {
		if _, err := os.Stat(dir); err != nil && !slices.Contains(now, dir) {
			lost = append(lost, dir+" does not exist")
		}
	}
	slices.Sort(lost)
	return strings.Join(slices.Compact(lost), ", ")
}

// rootsIn are the roots among the arguments of `codehand stdio`, as far as they are absolute. What follows a flag may
// be its value.
func rootsIn(args []string) []string {
	if len(args) == 0 || args[0] != "stdio" {
		return nil
	}
	var out []string
	for i, a := range args[1:] {
		before := args[i]
		if filepath.IsAbs(a) && (!strings.HasPrefix(before, "-") || strings.Contains(before, "=")) {
			out = append(out, a)
		}
	}
	return out
}

// launch is how the client starts its entry; command is "" if the program cannot be found.
func (m clientChecks) launch(f install.Found) launch {
	client, _ := clients.Of(f.Client)
	h, project := client.Start, m.Config.WorkDir
	if len(m.Config.Roots) > 0 {
		project = m.Config.Roots[0]
	}
	if h.InHome && !f.Project {
		h.Dir = m.Config.Home
	}
	x := &expanding{client: client, by: surroundingsOf(m.Machine, project)}
	l := launch{dir: cmp.Or(x.text(f.Entry.Dir), h.Dir, project)}
	for _, entry := range m.Env {
		name, _, _ := strings.Cut(entry, "=")
		upper := strings.ToUpper(name)
		if h.Keeps != nil && !slices.Contains(h.Keeps, upper) || h.Drops != nil && h.Drops(upper) {
			continue
		}
		l.env = append(l.env, entry)
	}
	for _, name := range slices.Sorted(maps.Keys(f.Entry.Env)) {
		l.env = append(slices.DeleteFunc(l.env, func(v string) bool { return strings.HasPrefix(v, name+"=") }),
			name+"="+x.text(f.Entry.Env[name]))
	}
	for _, a := range f.Entry.Args {
		l.args = append(l.args, x.text(a))
	}
	switch command := x.text(f.Entry.Command); {
	case filepath.IsAbs(command):
		if runnable(command) {
			l.command = command
		}
	case strings.ContainsAny(command, `/\`):
		if command = filepath.Join(l.dir, command); runnable(command) {
			l.command = command
		}
	default:
		l.command = programIn(valueOf(l.env, "PATH"), command)
	}
	l.url = x.text(f.Entry.URL)
	l.unknown = x.unknown
	return l
}

// mine says whether an entry can be started without harm wherever it comes from: it is this program, which serves
// standard input with no setting.
func (m clientChecks) mine(e install.Entry, l launch) bool {
	return same(l.command, m.Program) && len(e.Env) == 0 && len(l.args) > 0 && l.args[0] == "stdio" &&
		!slices.ContainsFunc(l.args, func(a string) bool { return strings.HasPrefix(a, "-") })
}

// Handshakes have more time than other checks: a server that does not answer is started twice.
const (
	ownLimit     = 2 * usualLimit  // this program, in one era
	entriesLimit = 12 * usualLimit // all entries, some at a time
)

// handshakes are the checks that start servers: this program with the present settings, and each client's entry as the
// client starts it.
func (m clientChecks) handshakes() []Check {
	entries := Check{ID: "handshake", Limit: entriesLimit, Run: m.startEntries}
	if m.Client != "" {
		return []Check{entries}
	}
	own := launch{command: m.Program, args: m.Args, env: m.Env, dir: m.Config.WorkDir}
	checks := []Check{}
	for _, era := range []string{legacy, modern} {
		check := one("handshake", func(ctx context.Context) Finding {
			p := m.system().patience
			got, err := own.list(ctx, era, p)
			return handshakeFinding(era, m.Version, got, err, p,
				"run codehand stdio by hand and read its standard error")
		})
		check.Limit = ownLimit
		checks = append(checks, check)
	}
	return append(checks, entries)
}

// A group is a way to start a server, and the clients that do.
type group struct {
	launch launch
	names  []string
	again  string
	url    string // instead of launch
}

// startEntries starts what the entries of clients start, each way once, some at a time.
func (m clientChecks) startEntries(ctx context.Context) []Finding {
	s := &series{id: "handshake"}
	var groups []*group
	for _, f := range m.look() {
		if f.Entry == nil || f.Entry.Disabled {
			continue
		}
		g := &group{names: []string{f.Client}, again: "run: " + installCommand(f), launch: m.launch(f)}
		g.url = g.launch.url
		unknown := g.launch.unknown
		if f.Entry.Remote {
			g.launch = launch{} // what it would be is no matter, and keeps clients of one URL together
		}
		if f.Project && (f.Entry.Remote || !m.mine(*f.Entry, g.launch)) {
			s.add(Note, fmt.Sprintf("%s: not started: what %s names belongs to the project and is something else than "+
				"this program alone", f.Client, f.File), "start it in the client, if you trust the project")
			continue
		}
		if unknown != "" {
			s.add(Note, fmt.Sprintf("%s: not started: only the client knows %s, in %s", f.Client, unknown, f.File),
				"start it in the client")
			continue
		}
		if !f.Entry.Remote {
			if g.launch.command == "" || len(m.lostRoots(f, g.launch)) > 0 {
				continue // clients says it
			}
			why := cmp.Or(m.distrust(g.launch.command, g.launch.dir), m.distrustSettings(g.launch))
			if why != "" {
				s.add(Note, fmt.Sprintf("%s: not started: %s (%s)", f.Client, why, g.launch.line()),
					"if you trust the project and the program, start it yourself with: "+g.launch.line())
				continue
			}
		}
		same := slices.IndexFunc(groups, func(o *group) bool { return o.same(g) })
		if same < 0 {
			groups = append(groups, g)
		} else if !slices.Contains(groups[same].names, f.Client) {
			groups[same].names = append(groups[same].names, f.Client)
		}
	}
	all := make([][]Finding, len(groups))
	places := make(chan struct{}, leastParallel)
	var wg sync.WaitGroup
	for i, g := range groups {
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			all[i] = m.startGroup(ctx, g)
		})
	}
	wg.Wait()
	return append(s.found, slices.Concat(all...)...)
}

func (g *group) same(o *group) bool {
	return g.url == o.url && g.launch.command == o.launch.command && g.launch.dir == o.launch.dir &&
		slices.Equal(g.launch.args, o.launch.args) && slices.Equal(g.launch.env, o.launch.env)
}

// startGroup speaks both eras, each with a limit of its own.
func (m clientChecks) startGroup(ctx context.Context, g *group) []Finding {
	var out []Finding
	for _, era := range []string{legacy, modern} {
		p := m.system().patience
		what := strings.Join(g.names, ", ") + ": " + era
		if g.url != "" {
			ctx, cancel := context.WithTimeout(ctx, p.all)
			out = append(out, Remote{URL: g.url}.shake(ctx, what, era))
			cancel()
		} else {
			got, err := g.launch.list(ctx, era, p)
			out = append(out, handshakeFinding(what, m.Version, got, err, p, g.again+
				"; if that does not help, run by hand and read what it says: "+g.launch.line()))
		}
	}
	return slices.Compact(out)
}

// shake lists the tools of the endpoint that an entry names. No token is known here.
func (r Remote) shake(ctx context.Context, what, era string) Finding {
	l, err := r.open(ctx)
	if err != nil {
		return Finding{"handshake", Fail, what + ": " + r.URL + ": " + err.Error(),
			"correct the URL in the client's file"}
	}
	defer l.close()
	got, err := l.list(ctx, era)
	more := "codehand doctor --url " + r.URL
	switch status := statusOf(err); {
	case err == nil:
		return Finding{"handshake", OK, fmt.Sprintf("%s: %s: %s", what, r.URL, got), ""}
	case status == 401:
		return Finding{"handshake", Note, fmt.Sprintf("%s: %s answers, and wants a token", what, r.URL),
			"to check it with the token: " + more + " --token-env NAME"}
	case status != 0:
		return Finding{"handshake", Fail, fmt.Sprintf("%s: %s: %v", what, r.URL, err), more}
	}
	return Finding{"handshake", Fail, fmt.Sprintf("%s: %s: %v", what, r.URL, err),
		"see whether codehand serve runs there; then run: " + more}
}
