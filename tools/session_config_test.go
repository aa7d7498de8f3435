package tools

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"codehand/tools/confine"
	"codehand/tools/sandbox"
	"codehand/tools/session"
	"codehand/tools/tool"
)

// Without its memory a session has no options, and nothing of it seems to be set.
func TestSessionConfigWithoutMemory(t *testing.T) {
	t.Parallel()
	const want = "STATE_UNAVAILABLE: The state store does not answer, so changes are refused. Reading works. Try again."
	whole, deaf := newRig(t), newRig(t)
	if err := whole.Store.Close(); err != nil {
		t.Fatal(err)
	}
	same(t, whole.fails(tool.StateUnavailable, "session_config", `{}`), want)
	if err := deaf.Store.Close(); err != nil { // only what was chosen can be read
		t.Fatal(err)
	}
	deaf.Choices = session.NewCell[session.Choices](fullMemory{}, "cell.choices")
	deaf.ok("session_config", `{}`)
	for _, args := range []string{
		`{"key":"result_cap","value":"600"}`, `{"key":"cwd","value":"$WORK"}`, `{"key":"cwd","value":"default"}`, `{"key":"read_state","value":"reset"}`,
	} {
		same(t, deaf.fails(tool.StateUnavailable, "session_config", args), want)
	}
}

// fullMemory takes nothing more.
type fullMemory struct{}

func (fullMemory) Get(context.Context, string) ([]byte, uint64, error) { return nil, 0, nil }
func (fullMemory) GetAll(_ context.Context, keys ...string) ([][]byte, []uint64, error) {
	return make([][]byte, len(keys)), make([]uint64, len(keys)), nil
}
func (fullMemory) Swap(context.Context, string, []byte, uint64) (bool, error) {
	return false, errors.New("full")
}

// A directory of a hostile repository, whose name goes on in a second line, looked like a second option.
func TestSessionConfigShowsOneLine(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("no name has a line feed in it")
	}
	r := newRig(t)
	if err := os.Mkdir(filepath.Join(r.dir, "sub\nread_dedup = on (on)"), 0o700); err != nil {
		t.Fatal(err)
	}
	same(t, r.ok("session_config", `{"key":"cwd","value":"sub\nread_dedup = on (on)"}`), `cwd = $WORK/sub\x0aread_dedup = on (on) (a directory in $WORK)`)
}

// A session that has read much forgets all of it at once.
func TestSessionConfigForgetsMuch(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const files = 300
	for i := range files {
		r.write(fmt.Sprintf("f%d", i), "one\n")
		r.ok("read_file", fmt.Sprintf(`{"file_path":"f%d"}`, i))
	}
	same(t, r.ok("session_config", `{"key":"read_state","value":"reset"}`), "300 files no longer count as read. Read a file again before you change it.")
	r.fails(tool.FileNotRead, "edit_file", `{"file_path":"f0","old_string":"one","new_string":"1"}`)
	r.fails(tool.FileNotRead, "write_file", fmt.Sprintf(`{"file_path":"f%d","content":"1"}`, files-1))
	same(t, r.ok("read_file", `{"file_path":"f0"}`), "1\tone")
	r.ok("edit_file", `{"file_path":"f0","old_string":"one","new_string":"1"}`)
}

// The answer without a key says where the session works, and how far its commands are confined, as soon as that is known.
func TestSessionConfigSaysHowConfined(t *testing.T) {
	t.Parallel()
	for level, want := range map[sandbox.Level]string{
		0:                   " in $WORK, mode default.",
		sandbox.LevelLimits: " in $WORK, mode default. Commands are not confined to them.",
		sandbox.LevelFull:   " in $WORK, mode default. Commands are confined to them and have no network.",
	} {
		r := newRig(t)
		o := confine.Options{Network: confine.Network{Network: sandbox.NetworkOff}, Known: func() (sandbox.Report, bool) {
			return sandbox.Report{Level: level}, level > 0
		}}
		r.Confine = &confine.Session{Confiner: confine.New(o, func() []string { return nil })}
		line, _, _ := strings.Cut(r.ok("session_config", `{}`), "\n")
		same(t, line, "Your directories: $WORK. This session is"+want)
	}
}

// What a rule hides is no directory, like one that does not exist, also behind a link; and nothing but a directory is one.
func TestSessionConfigDirectories(t *testing.T) {
	t.Parallel()
	r := newRig(t, "Read(secret/**)")
	r.write("secret/deep/a", "x")
	r.write("open/b", "x")
	if err := os.Symlink("secret/deep", filepath.Join(r.dir, "link")); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"secret/deep":   "FILE_NOT_FOUND: Directory does not exist: secret/deep. Current directory: $WORK.",
		"secret/none":   "FILE_NOT_FOUND: Directory does not exist: secret/none. Current directory: $WORK.",
		"secret/deep/a": "FILE_NOT_FOUND: Directory does not exist: secret/deep/a. Current directory: $WORK.",
		"link":          "FILE_NOT_FOUND: Directory does not exist: link. Current directory: $WORK.",
		"opne":          "FILE_NOT_FOUND: Directory does not exist: opne. Current directory: $WORK. Did you mean $WORK/open?",
		"open/b":        "NOT_DIRECTORY: open/b is not a directory. Name its directory.",
		"open/b/c":      "NOT_DIRECTORY: A part of open/b/c is a file where a directory is needed. Current directory: $WORK.",
		"..":            "OUTSIDE_ROOTS: .. is outside the allowed directories: $WORK. Ask the user to add the directory to the server's roots (for stdio: after \"stdio\" in the client's configuration).",
		"//host/share":  "",
	} {
		res, got := r.do("session_config", fmt.Sprintf(`{"key":"cwd","value":%q}`, path))
		if got = strings.ReplaceAll(got, r.dir, "$WORK"); res.Failed == "" || want != "" && got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", path, got, want)
		}
	}
	if cwd, err := r.Cwd.Load(t.Context()); cwd != "" || err != nil {
		t.Errorf("the directory is %q, %v", cwd, err)
	}
}
