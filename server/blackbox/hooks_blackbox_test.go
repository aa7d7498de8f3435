package blackbox

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
	"codehand/tools/hooks"
)

const guardScript = `told=$(cat)
[ "$PWD" = "$CLAUDE_PROJECT_DIR" ] || { echo "in $PWD, not in $CLAUDE_PROJECT_DIR" >&2; exit 2; }
case $told in
*'"tool_name":"Bash"'*'rm -rf'*) echo 'rm -rf is not allowed here' >&2; exit 2 ;;
*'"tool_name":"Bash"'*'"command":"make'*)
	echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow","updatedInput":{"command":"echo instead of make"}}}' ;;
*'"tool_name":"Bash"'*'"command":"bad'*) echo '{"hookSpecificOutput":{"permissionDecision":"allow","updatedInput":{"comand":"x"}}}' ;;
*'"tool_name":"Write"'*secret*) echo '{"decision":"block","reason":"no secrets"}' ;;
*) echo '{"decision":"approve"}' ;;
esac
`

// formatScript formats the file that was written, as formatters do that people have as hooks.
const formatScript = `path=$(sed -nE 's/.*"file_path":"([^"]*)".*/\1/p')
sed -i 's/^  */\t/' "$path"
`

// TestHooksBinary: hooks of the user's file around calls of the built program. A project's hooks run only if the user
// says so.
func TestHooksBinary(t *testing.T) {
	t.Parallel()
	path := replaytest.Program(t)
	for _, trusted := range []bool{false, true} {
		t.Run(fmt.Sprint("project trusted ", trusted), func(t *testing.T) {
			t.Parallel()
			base := leaktest.Dir(t)
			work, out := filepath.Join(base, "work"), filepath.Join(base, "told")
			lay := func(path, text string) {
				t.Helper()
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			words := func(command []string) string {
				b, err := json.Marshal(command)
				if err != nil {
					t.Fatal(err)
				}
				return string(b)
			}
			lay(filepath.Join(base, ".config", "codehand", "config.toml"), fmt.Sprintf(`
[hooks]
trust_project = %v

[[hooks.PreToolUse]]
matcher = "Bash|Write"
command = %s

[[hooks.PostToolUse]]
matcher = "Write"
command = %s
timeout_ms = 30000

[[hooks.SessionEnd]]
command = %s

[[hooks.FileChanged]]
matcher = "a.go"
command = %s
`, trusted, words(replaytest.HookScript(t, guardScript)), words(replaytest.HookScript(t, formatScript)), words(replaytest.HookScript(t, `cat >>"$1"`, out)), words(replaytest.HookScript(t, `cat >>"$1"`, out))))
			lay(filepath.Join(work, ".codehand", "config.toml"), "[[hooks.PreToolUse]]\nmatcher = \"Read\"\ncommand = "+
				words([]string{"bash", filepath.Join(work, "guard")})+"\n")
			lay(filepath.Join(work, "guard"), `echo "the project says no" >&2; exit 2`) // it sees what commands see

			cmd := exec.Command(path, "stdio", work)
			cmd.Dir = work
			cmd.Env = []string{"HOME=" + base, "PATH=" + os.Getenv("PATH"), "XDG_STATE_HOME=" + base, "CODEHAND_SESSION=" + replaytest.Handle}
			p := replaytest.Speak(t, cmd, "hooks-test", false)

			file := filepath.Join(work, "a.go")
			got := p.Must(t, "write_file", fmt.Sprintf(`{"file_path":%q,"content":"func main() {\n  x()\n}\n"}`, file))
			if !strings.Contains(got, "[a hook changed "+file+" after this edit]") || !strings.Contains(got, "+\tx()") {
				t.Errorf("write_file: %q", got)
			}
			// The formatter's change was shown whole, so the file need not be read again.
			for _, c := range []struct{ tool, args, want string }{
				{"edit_file", fmt.Sprintf(`{"file_path":%q,"old_string":"\tx()","new_string":"\ty()"}`, file), `^Edited a\.go:2 \(\+1 -1\)`},
				{"run_shell", `{"command":"cd . && rm -rf build"}`, `^! HOOK_BLOCKED: Blocked by a hook: rm -rf is not allowed here\n! The operator can change that hook \(.*config\.toml:5:3\); tell the user\.\n?$`},
				{"run_shell", `{"command":"make all"}`, `^instead of make\n?$`},
				{"run_shell", `{"command":"bad"}`, `^! INPUT_INVALID: `},
				{"run_shell", `{"command":"echo fine"}`, `^fine\n?$`},
				{"write_file", fmt.Sprintf(`{"file_path":%q,"content":"x"}`, filepath.Join(work, "secret.txt")), `^! HOOK_BLOCKED: Blocked by a hook: no secrets\n! The operator can change that hook \(.*config\.toml:5:3\); tell the user\.\n?$`},
			} {
				if got := p.Must(t, c.tool, c.args); !regexp.MustCompile(c.want).MatchString(got) {
					t.Errorf("%s %s: %q, want %s", c.tool, c.args, got, c.want)
				}
			}
			got = p.Must(t, "read_file", fmt.Sprintf(`{"file_path":%q}`, file))
			if blocked := strings.HasPrefix(got, "! HOOK_BLOCKED: Blocked by a hook: the project says no"); blocked != trusted {
				t.Errorf("read_file: %q", got)
			}
			replaytest.Heard(t, out, 2) // a.go was written and edited
			ending := time.Now()
			_ = p.In.Close()
			for range p.Lines { // to its end
			}
			if err := p.Cmd.Wait(); err != nil {
				t.Errorf("it ended with %v; stderr:\n%s", err, p.Stderr)
			}
			took := time.Since(ending)
			runner, err := hooks.New(hooks.Options{})
			must(t, err)
			changes, ends := 0, 0
			for _, m := range replaytest.Heard(t, out, 2) {
				switch m["hook_event_name"] {
				case hooks.SessionEnd:
					ends++
				case hooks.FileChanged:
					changes++
					if m["file_path"] != file {
						t.Errorf("told %v", m)
					}
				}
			}
			// A program that a slow machine has not started within its grace is ended.
			if changes != 2 || ends > 1 || ends == 0 && took < runner.Grace {
				t.Errorf("told of %d changes and %d ends; the end took %v", changes, ends, took)
			}
		})
	}
}
