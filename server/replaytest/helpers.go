package replaytest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// Root is the directory of the module, seen from the package under test.
func Root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	must(t, err)
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("the tests do not run in a directory of the module")
		}
	}
}

// WriteFile writes a file that only its owner reads, or fails the test.
func WriteFile(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// Lay writes files below dir.
func Lay(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, []byte(text), 0o644))
	}
}

// Until waits for something outside of this process.
func Until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	limit := time.After(HangAfter)
	for !holds() {
		select {
		case <-look.C:
		case <-limit:
			t.Fatalf("%s: not within %v", what, HangAfter)
		}
	}
}

// AsJSON is a JSON object of names and values.
func AsJSON(t *testing.T, pairs ...any) string {
	t.Helper()
	m := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i].(string)] = pairs[i+1]
	}
	b, err := json.Marshal(m)
	must(t, err)
	return string(b)
}

// A LockedBuffer is a buffer that one goroutine fills while others look. Its zero value is empty.
type LockedBuffer struct {
	Mu    sync.Mutex
	b     bytes.Buffer
	wrote chan struct{} // closed by the next Write; nil: no goroutine waits
}

func (l *LockedBuffer) Write(p []byte) (int, error) {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	if l.wrote != nil {
		close(l.wrote)
		l.wrote = nil
	}
	return l.b.Write(p)
}

// Await waits until the buffer has text so many times. The error is that of ctx.
func (l *LockedBuffer) Await(ctx context.Context, text string, times int) error {
	for {
		l.Mu.Lock()
		have := bytes.Count(l.b.Bytes(), []byte(text))
		if l.wrote == nil {
			l.wrote = make(chan struct{})
		}
		wrote := l.wrote
		l.Mu.Unlock()
		if have >= times {
			return nil
		}
		select {
		case <-wrote:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (l *LockedBuffer) String() string {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	return l.b.String()
}

// PlantRoots makes two directories in a workspace.
func PlantRoots(t *testing.T, work string) {
	t.Helper()
	for _, name := range []string{"a/f.txt", "b/f.txt"} {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(work, name)), 0o700))
		must(t, os.WriteFile(filepath.Join(work, name), []byte("content\n"), 0o600))
	}
}

// RootsAnswer makes the answer of a client.
func RootsAnswer(roots ...string) string {
	list := []map[string]string{}
	for _, r := range roots {
		list = append(list, map[string]string{"uri": r})
	}
	raw, _ := json.Marshal(map[string]any{"roots": list}) // of strings alone
	return string(raw)
}

// bashPath is where hook scripts find their shell.
func bashPath(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("bash")
	switch {
	case err == nil:
		return path
	case os.Getenv("CI") != "":
		t.Fatal("needs bash: .ci/run installs it")
	}
	t.Skip("needs bash: install it")
	return ""
}

// HookScript writes a script and returns the command that runs it with these arguments.
func HookScript(t *testing.T, text string, args ...string) []string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "hook")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return append([]string{bashPath(t), path}, args...)
}

// Heard waits until hooks have written n lines to a file, and returns what they were told.
func Heard(t *testing.T, path string, n int) []map[string]any {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	late := time.After(HangAfter)
	for {
		text, _ := os.ReadFile(path) // it is not there yet
		if strings.Count(string(text), "\n") >= n {
			var told []map[string]any
			for line := range strings.Lines(string(text)) {
				var m map[string]any
				if err := json.Unmarshal([]byte(line), &m); err != nil {
					t.Fatalf("%q: %v", line, err)
				}
				told = append(told, m)
			}
			return told
		}
		select {
		case <-late:
			t.Fatalf("%d lines are wanted:\n%s", n, text)
		case <-tick.C:
		}
	}
}

