package shell

import (
	"io"
	"os"
	"path/filepath"
	"strings"
)

// A script knows how a command's text gets to a shell. The text itself is passed as it is, so syntax errors, exit,
// here-documents and set -e mean what they mean in bash -c.
//
// What goes before it (the operator's file, a trap that reports the directory at the end) stands for bash in a file
// that BASH_ENV names: bash reads it before the text and it is not part of the text, so line numbers stay right. sh has
// no such thing; there it is put in front. A command that sets its own trap for EXIT, or that execs, reports nothing.
// Two differences remain: after set -v the trap is echoed as it runs, and the last program of a command does not take
// the place of its shell, so bash itself says on stderr that it crashed.
type script struct {
	path string // of the shell
	bash bool
	init string // file to source; "": none
}

// shellDirs are where a shell is looked for: never in PATH, which may lead into a project.
var shellDirs = []string{"/usr/bin", "/bin", "/usr/local/bin"}

func findShell(init string) (script, error) {
	for _, name := range []string{"bash", "sh"} {
		for _, dir := range shellDirs {
			path := filepath.Join(dir, name)
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
				return script{path: path, bash: name == "bash", init: init}, nil
			}
		}
	}
	return script{}, ErrNoShell
}

const rcSuffix, cwdSuffix = ".rc", ".cwd"

// command returns arguments and additional environment of the shell that runs text.
func (s script) command(text, base string) (args, env []string, err error) {
	before := s.before(base + cwdSuffix)
	if !s.bash {
		return []string{"-c", "--", before + text, "sh"}, nil, nil
	}
	rc := base + rcSuffix
	if err := os.WriteFile(rc, []byte("unset BASH_ENV\n"+before), 0o600); err != nil {
		return nil, nil, err
	}
	// The -- is for a text that begins with a hyphen; the last one is $0, with which messages begin.
	return []string{"--noprofile", "--norc", "-c", "--", text, "bash"}, []string{"BASH_ENV=" + rc}, nil
}

func (s script) before(cwdFile string) string {
	source, pwd := "", "pwd -P"
	if s.init != "" {
		source = ". " + quote(s.init) + "\n"
	}
	if s.bash {
		pwd = "builtin pwd -P" // not a function of the command's
	}
	// In a group whose errors go nowhere, so that set -x does not trace it. >| because of set -C.
	report := "{ set +x; " + pwd + " >|" + quote(cwdFile) + "; } 2>/dev/null"
	return source + "trap " + quote(report) + " EXIT\n"
}

// maxPath bounds what is read of the file that the command could have written itself.
const maxPath = 4096

// cwd returns what the trap reported; "": nothing.
func (s script) cwd(base string) string {
	f, err := os.Open(base + cwdSuffix)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }() // only read
	text, err := io.ReadAll(io.LimitReader(f, maxPath+1))
	path, whole := strings.CutSuffix(string(text), "\n")
	if err != nil || !whole || !filepath.IsAbs(path) {
		return ""
	}
	return path
}

func (s script) cleanUp(base string) {
	removeFile(base + rcSuffix)
	removeFile(base + cwdSuffix)
}

// Word is s as one word of a command, for any shell: for a command that somebody may run as it is shown. A plain path
// stays bare, since rules about commands are easier to write without quotes.
func Word(s string) string {
	special := func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' ||
			strings.ContainsRune("/._-+,:@%", r))
	}
	if s == "" || strings.ContainsFunc(s, special) {
		return quote(s)
	}
	return s
}

// quote makes one word of s for any shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
