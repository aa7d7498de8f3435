//go:build unix

package shell

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
)

// texts must do exactly what they do in bash -c.
var texts = []string{
	"", "true", "false", "exit 3", "exit", "echo hi", "echo hi; exit 300", "echo a >&2; echo b",
	"if", "echo 'open", "echo (", "}", "echo $(", "cat <<E\nx $((1+1))\nE", "cat <<E\nno end", "cat <<'E'\n$x\nE\nexit 4",
	"set -e; false; echo not", "set -eu; echo $unset; echo not", "set -x; echo traced", "set -o pipefail; false | true",
	"set -C; echo a > f; echo b > f",
	"echo a && false || echo c", "false; echo $?", "(exit 7)", "( trap 'echo sub' EXIT ); echo main", "trap 'echo mine' EXIT",
	"trap 'exit 9' EXIT; exit 2", "exec echo replaced", "exec false", "exec no-such-program", "no-such-program", "./not-there",
	"kill -SEGV $$", "kill -KILL $$", "sh -c 'kill -SEGV $$'", "sh -c 'kill -ABRT $$'; exit 5",
	"echo $0 $# $1", "echo \"$@\"", "echo $BASH_ENV; export -p | grep BASH_ENV", "-x", "--version", "# only a comment",
	"echo back\\", "echo \\\nslash", "echo a\r", "printf '%s' no-newline", "f() { return 4; }; f", "pwd() { echo mine; }; true",
	"wait", "echo $LINENO", "\necho $LINENO\nfalse )", "shopt -s extglob\necho !(a)", "alias x=echo; x 1", "cd /nowhere", "ulimit -c",
	"IFS=x; echo $0", "readonly PWD; cd /", "echo ümläut ✓", "echo $'\\xff'", "return 3", "break", "local a", "jobs", "echo !!",
	"history", "unset PATH; echo x", "echo ~ \"$HOME\"", "type -t builtin", "echo $SHLVL", "exec >/dev/null; echo gone", "exec 2>&1; nope",
}

func TestTextMeansWhatItMeansToBash(t *testing.T) {
	leaktest.Sequential(t)
	t.Parallel()
	s := newStage(t)
	if !s.script.dialect.Bash {
		t.Skip("needs bash in /usr/bin, /bin or /usr/local/bin")
	}
	for _, text := range texts {
		clear := func() { _ = os.Remove(filepath.Join(s.dir, "f")) }
		clear()
		info, stdout, stderr := s.run(t, text)
		clear()
		want := plainBash(t, s, text)
		got := outcome{info.Exit, stdout, crashed.ReplaceAllString(stderr, "")}
		if got != want {
			t.Errorf("%q:\ngot  %+v\nwant %+v", text, got, want)
		}
	}
}

// A command that ended its server before it started it anew ended its own shell instead: that had the name in its
// command line.
func TestTextFindsNotItself(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	if _, err := exec.LookPath("pkill"); !s.script.dialect.Bash || err != nil {
		t.Skip("needs bash and pkill")
	}
	for text, want := range map[string]outcome{
		`pkill -f "no-such-$PPID server"; echo "started $0 $#"`:                 {0, "started bash 0\n", ""},
		"pgrep -f 'no such server 42' || echo none":                             {0, "none\n", ""},
		"ps ax -o args | grep -c '[n]o such server 42'\nexit 3":                 {3, "0\n", ""},
		"set -eu; false; pgrep x":                                               {1, "", ""},
		": pgrep; cat <<E\nx $((1+1))\nE\nno-such-program $LINENO; cd /nowhere": {1, "x 2\n", "bash: line 4: no-such-program: command not found\nbash: line 4: cd: /nowhere: No such file or directory\n"},
	} {
		info, stdout, stderr := s.run(t, text)
		if got := (outcome{info.Exit, stdout, stderr}); got != want {
			t.Errorf("%q:\ngot  %+v\nwant %+v", text, got, want)
		}
	}
}

type outcome struct {
	exit           int
	stdout, stderr string
}

