package confine

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"codehand/tools/confine/look"
	"codehand/tools/sandbox"
)

// refusals are what programs print when the kernel refuses, or when something is not there for them.
var refusals = []string{
	"Permission denied", "Read-only file system", "Operation not permitted", "Device or resource busy",
	"EACCES", "EROFS", "EPERM", "EBUSY", "permission denied", "read-only file system", "operation not permitted",
	"device or resource busy", "n't writable", "not writable",
	"Invalid cross-device link", "invalid cross-device link", "EXDEV",
}

// notThere is what programs print of a path that is not there.
var notThere = []string{
	"no such file or directory", "enoent", "does not exist", "does not appear to be", "not found", "cannot find",
	"cannot open", "can't open", "could not open", "unable to open",
}

// unreached are what programs print without a network.
var unreached = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)(?:could not|couldn't|unable to) resolve (?:host|proxy|address)|` +
		`\bdns error\b|` + // of rustup
		`Error when performing the request to https?://|` + // of corepack
		`network is unreachable|` +
		`temporary failure in name resolution|name or service not known|no such host|EAI_AGAIN|ENETUNREACH|ENOTFOUND|` +
		`\(from versions: none\)|` + // all that pip says without a further try
		`failed to lookup address|no route to host|nodename nor servname`)
})

// refused matches what programs print where no program listens, as on the loopback of a command without a network.
var refused = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)connection refused|ECONNREFUSED|couldn't connect to server|failed to connect to`)
})

// tracing matches what strace, gdb, dlv, perf, unshare and browsers print of a system call that no command may use.
var tracing = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)(?:\bptrace\b|\bunshare\b|new namespace|perf_event_open|could not launch process)` +
		`.*(?:operation not permitted|permission denied|EPERM)`)
})

// modes matches what chmod, install, cp, tar, Go and Node print of a file to which they may not give its mode.
var modes = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)(?:\bpermissions (?:of|for)\b|\bchange mode\b|\bchmod\b).*not permitted|` +
		`\bnot permitted, f?chmod\b`)
})

// absolute finds absolute paths in a line.
var absolute = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?:^|[\s'"(=:‘“\x60\[])(/[^\s'"\x60:;,()’”\]]+)`)
})

// unlisted finds that a directory could not be listed. A change there fails in other words: the file system is
// read-only.
var unlisted = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?:[Pp]ermission denied|EACCES\b)`)
})

// quoted finds what a program put between quotes.
var quoted = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?:['"‘“\x60])([^'"‘’“”\x60]+)['"’”\x60]`)
})

