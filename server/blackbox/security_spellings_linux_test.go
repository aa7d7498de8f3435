//go:build linux

package blackbox

import (
	"slices"
	"strings"
)

// A pathCase is a path that would lead out of the roots. In it $TOP is the directory that holds the root $WS and what
// is outside, $STATE is the program's state directory, $PID the program, and $OTHER a kept result of another session. A
// `.txt` at its end stands for `.ipynb`, too.
type pathCase struct{ path, kind string }

// The kinds of paths, which are the codes of the refusal that security.md 2.1, 2.2 and 2.7 give where there is one code
// for reading and writing.
const (
	outsideRoots = "OUTSIDE_ROOTS"
	inputInvalid = "INPUT_INVALID"
	pathRefused  = "PATH_REFUSED"
	endless      = "FILE_NOT_FOUND"    // links that lead in a circle, or through more than 40
	denied       = "PERMISSION_DENIED" // a secret of the machine, whatever the rules say
	ofState      = "state"             // outside for those who read, denied to those who write
	ofHome       = "home"              // outside on stdio, invalid in serve
	inside       = "inside"            // nothing is there, and something may be made there
)

// pathCases are all paths of SEC-01.
func pathCases() (all []pathCase) {
	for kind, paths := range map[string][]string{
		outsideRoots: slices.Concat(outsidePaths, linksOut),
		inputInvalid: {
			"", "\x00", "a\x00b.txt", "in.txt\x00.png", "$TOP/outside/secret.txt\x00", "../outside/secret.txt\x00.txt", strings.Repeat("a/", 2049) + "b.txt",
			strings.Repeat("../", 1400) + "etc/passwd", strings.Repeat("x", 256), strings.Repeat("x", 5000), "dir/" + strings.Repeat("ü", 128), "../outside/" + strings.Repeat("s", 300),
			"~root/x.txt", "~nobody", "~other/secret.txt", "~../outside/secret.txt", "file://", "file://localhost", "file:///etc/passwd%00", "file:///%", "file:///etc/%zz",
		},
		pathRefused: append(slices.Clone(deviceSpellings), "file://otherhost/etc/passwd", "file://otherhost"),
		denied: {
			"/etc/shadow", "/root/.ssh/id_rsa", "/proc/self/environ", "/proc/$PID/environ", "/proc/self/mem", "file:///proc/self/environ", "environ.txt",
		},
		ofState: {"$STATE", "$STATE/journals", "$STATE/new.txt", "$OTHER", "state/journals", "state/new.txt", "other.txt"},
		ofHome:  {"~", "~/", "~/secret.txt", "~/../outside/secret.txt", "~//secret.txt"},
		endless: {"loop.txt", "loop-a.txt", "loopdir/x.txt", "loopdir", "long-0.txt"},
		inside: {
			// What other systems or careless decoders would take for `..` or a separator are letters of a name here.
			`..\outside\secret.txt`, `dir\..\..\outside\secret.txt`, `..\/outside/secret.txt`, `.\..\secret.txt`, `a\\b\..\secret.txt`, ".../outside/secret.txt", ".. /outside/secret.txt",
			"..../secret.txt", "．．/outside/secret.txt", "․․/outside/secret.txt", "‥/outside/secret.txt", "..∕outside∕secret.txt", "..⁄outside⁄secret.txt", "..／outside／secret.txt",
			"..\u200b/outside/secret.txt", ".\u200d./outside/secret.txt", ".\u0323./outside/secret.txt", "\ufeff../outside/secret.txt", "%2e%2e/outside/secret.txt", "..%2foutside%2fsecret.txt", "%252e%252e/secret.txt",
			"file:/etc/passwd.txt", "http://127.0.0.1/etc/passwd.txt", "$HOME/secret.txt", "`id`.txt", "$(id).txt", "dir/~/secret.txt", "-/../dash.txt",
			"linkdir/../absent.txt", "proc-cwd/../absent-six.txt", "../ws/absent-too.txt", "$TOP/outside/../ws/absent-three.txt", "dir/../absent-four.txt", "/../..$WS/absent-five.txt",
		},
	} {
		for _, p := range paths {
			all = append(all, pathCase{p, kind})
		}
	}
	slices.SortStableFunc(all, func(a, b pathCase) int { return strings.Compare(a.kind, b.kind) })
	return all
}