// Skills are skills for tests: what they are by path below the workspace.
var Skills = map[string]string{
	".claude/skills/greet/SKILL.md": "---\nname: greet\ndescription: Says hello.\nargument-hint: " +
		"\"[who]\"\n---\nSay hello to $ARGUMENTS.\n",
	".claude/skills/deploy/SKILL.md": "---\nname: deploy\ndescription: Deploys it.\nargument-hint: " +
		"\"[staging|production] <patch | minor|major>\"\ndisable-model-invocation: true\n---\nDeploy to $0 as $1 " +
		"from ${CLAUDE_SKILL_DIR}.\n",
	".claude/skills/deploy/scripts/go.sh":  "echo deployed\n",
	".claude/skills/deploy/a b/notes?.txt": "one\ntwo\nthree\n",
	".claude/skills/deploy/logo.png":       "\x89PNG\r\n\x1a\n\x00\xff",
	".claude/skills/quiet/SKILL.md": "---\nname: quiet\ndescription: Is for models.\nuser-invocable: " +
		"false\n---\nHush.\n", ".claude/skills/broken/SKILL.md": "---\nname: broken\nNever shown.\n",
	".claude/skills/binary/SKILL.md": "---\nname: binary\n---\n\xff\xfe\n",
	".claude/skills/odd/SKILL.md":    "---\ndescription: [odd: {\nallowed-tools: 7\n---\nOdd, but a text.\n",
	".claude/skills/apart/SKILL.md":  "---\nname: apart\ndescription: Works alone.\ncontext: fork\n---\nThink.\n",
	".claude/skills/shelly/SKILL.md": "---\nname: shelly\ndescription: Wants commands.\n---\nIt is !`touch ran` " +
		"now.\n```!\ntouch ran\n```\nEnd.\n",
	".claude/skills/other-name/SKILL.md": "---\nname: another\ndescription: Calls itself differently.\n---\nHm.\n",
	".claude/commands/look.md":           "Look at $1 and $0.\n",
}

// LayBig writes 1 MB of numbered lines.
func LayBig(t *testing.T, work string) string {
	t.Helper()
	var b strings.Builder
	for i := 0; b.Len() < 1<<20; i++ {
		fmt.Fprintf(&b, "line %d of a long file\n", i)
	}
	must(t, os.WriteFile(filepath.Join(work, "big.txt"), []byte(b.String()), 0o644))
	return b.String()
}

// Secrets are secrets of 30 kinds, and how each comes into a command line. The last ones have no form that gives them
// away, only a name.
var Secrets = []struct{ Secret, Command string }{
	{"AKIAZQ3DGU5K7XEXAMPL", "aws configure set x %s"},
	{"wJalrXUtnFEMIb7MDENGcbPxRfiCYEXAMPLEKEY1", "aws_secret_access_key=%s true"},
	{"ghp_A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8", "echo %s"},
	{"github_pat_11ABCDEFG0abcdefghijklmnop", "git clone https://x:%s@github.com/a/b"},
	{"glpat-abcdefghij0123456789", "echo %s"},
	{"xoxb-123456789012-abcdefghijkl", "echo %s"},
	{"T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX", "curl https://hooks.slack.com/services/%s"},
	{"sk_live_abcdefghijklmnop0123", "echo %s"},
	{"AIzaSyA1234567890abcdefghijklmnopqrstuv", "echo %s"},
	{"sk-proj-abcdefghij0123456789abcdef", "echo '%s'"},
	{"sk-ant-api03-abcdefghij0123456789", "echo \"%s\""},
	{"npm_abcdefghij0123456789abcdefghij012345", "echo %s"},
	{"pypi-AgEIcHlwaS5vcmcCJDEyMzQ1Njc4", "echo %s"},
	{"dckr_pat_abcdefghij0123456789ab", "echo %s | cat"},
	{"hf_abcdefghijABCDEFGHIJ0123456789abcd", "echo %s"},
	{"SG.abcdefghijklmnopqrstuv.abcdefghijklmnopqrstuvwxyz0123456789", "echo %s"},
	{"dop_v1_0123456789abcdef0123456789abcdef", "echo %s"},
	{"dapi0123456789abcdef0123456789abcdef", "echo %s"},
	{"Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4", "echo 'AccountKey=%s=='"},
	{"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl", "curl -H 'Authorization: Bearer %s' file:///dev/null"},
	{"MIIEowIBAAKCAQEAexample", "echo '-----BEGIN RSA PRIVATE KEY-----\n%s\n-----END RSA PRIVATE KEY-----'"},
	{"chd_k3v7q2mzpa_abcdefghijklmnopqrstuvwxyz0123456789abcdefg", "echo %s"},
	{"correct-horse-1", "PASSWORD=%s true"},
	{"correct-horse-2", "true --password %s"},
	{"correct-horse-3", "true --client-secret='%s more'"},
	{"correct-horse-4", "curl -u bob:%s file:///dev/null"},
	{"correct-horse-5", "echo '{\"api_key\": \"%s\"}'"},
	{"correct-horse-6", "cat <<EOF\n%s\nEOF"},
	{"correct-horse-7", "curl 'file:///dev/null?sig=%s'"},
	{"correct-horse-8", "DB_DSN=%s true"},
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