// plainBash is the oracle.
func plainBash(t *testing.T, s stage, text string) outcome {
	t.Helper()
	c := exec.Command(s.script.path, "--noprofile", "--norc", "-c", "--", text)
	c.Args[0] = "bash"
	c.Dir, c.Env = s.dir, []string{"PATH=/usr/local/bin:/usr/bin:/bin"}
	var stdout, stderr strings.Builder
	c.Stdout, c.Stderr = &stdout, &stderr
	if err := c.Run(); c.ProcessState == nil {
		t.Fatal(err)
	}
	exit := c.ProcessState.ExitCode()
	if exit < 0 {
		exit = 128 + int(signalOf(c.ProcessState))
	}
	return outcome{exit, stdout.String(), crashed.ReplaceAllString(stderr.String(), "")}
}

// crashed is how bash reports a signal. It does so if it waited for the program, and does not if the program was the
// last one and took its place, which the trap for EXIT prevents.
var crashed = regexp.MustCompile(`(?m)^bash: line \d+: +\d+ (Segmentation fault|Aborted).*\n`)

func TestCwd(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	sub := filepath.Join(s.dir, "a b'c\"$d")
	must(t, os.Mkdir(sub, 0o755))
	must(t, os.Symlink(sub, filepath.Join(s.dir, "link")))
	newline := filepath.Join(s.dir, "new\nline\n")
	must(t, os.Mkdir(newline, 0o755))
	for text, want := range map[string]string{
		"true":                            s.dir,
		"false":                           s.dir,
		"cd /; exit 3":                    "/",
		"cd /usr && false":                "/usr",
		"cd 'a b'*":                       sub,
		"cd link":                         sub,
		"cd new*":                         newline,
		"(cd /)":                          s.dir,
		"cd / | true":                     s.dir,
		"set -ex; cd /; false; cd /usr":   "/",
		"set -C; cd /":                    "/",
		"pwd() { echo /wrong; }; cd /":    "/",
		"cd /; exec true":                 "",
		"trap 'echo mine' EXIT; cd /usr":  "",
		"kill -KILL $$":                   "",
		"mkdir no; cd no; rmdir \"$PWD\"": "",
	} {
		if info, _, _ := s.run(t, text); info.Cwd != want {
			t.Errorf("%q ended in %q, want %q", text, info.Cwd, want)
		}
	}
}

// What a command leaves behind is not mistaken for a report.
func TestCwdOfEndedCommand(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	j := s.start(t, Command{Text: "cd /; echo ready; while :; do sleep 1000; done"})
	s.printed(t, j, "ready")
	j.interrupt(Killed)
	i, err := j.Wait(t.Context(), never)
	must(t, err)
	if i.State != Killed || i.Cwd != "" {
		t.Errorf("%s in %q, want killed without a directory", i.State, i.Cwd)
	}
	j.Release()
}

func TestInit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	init := filepath.Join(dir, "it's init")
	must(t, os.WriteFile(init, []byte("export FROM=init\nhello() { echo hello; }\n"), 0o600))
	for _, bash := range []bool{true, false} {
		s := newStage(t)
		if bash && !s.script.dialect.Bash {
			continue
		}
		s.script = script{path: "/bin/sh", init: init}
		if bash {
			s.script = script{path: "/usr/bin/bash", dialect: Dialect{Bash: true}, init: init}
		}
		info, stdout, stderr := s.run(t, "hello; sh -c 'echo $FROM'; cd /; exit 3")
		if stdout != "hello\ninit\n" || stderr != "" || info.Exit != 3 || info.Cwd != "/" {
			t.Errorf("bash %t: %q %q exit %d in %q", bash, stdout, stderr, info.Exit, info.Cwd)
		}
	}
}

// Without bash, sh does the same but for the numbers of lines.
func TestPlainSh(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.script = script{path: "/bin/sh"}
	for text, want := range map[string]outcome{
		"cd /; echo hi; exit 3":    {3, "hi\n", ""},
		"-x 2>/dev/null; echo $0":  {0, "sh\n", ""},
		"cat <<E\nx $((1+1))\nE":   {0, "x 2\n", ""},
		"set -e; false; echo not":  {1, "", ""},
		"trap 'echo mine' EXIT":    {0, "mine\n", ""},
		"( trap 'echo s' EXIT; ) ": {0, "s\n", ""},
	} {
		info, stdout, stderr := s.run(t, text)
		if got := (outcome{info.Exit, stdout, stderr}); got != want {
			t.Errorf("%q: %+v, want %+v", text, got, want)
		}
	}
}