// outsidePaths name what is outside without a link of ours.
var outsidePaths = []string{
	// Up, in many forms.
	"..", "../", "../.", "../outside", "../outside/secret.txt", "./../outside/secret.txt", "..//outside///secret.txt", "dir/../../outside/secret.txt", "dir/./.././../outside/secret.txt",
	"none/../../outside/secret.txt", "in.txt/../../outside/secret.txt", "../ws/../outside/secret.txt", "../outside/secret.txt/", "../outside/secret.txt/.", "../outside/./secret.txt", "../outside./secret.txt",
	`../outside\secret.txt`, "$WS/../outside/secret.txt", "$WS/dir/../../outside/secret.txt", "$WS//..//outside/secret.txt", "../outside/new.txt", "../outside/new/deep/file.txt", "$UP/etc/passwd",
	// A sibling whose name begins like the root's.
	"$TOP/ws-evil", "$TOP/ws-evil/secret.txt", "../ws-evil/secret.txt", "$WS-evil/secret.txt", "$WS/../ws-evil/new.txt", "$TOP/ws./secret.txt", "$TOP/ws /secret.txt", "$TOP/ws\u200b/secret.txt", "$TOP/w",
	// Absolute.
	"/", "$TOP", "$TOP/outside/secret.txt", "$TOP/outside/new.txt", "/etc/passwd", "//etc/passwd", "/./etc/passwd", "/etc/../etc/passwd", "/etc/passwd/", "/tmp", "/.txt",
	// What stands for other files, or for the same by another way.
	"/proc/self/root/etc/passwd", "/proc/self/root$TOP/outside/secret.txt", "/proc/self/root$WS/in.txt", "/proc/self/cwd/in.txt", "/proc/self/cwd/../outside/secret.txt", "/proc/$PID/root/etc/passwd",
	"/proc/$PID/root$TOP/outside/secret.txt", "/proc/$PID/cwd/in.txt", "/proc/thread-self/root/etc/passwd", "/proc/1/root/etc/passwd", "/proc/self/task/$PID/root/etc/passwd",
	"/proc/self/fd/0", "/proc/self/fd/3", "/proc/$PID/fd/1", "/proc/self/exe", "/dev/fd/0", "/dev/stdin", "/dev/stdout", "/dev/tty", "/dev/null", "/sys/kernel/notes",
	// URLs.
	"file:///etc/passwd", "FILE:///etc/passwd", "file://localhost/etc/passwd", "file://$TOP/outside/secret.txt", "file://$WS/../outside/secret.txt", "file://$WS/%2e%2e/outside/secret.txt", "file://$WS%2f..%2foutside/secret.txt",
	"file://$TOP/ws-evil/secret.txt",
	"$STATE/../secret.txt",
}

// outwardLinks are links in the root, with their targets.
var outwardLinks = map[string]string{
	"link.txt": "../outside/secret.txt", "absolute.txt": "$TOP/outside/secret.txt", "sibling.txt": "../ws-evil/secret.txt", "chain.txt": "chain-2.txt", "chain-2.txt": "dir/chain-3.txt", "dir/chain-3.txt": "../../outside/secret.txt",
	"dangling.txt": "../outside/absent.txt", "dangling-absolute.txt": "$TOP/outside/absent.txt", "dangling-deep.txt": "$TOP/outside/none/absent.txt", "dangling-chain.txt": "dangling.txt",
	"linkdir": "../outside", "linkdir-absolute": "$TOP/outside", "dir/linkdir": "../linkdir", "up": "..", "top": "$TOP", "slash": "/", "evil": "$TOP/ws-evil",
	"proc-root": "/proc/self/root", "proc-cwd": "/proc/self/cwd", "proc-fd": "/proc/self/fd", "pid-root": "/proc/$PID/root", "environ.txt": "/proc/self/environ", "fd.txt": "/proc/self/fd/0", "stdin.txt": "/dev/stdin", "null.txt": "/dev/null",
	"through-cwd.txt": "/proc/self/cwd/../outside/secret.txt", "state": "$STATE", "other.txt": "$OTHER", "passwd.txt": "$UP/etc/passwd",
	"loop.txt": "loop.txt", "loop-a.txt": "loop-b.txt", "loop-b.txt": "loop-a.txt", "loopdir": "loopdir/deeper",
}

// linksOut are paths through outwardLinks.
var linksOut = []string{
	"link.txt", "absolute.txt", "sibling.txt", "chain.txt", "dir/chain-3.txt", "dangling.txt", "dangling-absolute.txt", "dangling-deep.txt", "dangling-chain.txt", "linkdir", "linkdir/", "linkdir/secret.txt", "linkdir/new.txt", "linkdir/new/deep.txt",
	"linkdir-absolute/secret.txt", "dir/linkdir/secret.txt", "up/outside/secret.txt", "up/new.txt", "top/outside/secret.txt", "slash/etc/passwd", "slash/proc/self/environ", "evil/secret.txt", "evil", "$WS/link.txt", "$WS/linkdir/secret.txt",
	"proc-root/etc/passwd", "proc-root$TOP/outside/secret.txt", "proc-cwd/in.txt", "proc-fd/0", "proc-fd/3", "pid-root/etc/passwd", "fd.txt", "stdin.txt", "null.txt", "through-cwd.txt",
	"passwd.txt", "file://$WS/link.txt", "./dir/../linkdir/./secret.txt",
}

// deviceSpellings are UNC and device paths that are refused on every system (SEC-09). All have the name of one host.
var deviceSpellings = []string{
	`\\filer77\share`, `\\filer77\share\x.txt`, `\\filer77`, `\\filer77@SSL@443\dav\x`, `\\filer77@80\x`, `\\;lanman\filer77\x`, `\\filer77\pipe\x`, `\\filer77\c$\x.txt`, `\\filer77/share/x`, `\\/filer77/x`,
	`\\?\UNC\filer77\share`, `\\?\C:\filer77`, `\\?\filer77`, `\\?\GLOBALROOT\Device\Mup\filer77\x`, `\\.\UNC\filer77\x`, `\\.\pipe\filer77`, `\\.\filer77`, `\\.\PhysicalDrive0\filer77`, `\\?\Volume{filer77}\x`,
	`\??\UNC\filer77\x`, `\??\C:\filer77`, `\??\filer77`, `/??/UNC/filer77/x`, `/??/C:/filer77`, `/??/filer77`, `/./??/filer77`, `file://filer77/share/x`, `file://filer77`, `FILE://filer77/x`, `file:///%5C%5Cfiler77/../??/filer77`, `/x/../??/filer77`,
}