// relative finds what may be a relative path: the word before the reason, as programs print it. A letter or a dash
// follows.
var relative = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?:['"‘“\x60])?([^\s'"‘’“”\x60:]+)['"’”\x60]?\)?: `)
})

// Explain names the setting that made a command fail, as far as its output tells, so that the model does not look for a
// mistake elsewhere; "": the output does not tell. errors is what the command printed, dir where it ran.
func (c Command) Explain(errors, dir string) string {
	if line := c.Refusal(errors, dir); line != "" {
		return line
	}
	if c.NoNetwork() != "" && refused().MatchString(errors) {
		if c.readOnly {
			return c.NoNetwork()
		}
		if c.Profile.Network == sandbox.NetworkList {
			return fmt.Sprintf("[sandbox level %d: commands reach only the hosts in sandbox.domains here, and not "+
				"what other commands and jobs serve; %s can change that and sandbox.network]", c.Level, c.opener())
		}
		return fmt.Sprintf("[sandbox level %d: commands have no network here and do not reach what other commands and "+
			"jobs serve; %s can change sandbox.network]", c.Level, c.opener())
	}
	return ""
}

// Refusal is the part of Explain that is as certain of a command that did not fail, because a pipe or a program hid
// that something was refused. Then errors is what it printed on stderr.
func (c Command) Refusal(errors, dir string) string {
	if c.Profile == nil {
		return ""
	}
	if strings.Contains(errors, "could not read Username for") ||
		strings.Contains(errors, "could not read Password for") {
		if c.pass.door != nil && len(c.pass.door.Why()) > 0 {
			return "" // Over says it
		}
		if c.pass.none != "" { // before what a helper of the person's misses in the sandbox
			return c.said(c.pass.none)
		}
	}
	nameless := false // refused, and the program does not say what, as ed of its own temporary file
	for line := range strings.SplitSeq(errors, "\n") {
		// "cannot open x: Read-only file system" is no word of a missing file
		refused := containsAny(line, refusals)
		gone := !refused && containsAny(strings.ToLower(line), notThere)
		if !gone && !refused {
			continue
		}
		nameless = nameless || strings.HasSuffix(strings.TrimSuffix(line, " (13)"), "Permission denied")
		for _, path := range pathsIn(line, dir) {
			if why := c.refuses(path, line, gone); why != "" {
				return c.said(why)
			}
			if info, err := os.Lstat(path); err == nil && modes().MatchString(line) && look.Mine(info) {
				return c.said("commands set no set-user-ID bit (mode 4000, u+s); the user sets it in a terminal of " +
					"their own")
			}
		}
	}
	if why := c.unseen(errors); why != "" {
		return c.said(why)
	}
	if tracing().MatchString(errors) {
		return c.said("no command traces a process or makes namespaces, as strace, gdb, dlv, unshare and the sandbox " +
			"of a browser do (browsers start with --no-sandbox); " + c.opener() + " can only switch all of this off, " +
			`with sandbox.policy = "off"`)
	}
	if nameless && c.Level == sandbox.LevelKernel && !c.readOnly {
		return c.said("commands change files in the workspace and in $TMPDIR, and nothing in /tmp or the home " +
			"directory; " + c.opener() + " can add directories to sandbox.writable")
	}
	if c.Proxy != nil {
		if refused := c.Proxy.Refused(); len(refused) > 0 {
			return fmt.Sprintf("[sandbox level %d: %s]", c.Level, refused[0].Error())
		}
	}
	return c.Unreached(errors)
}

// Unreached names the setting that keeps the command from the network, if output tells that it missed one; "": it does
// not, or the command has one.
func (c Command) Unreached(output string) string {
	if !unreached().MatchString(output) {
		return ""
	}
	return c.NoNetwork()
}

// unixSockets finds the Unix sockets that a program names where it could not connect.
var unixSockets = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`unix:/{0,2}(/[^\s:'"]+?)[.,:;'"]?(?:\s|$)`)
})

// unseen says which socket or secret of the person a program missed, where the program itself tells another reason:
// that no daemon runs, or that nobody is there to type a password; "": none.
func (c Command) unseen(errors string) string {
	if c.Level < sandbox.LevelFull {
		return ""
	}
	for _, m := range unixSockets().FindAllStringSubmatch(errors, -1) {
		real, err := filepath.EvalSymlinks(m[1])
		if err != nil {
			continue // it is not there for the person, either
		}
		if c.readOnly {
			return "commands reach no socket; outside plan mode run_shell can"
		}
		seen := slices.Concat(c.Profile.Readable, c.Profile.Writable)
		if slices.ContainsFunc(seen, func(dir string) bool { return within(real, dir) }) {
			continue
		}
		return fmt.Sprintf("%s is not visible to commands; sandbox.readable = [%q] gives commands the rights of what "+
			"listens there", m[1], real)
	}
	if strings.Contains(errors, "gpg failed to sign the data") {
		return c.unsigned() + "; commit with -c commit.gpgsign=false, or let the user sign"
	}
	return ""
}

