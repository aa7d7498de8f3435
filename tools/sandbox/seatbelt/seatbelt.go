// Package seatbelt writes profiles for sandbox-exec of macOS.
//
// It only makes text, on every system, and starts nothing. In the language of these profiles the last rule that matches
// counts, so what is hidden and protected stands behind what is readable and writable. The kernel compares resolved
// paths there: what is named below /tmp, /var or /etc stands for the same below /private.
package seatbelt

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"codehand/tools/sandbox/kernel"
)

// Text returns the profile for p: all that is not named is denied. Of p, Processes means nothing here, an empty Temp
// is no directory at all, and NetworkList is NetworkOff, since there is no network namespace that a proxy could serve.
func Text(p kernel.Profile) string {
	var t text
	t.line(base)
	t.rule("allow file-read*", subpaths(slices.Concat(system, p.Readable, writable(p))))
	t.rule("allow file-write*", subpaths(writable(p)))
	if p.Network == kernel.NetworkOn {
		t.line(network)
	}
	t.rule("deny file-read* file-write*", subpaths(p.Hidden))
	t.protect(p)
	return t.String()
}

// base is what every program needs to start. It reaches no service that acts for the user, such as the keychain, the
// pasteboard or launchd's.
const base = `(version 1)
(deny default)
(allow process-exec* process-fork)
(allow signal process-info* (target same-sandbox))
(allow sysctl-read)
(allow file-read-metadata)
(allow file-read* file-write-data
	(literal "/dev/null") (literal "/dev/zero") (literal "/dev/fd") (subpath "/dev/fd")
	(literal "/dev/stdin") (literal "/dev/stdout") (literal "/dev/stderr"))
(allow file-read* (literal "/") (literal "/dev/random") (literal "/dev/urandom"))
(allow file-ioctl (literal "/dev/dtracehelper"))
(allow ipc-posix-sem)
(allow mach-lookup
	(global-name "com.apple.system.opendirectoryd.libinfo")
	(global-name "com.apple.system.opendirectoryd.membership")
	(global-name "com.apple.system.notification_center")
	(global-name "com.apple.system.logger")
	(global-name "com.apple.logd"))`

// network is what NetworkOn adds: sockets, and the services that look up names and check certificates.
const network = `(allow network* system-socket)
(allow mach-lookup
	(global-name "com.apple.SystemConfiguration.configd")
	(global-name "com.apple.SystemConfiguration.DNSConfiguration")
	(global-name "com.apple.trustd")
	(global-name "com.apple.trustd.agent"))`

// system are the directories of programs and their data.
var system = []string{
	"/usr", "/bin", "/sbin", "/opt", "/etc", "/System", "/Library", "/Applications/Xcode.app", "/var/db/timezone",
	"/var/db/dyld", "/var/db/xcode_select_link", "/var/select",
}

func writable(p kernel.Profile) []string {
	if p.Temp == "" {
		return p.Writable
	}
	return append(slices.Clip(p.Writable), p.Temp)
}

// A text is a profile that is being written.
type text struct{ strings.Builder }

func (t *text) line(s string) { t.WriteString(s + "\n") }

// rule writes a rule about paths; none, if there are none: a rule without any is about all.
func (t *text) rule(what string, filters []string) {
	if len(filters) > 0 {
		t.line("(" + what + "\n\t" + strings.Join(filters, "\n\t") + ")")
	}
}

// protect denies changes of protected names, also of those that are missing, in whatever letter case, and denies to
// rename the directories that lead to them: a command that moves .git away could make another one.
func (t *text) protect(p kernel.Profile) {
	var names, above []string
	for _, name := range slices.Sorted(slices.Values(p.Protected)) {
		name = path.Clean(name)
		top := ""
		for _, w := range writable(p) {
			if inside(w, name) && (top == "" || len(w) < len(top)) {
				top = w
			}
		}
		if top == "" {
			continue // nothing is written there
		}
		for _, f := range real(name) {
			root := strings.TrimSuffix(f, name[len(top):])
			names = append(names, regex(escaped(root, false)+escaped(f[len(root):], true)+"(/.*)?"))
			for dir := path.Dir(f); dir != root && inside(root, dir); dir = path.Dir(dir) {
				above = append(above, regex(escaped(root, false)+escaped(dir[len(root):], true)))
			}
		}
	}
	slices.Sort(above)
	t.rule("deny file-write*", names)
	t.rule("deny file-write-unlink", slices.Compact(above))
}

// inside says whether name lies in dir and is not dir itself.
func inside(dir, name string) bool {
	return name != dir && strings.HasPrefix(name, strings.TrimSuffix(dir, "/")+"/")
}

// subpaths are the filters for files and for all that lies in directories.
func subpaths(paths []string) []string {
	var filters []string
	for _, p := range paths {
		for _, r := range real(path.Clean(p)) {
			filters = append(filters, "(subpath "+quoted(r)+")")
		}
	}
	return filters
}

// real returns the paths that the kernel may see for p.
func real(p string) []string {
	for _, link := range []string{"/tmp", "/var", "/etc"} {
		if p == link || inside(link, p) {
			return []string{p, "/private" + p}
		}
	}
	return []string{p}
}

// quoted is a text of the language.
func quoted(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// regex is the filter for paths that match all of an expression.
func regex(expression string) string {
	return `(regex #"^` + expression + `$")`
}

// escaped matches s, in any letter case of ASCII if fold is set, as the disks of macOS usually do. What an expression
// between quotes cannot hold is matched by any character: then more is protected.
func escaped(s string, fold bool) string {
	var b strings.Builder
	for _, r := range s {
		switch lower, upper := strings.ToLower(string(r)), strings.ToUpper(string(r)); {
		case fold && r < 0x80 && lower != upper:
			b.WriteString("[" + upper + lower + "]")
		case r == '"' || r == '\\' || r < ' ':
			b.WriteByte('.')
		case strings.ContainsRune(`.^$*+?()[]{}|`, r):
			b.WriteString("[" + cmp.Or(map[rune]string{'^': `.`, '[': `.`, ']': `.`}[r], string(r)) + "]")
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
