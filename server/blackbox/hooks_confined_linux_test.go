package blackbox

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
)

// wayOut tries what a program of a project is not to do, and writes what it could into the project.
const wayOut = `told=$(cat)
exec 2>/dev/null
cd "$CLAUDE_PROJECT_DIR" || exit 1
{
	cat ../private.txt && echo "read a file beside the project"
	echo x >../"${1##*/}.out" # in the sandbox of a test below /tmp that is a directory of its own
	echo x >.git/hooks/post-commit && echo "made a hook of git"
	echo x >>.git/config && echo "changed git's configuration"
	echo work >in-project && echo done
} >"$1"
`

// TestProjectHooksConfined: a hook of a project that is trusted to run is confined as a command that writes; one of the
// operator is not.
func TestProjectHooksConfined(t *testing.T) {
	t.Parallel()
	h := settle(t)
	if confinedLevel(t, h) < 3 {
		t.Skip("needs a machine that proves sandbox level 3")
	}
	base := leaktest.Dir(t)
	work := filepath.Join(base, "work")
	write := func(path, text string) {
		t.Helper()
		must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must(t, os.WriteFile(path, []byte(text), 0o600))
	}
	shell, err := exec.LookPath("bash")
	must(t, err)
	hook := func(args ...string) string {
		command, err := json.Marshal(append([]string{shell}, args...))
		must(t, err)
		return "[[hooks.PostToolUse]]\nmatcher = \"Write\"\ncommand = " + string(command) + "\n"
	}
	script := filepath.Join(work, "hook.sh")
	write(script, wayOut)
	write(filepath.Join(base, "private.txt"), "private\n")
	write(filepath.Join(work, ".git", "HEAD"), "ref: refs/heads/main\n")
	write(filepath.Join(work, ".git", "config"), "[core]\n")
	must(t, os.Mkdir(filepath.Join(work, ".git", "hooks"), 0o700))
	write(filepath.Join(base, ".config", "codehand", "config.toml"), "[hooks]\ntrust_project = true\n\n"+
		hook(script, filepath.Join(work, "of-user")))
	write(filepath.Join(work, ".codehand", "config.toml"), hook(script, filepath.Join(work, "of-project")))

	cmd := exec.Command(replaytest.Program(t), "stdio", work)
	cmd.Dir = work
	cmd.Env = []string{"HOME=" + base, "PATH=" + os.Getenv("PATH"), "XDG_STATE_HOME=" + filepath.Join(base, "state")}
	p := replaytest.Speak(t, cmd, "hooks-test", false)
	p.Must(t, "write_file", `{"file_path":"a.txt","content":"x\n"}`)
	read := func(name string) string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(work, name))
		must(t, err)
		return string(text)
	}
	if got := read("of-project"); got != "done\n" {
		t.Errorf("a hook of the project could: %s", got)
	}
	if _, err := os.Stat(filepath.Join(base, "of-project.out")); err == nil {
		t.Error("a hook of the project wrote beside it")
	}
	if _, err := os.Stat(filepath.Join(base, "of-user.out")); err != nil {
		t.Error(err)
	}
	if got := read("of-user"); !strings.Contains(got, "read a file beside the project") {
		t.Errorf("a hook of the user could only: %s", got)
	}
}