// unsigned says why gpg signed nothing.
func (c Command) unsigned() string {
	switch {
	case slices.Contains(c.Gaps, gpgAgent):
		return "the user's gpg-agent did not sign: it does not run, lacks the key or waits for a passphrase, which " +
			"it asks for once for commands, apart from the user's own gpg"
	case c.unshared:
		return "commands sign only through S.gpg-agent.extra, which gives no secret key away, and the user's " +
			"gpg-agent has none: `extra-socket none` in gpg-agent.conf, or gpg-agent-extra.socket of systemd that is " +
			"not enabled"
	case c.readOnly || !c.personal:
		return "gpg does not reach its keys here"
	case c.Profile.Network != sandbox.NetworkOn:
		return `commands reach gpg-agent only with sandbox.network = "on"`
	}
	return "commands reach gpg-agent only if codehand is started with GPG_TTY or XDG_RUNTIME_DIR in its environment"
}

// opener is who can change settings.
func (c Command) opener() string {
	if c.personal {
		return "the user"
	}
	return "the operator"
}

// said is a line about what confines the command.
func (c Command) said(why string) string {
	if c.readOnly {
		return "[read-only here: " + why + "]"
	}
	return fmt.Sprintf("[sandbox level %d: %s]", c.Level, why)
}

// NoNetwork says what keeps the command from the network: the setting, or that it only reads; "": nothing does.
func (c Command) NoNetwork() string {
	if c.readOnly {
		return c.said("commands have no network; outside plan mode run_shell has what sandbox.network gives it")
	}
	if c.Profile == nil || c.Profile.Network == sandbox.NetworkOn || !c.Profile.Sockets {
		return ""
	}
	if c.Profile.Network == sandbox.NetworkList {
		return fmt.Sprintf("[sandbox level %d: commands reach only the hosts in sandbox.domains here; %s can "+
			"change that and sandbox.network]", c.Level, c.opener())
	}
	return fmt.Sprintf("[sandbox level %d: commands have no network here; %s can change sandbox.network]", c.Level,
		c.opener())
}

