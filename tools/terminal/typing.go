package terminal

import (
	"path"
	"slices"
	"strings"

	"codehand/tools/sandbox"
	"codehand/tools/secrets"
)

// returns makes of the ends of lines what the Enter key sends.
var returns = strings.NewReplacer("\r\n", "\r", "\n", "\r")

// shells are programs that take what is typed for commands; those of the second list hand it to one elsewhere.
var shells = []string{
	"sh", "bash", "dash", "ash", "rbash", "zsh", "ksh", "ksh93", "mksh", "yash", "fish", "csh", "tcsh", "busybox",
	"pwsh", "nu", "elvish", "xonsh",
	"ssh", "mosh-client", "telnet", "docker", "podman", "kubectl", "machinectl", "tmux", "tmux: client", "tmux: server",
	"screen",
}

// withWord are options of shells that take the next word.
var withWord = []string{"--rcfile", "--init-file", "-o", "+o", "-O", "+O"}

// reads says what may read what is typed into a terminal in which these programs run. Secret: none of those in front is
// a shell.
func reads(all []sandbox.Program, known bool) Typing {
	t := Typing{Shell: !known, Secret: known}
	for _, p := range all {
		if takesCommands(p) {
			t.Shell = true
			t.Secret = t.Secret && !p.Front
		}
	}
	return t
}

// takesCommands says that a program is a shell that reads commands from its terminal, not from its command line or from
// a file.
func takesCommands(p sandbox.Program) bool {
	own := strings.TrimPrefix(path.Base(p.Words[0]), "-") // a login shell
	if !slices.Contains(shells, p.Name) && !slices.Contains(shells, own) {
		return false
	}
	args := p.Words[1:]
	if own == "busybox" {
		if len(args) == 0 || !slices.Contains(shells, args[0]) {
			return false
		}
		args = args[1:]
	} else if p.Name == "busybox" && !slices.Contains(shells, own) {
		return false
	}
	if slices.Index(shells, own) >= slices.Index(shells, "ssh") {
		return true
	}
	for i := 0; i < len(args); i++ {
		switch word := args[i]; {
		case word == "-" || word == "--":
		case slices.Contains(withWord, word):
			i++
		case !strings.HasPrefix(word, "-"), word == "--command": // a file of commands, or a command
			return false
		case strings.HasPrefix(word, "--"):
		case strings.ContainsAny(word, "is"):
			return true
		case strings.Contains(word, "c"):
			return false
		}
	}
	return true
}

// masked are rows with their secrets hidden; one that goes over the end of a row is not known as such.
func masked(rows []string) []string {
	if len(rows) == 0 {
		return nil
	}
	return strings.Split(secrets.Masked(strings.Join(rows, "\n")), "\n") // which keeps all lengths
}