func TestQuote(t *testing.T) {
	leaktest.Sequential(t)
	t.Parallel()
	s := newStage(t)
	for _, word := range []string{"", "a", "it's", "'", "''", `\'$x"`, "a\nb", "-n", "*", "/a b", "/é", "~", "#a", "{a,b}", "/a_1.b-c+d,e:f@g%h"} {
		for _, spelled := range []string{quote(word), Word(word)} {
			if _, got, _ := s.run(t, "printf %s "+spelled); got != word {
				t.Errorf("%q, as %s, became %q", word, spelled, got)
			}
		}
	}
	if got := Word("/a_1.b-c+d,e:f@g%h"); strings.Contains(got, "'") {
		t.Errorf("a plain path is %s", got)
	}
}

// The shell is the first that is there, in the places where systems and installers put one: on Windows the bash of Git,
// then PowerShell 7, then the one that Windows brings; never the bash of WSL.
func TestChooseShell(t *testing.T) {
	t.Parallel()
	const git, seven, old = `C:\Program Files\Git\bin\bash.exe`, `C:\Program Files\PowerShell\7\pwsh.exe`, `C:\Windows\System32\WindowsPowerShell\v1.0\powershell.exe`
	for _, c := range []struct {
		windows bool
		there   []string
		want    script
	}{
		{true, []string{git, seven, old}, script{path: git, dialect: Dialect{Bash: true}}},
		{true, []string{seven, old, `C:\Windows\System32\bash.exe`, `C:\work\bash.exe`}, script{path: seven, dialect: Dialect{PowerShell: "PowerShell 7"}}},
		{true, []string{old}, script{path: old, dialect: Dialect{PowerShell: "Windows PowerShell 5.1"}}},
		{true, []string{"/usr/bin/bash"}, script{}},
		{false, []string{"/usr/bin/bash", "/bin/bash", "/bin/sh"}, script{path: "/usr/bin/bash", dialect: Dialect{Bash: true}}},
		{false, []string{"/bin/sh", "/usr/local/bin/bash"}, script{path: "/usr/local/bin/bash", dialect: Dialect{Bash: true}}},
		{false, []string{"/bin/sh", "/usr/bin/pwsh"}, script{path: "/bin/sh"}},
		{false, nil, script{}},
	} {
		programs, system := "", ""
		if c.windows {
			programs, system = `C:\Program Files`, `C:\Windows`
		}
		got, err := chooseShell("", programs, system, func(path string) bool { return slices.Contains(c.there, path) })
		if got != c.want || errors.Is(err, ErrNoShell) != (c.want == script{}) {
			t.Errorf("of %q: %+v, %v", c.there, got, err)
		}
	}
}

// A PowerShell gets the text byte for byte in a file, so that no quote or line end of it means anything on the way; what
// it reports counts as with bash, and nothing is left of the files. The program is a fake that does what the real one
// does with them.
func TestPowerShell(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fake := filepath.Join(dir, "pwsh")
	must(t, os.WriteFile(fake, []byte(`#!/bin/sh
while [ $# -gt 2 ]; do printf '%s ' "$1"; shift; done
printf '%s\n' "$1"
base=${2%.ps1}
cat "$2" "$base.text.ps1"
echo / >"$base.cwd"
exit 3
`), 0o700))
	init := filepath.Join(dir, "it’s init.ps1")
	s := newStage(t)
	s.script = script{path: fake, dialect: Dialect{PowerShell: "PowerShell 7"}, init: init}
	const text = "Write-Output \"it's `\"$x\"\n& { exit 4 } # é ' ’"
	info, stdout, stderr := s.run(t, text)
	if info.Exit != 3 || stderr != "" || info.Cwd != "/" {
		t.Errorf("exit %d, %q, in %q", info.Exit, stderr, info.Cwd)
	}
	for _, want := range []string{
		"-NoLogo -NoProfile -NonInteractive -ExecutionPolicy Bypass -File\n", "\ufeff" + text + "\n$CodehandOK = $?\n",
		". '" + filepath.Join(dir, "it’’s init.ps1") + "'\n", ".text.ps1' } finally {", "if ($LASTEXITCODE) { exit $LASTEXITCODE }",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%q is missing in\n%s", want, stdout)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(s.dir, "*.ps1")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if got := s.Dialect(); got != (Dialect{PowerShell: "PowerShell 7"}) {
		t.Errorf("dialect %+v", got)
	}
}