// pathsIn returns the paths that a message names, absolute and clean.
func pathsIn(line, dir string) []string {
	var paths []string
	for _, m := range absolute().FindAllStringSubmatchIndex(line, -1) {
		path := line[m[2]:m[3]]
		// A name may have blanks. What stands behind one belongs to the path if the whole is there, or its directory
		// is, and a quote before it or a name above it says that the blank is no end.
		whole := line[m[2]:]
		if end := strings.IndexAny(whole, "'\"`:‘’“”"); end >= 0 {
			whole = whole[:end]
		}
		opened := m[2] > 0 && strings.ContainsAny(line[m[2]-1:m[2]], "'\"`")
		if strings.HasPrefix(whole, path+" ") && (exists(whole) ||
			exists(filepath.Dir(whole)) && (opened || filepath.Dir(whole) != filepath.Dir(path))) {
			path = whole
		}
		paths = append(paths, filepath.Clean(path))
	}
	var before [][]string
	for _, m := range relative().FindAllStringSubmatchIndex(line, -1) {
		if rest := line[m[1]:]; rest != "" && (rest[0] == '-' || 'a' <= rest[0]|0x20 && rest[0]|0x20 <= 'z') {
			before = append(before, []string{line[m[0]:m[1]], line[m[2]:m[3]]})
		}
	}
	slices.Reverse(before) // the reason stands last, behind its path; what stands first is the program
	for _, m := range slices.Concat(quoted().FindAllStringSubmatch(line, -1), before) {
		if m[1] == "/" {
			paths = append(paths, m[1])
		} else if !filepath.IsAbs(m[1]) {
			paths = append(paths, filepath.Join(dir, m[1]))
		}
	}
	return paths
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func containsAny(text string, parts []string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
}

// refuses says why the profile refuses a path in the way that line tells; "": it does not. gone: line says that the
// path is not there.
func (c Command) refuses(path, line string, gone bool) string {
	p := c.Profile
	in := func(dirs []string) bool {
		return slices.ContainsFunc(dirs, func(dir string) bool { return within(path, strings.TrimSuffix(dir, "/")) })
	}
	switch {
	case in(p.Hidden):
		if rule := c.rule(path); rule != "" {
			return path + " is hidden from commands by the rule " + rule + "; " + c.opener() + " can remove that rule"
		}
		if slices.ContainsFunc(misowned(os.Geteuid()), func(dir string) bool { return within(path, dir) }) {
			return path + " is hidden from commands: there root's files seem to be of another user, and ssh does not " +
				"start with such files"
		}
		return path + " is hidden from commands, since it holds secrets or stands in sandbox.hide"
	case gone && exists(path) && !ofSystem(path) && !in(p.Readable) && !in(p.Writable):
		return path + " is not visible to commands; " + c.opener() + " can add it to sandbox.readable"
	case gone && !(strings.Contains(line, "mkdir") && in(p.Protected) && exists(filepath.Dir(path))):
		return "" // but for what Node says where it makes directories on a read-only mount
	case c.rule(path) != "":
		return path + " does not change, by the rule " + c.rule(path) + "; " + c.opener() + " can remove that rule"
	case slices.ContainsFunc(p.Linked, func(l sandbox.Link) bool { return l.Path == path }):
		return path + " can be written, also by git config, but neither renamed, replaced nor removed"
	case in(p.Protected) || in(p.Writable) && heldFor(path, p.Protected):
		if o, is := c.obeyed.Find(path); is {
			return fmt.Sprintf("%s is protected: git obeys it by %s; it changes only by a command that names it and "+
				"that a person allows; the user can open it with permissions.unprotect = [%q]", path, o.Key,
				strings.TrimSuffix(o.Name, "/**"))
		}
		return path + " is protected: it changes only by a command that names it and that a person allows; the " +
			"user can open its name with permissions.unprotect"
	case in(p.Writable), (p.Temp != "" || c.readOnly && !in(p.Readable)) && within(path, c.temp()):
		return ""
	case c.readOnly && (strings.Contains(line, "ead-only file system") || strings.Contains(line, "EROFS")):
		return path + " cannot be changed; outside plan mode run_shell can change files"
	case c.readOnly && (in(p.Readable) || !exists(path)):
		return "" // not for the sandbox's sake
	case c.readOnly:
		return path + " is not visible to commands; " + c.opener() + " can add it to sandbox.readable"
	case c.Level < sandbox.LevelFull && !in(p.Readable): // at LevelFull it would not be there
		return path + " is outside of what commands may read or change; " + c.opener() + " can add it to " +
			"sandbox.readable, or a directory to sandbox.writable"
	case c.Level >= sandbox.LevelFull && !in(p.Readable) && isDir(path) && unlisted().MatchString(line):
		why := path + " cannot be listed, since commands see only part of what is in it: name a file or directory there"
		if path != "/" {
			why += ", or " + c.opener() + " can add it to sandbox.readable"
		}
		return why
	case slices.ContainsFunc(packageDirs, func(dir string) bool { return within(path, dir) }):
		return path + " is no command's to change; what installs packages for the whole machine, the user runs in a " +
			"terminal of their own"
	}
	return path + " is outside of what commands may change; " + c.opener() + " can add a directory to sandbox.writable"
}

// packageDirs are those where package managers look first whether they may work. To open one leads to the next.
var packageDirs = []string{
	"/var/lib/dpkg", "/var/lib/apt", "/var/cache/apt", "/var/lib/rpm", "/usr/lib/sysimage/rpm", "/var/lib/dnf",
	"/var/cache/dnf", "/var/lib/pacman", "/lib/apk", "/usr/lib/apk",
}

// temp is where a command finds its temporary directory.
func (c Command) temp() string {
	if c.Level < sandbox.LevelFull {
		return c.Profile.Temp
	}
	return os.TempDir()
}

// rule is the rule that hides path or keeps it as it is; "": none does.
func (c Command) rule(path string) string {
	for ; ; path = filepath.Dir(path) {
		if rule := c.by[path]; rule != "" || path == filepath.Dir(path) {
			return rule
		}
	}
}

// heldFor says whether path is a directory that keeps its name for the sake of a protected one below it.
func heldFor(path string, protected []string) bool {
	return slices.ContainsFunc(protected, func(p string) bool { return within(strings.TrimSuffix(p, "/"), path) })
}
