package shell

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"

	"codehand/tools/sandbox"
)

// A script knows how a command's text gets to a shell. The text itself is passed as it is, so syntax errors, exit,
// here-documents and set -e mean what they mean in bash -c.
//
// What goes before it (the operator's file, a trap that reports the directory at the end) stands for bash in a file
// that BASH_ENV names: bash reads it before the text and it is not part of the text, so line numbers stay right. sh has
// no such thing; there it is put in front. A command that sets its own trap for EXIT, or that execs, reports nothing.
// Two differences remain: after set -v the trap is echoed as it runs, and the last program of a command does not take
// the place of its shell, so bash itself says on stderr that it crashed. PowerShell: powershell.go.
type script struct {
	path    string // of the shell
	dialect Dialect
	init    string // file to source; "": none
}

// findShell chooses the shell of commands. It looks where systems and installers put one, never in PATH, which may
// lead into a project.
func findShell(init string) (script, error) {
	programs, system := sandbox.WindowsDirs()
	return chooseShell(init, programs, system, executable)
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && (info.Mode()&0o111 != 0 || runtime.GOOS == "windows")
}

// chooseShell is findShell on a machine with these directories of Windows, "" on other systems. There the bash of Git
// is taken before a PowerShell, since what models and skills write is bash; never that of WSL, which sees other paths.
func chooseShell(init, programs, system string, there func(path string) bool) (script, error) {
	var shells []script
	if system != "" {
		shells = []script{
			{path: programs + `\Git\bin\bash.exe`, dialect: Dialect{Bash: true}},
			{path: programs + `\PowerShell\7\pwsh.exe`, dialect: Dialect{PowerShell: "PowerShell 7"}},
			{path: system + `\System32\WindowsPowerShell\v1.0\powershell.exe`,
				dialect: Dialect{PowerShell: "Windows PowerShell 5.1"}},
		}
		if programs == "" { // else it would be a directory of the current drive
			shells = shells[2:]
		}
	} else {
		for _, name := range []string{"bash", "sh"} {
			for _, dir := range []string{"/usr/bin", "/bin", "/usr/local/bin"} {
				shells = append(shells, script{path: dir + "/" + name, dialect: Dialect{Bash: name == "bash"}})
			}
		}
	}
	for _, s := range shells {
		if there(s.path) {
			s.init = init
			return s, nil
		}
	}
	return script{}, ErrNoShell
}

const rcSuffix, evalSuffix, cwdSuffix = ".rc", ".text", ".cwd"

// command returns arguments and additional environment of the shell that runs text.
func (s script) command(text, base string) (args, env []string, err error) {
	if s.dialect.PowerShell != "" {
		return s.powershellCommand(text, base)
	}
	before := s.before(base + cwdSuffix)
	if !s.dialect.Bash {
		return []string{"-c", "--", before + text, "sh"}, nil, nil
	}
	rc := base + rcSuffix
	if err := os.WriteFile(rc, []byte("unset BASH_ENV\n"+before), 0o600); err != nil {
		return nil, nil, err
	}
	if seeking().MatchString(text) {
		if err := os.WriteFile(base+evalSuffix, []byte(text), 0o600); err != nil {
			return nil, nil, err
		}
		text = `eval -- "$(<` + quote(base+evalSuffix) + `)"`
	}
	// The -- is for a text that begins with a hyphen; the last one is $0, with which messages begin.
	return []string{"--noprofile", "--norc", "-c", "--", text, "bash"}, []string{"BASH_ENV=" + rc}, nil
}

// seeking matches programs that find processes by their command lines.
var seeking = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\b(?:pkill|pgrep|ps)\b`) })

func (s script) before(cwdFile string) string {
	source, pwd := "", "pwd -P"
	if s.init != "" {
		source = ". " + quote(s.init) + "\n"
	}
	if s.dialect.Bash {
		pwd = "builtin pwd -P" // not a function of the command's
	}
	if runtime.GOOS == "windows" {
		pwd = "builtin pwd -W" // as Windows writes it, not as /c/Users
	}
	// In a group whose errors go nowhere, so that set -x does not trace it. >| because of set -C.
	report := "{ set +x; " + pwd + " >|" + quote(cwdFile) + "; } 2>/dev/null"
	return source + "trap " + quote(report) + " EXIT\n"
}

// reachable returns p with the files that the script needs: up to three to read, and one to write.
func (s script) reachable(p sandbox.Profile, base string) (*sandbox.Profile, error) {
	p.Readable = append(slices.Clip(p.Readable), base+rcSuffix, base+evalSuffix)
	if s.init != "" {
		init, err := filepath.EvalSymlinks(s.init) // a profile has no links
		if err != nil {
			return nil, err
		}
		p.Readable = append(p.Readable, init, s.init)
	}
	p.Writable = append(slices.Clip(p.Writable), base+cwdSuffix)
	return &p, os.WriteFile(base+cwdSuffix, nil, 0o600)
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
	return filepath.FromSlash(path)
}

func (s script) cleanUp(base string) {
	removeFile(base + rcSuffix)
	removeFile(base + cwdSuffix)
	removeFile(base + evalSuffix)
	if s.dialect.PowerShell != "" {
		removeFile(base + wrapSuffix)
		removeFile(base + textSuffix)
	}
}

// Word is s as one word of a command, for any shell. A person may run the command as shown. A plain path stays bare,
// since rules about commands are easier to write without quotes.
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
