package server

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"codehand/server/replaytest"
)

// gitAt runs git in a directory as a person would.
func gitAt(t *testing.T, dir string, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	c := exec.Command("git", append([]string{"-c", "core.fsmonitor=false", "-C", dir}, args...)...)
	c.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=n", "GIT_AUTHOR_EMAIL=e@x",
		"GIT_COMMITTER_NAME=n", "GIT_COMMITTER_EMAIL=e@x")
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// repository makes the work directory of a fixture a git repository with one commit and an uncommitted change.
func repository(t *testing.T, dir string) {
	t.Helper()
	gitAt(t, dir, "init", "-q", "-b", "main")
	replaytest.WriteFile(t, filepath.Join(dir, "a.txt"), []byte("one\ntwo\n"))
	gitAt(t, dir, "add", "-A")
	gitAt(t, dir, "commit", "-q", "-m", "first")
	replaytest.WriteFile(t, filepath.Join(dir, "a.txt"), []byte("one\ntwo\nmine, not committed\n"))
}

// mainTree is every file of the main work tree with its content, and where its branch is.
func mainTree(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && (d.Name() == ".git" || d.Name() == ".codehand") {
			return filepath.SkipDir
		}
		text, _ := os.ReadFile(path)
		_, _ = fmt.Fprintf(&b, "%s %q\n", path, text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String() + gitAt(t, dir, "rev-parse", "HEAD", "main") + gitAt(t, dir, "diff", "--cached") + gitAt(t, dir, "status", "--porcelain")
}

var treeNote = regexp.MustCompile(`\n\[its changes are in work tree (\S+) on branch (codehand/w-[a-z2-7]{8}): [23] uncommitted files, 0 commits\. ` +
	`To merge them: git -C (\S+) add -A && git -C \S+ commit -m \.\.\., then git merge (\S+)\. To look or throw them away: enter_worktree `)

// An isolated sub-agent changes files in a work tree of its own: the main one stays as it is to the byte, by whatever name
// it is called, and the report says where the changes are.
func TestAgentApart(t *testing.T) {
	t.Parallel()
	m := &scripted{script: map[string][]scriptTurn{}}
	f := start(t, setup{model: m, settings: map[string]string{"permissions.mode": "bypassPermissions"}})
	repository(t, f.work)
	m.script["APART"] = []scriptTurn{
		{calls: []string{
			`read_file {"file_path":"a.txt"}`, fmt.Sprintf(`read_file {"file_path":%q}`, filepath.Join(f.work, "a.txt")),
			`list_files {"pattern":"**"}`,
		}},
		{calls: []string{
			`edit_file {"file_path":"a.txt","old_string":"two","new_string":"2"}`, `write_file {"file_path":"b.txt","content":"bee\n"}`,
			fmt.Sprintf(`write_file {"file_path":%q,"content":"x"}`, filepath.Join(f.work, "c.txt")),
			`write_file {"file_path":"../../../d.txt","content":"x"}`,
		}},
		{calls: []string{fmt.Sprintf(`run_shell {"command":"echo x > %[1]s/e.txt; echo y > in.out; git -C %[1]s rm -rqf .; git -C %[1]s checkout -q --detach; true"}`, f.work)}},
		{text: "done"},
	}
	before := mainTree(t, f.work)
	text, bad := f.say(t, "agent", `{"description":"x","prompt":"APART","isolation":"worktree"}`)
	said := treeNote.FindStringSubmatch(text)
	if bad || !strings.HasPrefix(text, "done\n[agent ") || said == nil {
		t.Fatalf("%v: %s", bad, text)
	}
	if after := mainTree(t, f.work); after != before {
		t.Errorf("the main work tree changed:\n%s\nwas\n%s", after, before)
	}
	tree, branch := said[1], said[2]
	if got, want := gitAt(t, tree, "symbolic-ref", "--short", "HEAD"), branch; got != want || said[3] != tree || said[4] != branch {
		t.Errorf("on %s; the report says %q", got, said)
	}
	if b, _ := os.ReadFile(filepath.Join(tree, "a.txt")); string(b) != "one\n2\n" {
		t.Errorf("a.txt is %q", b)
	}
	for i, want := range [][]string{{"1\tone\n2\ttwo", "OUTSIDE_ROOTS: ", "a.txt"}, {"Edited a.txt:2", "Created", "OUTSIDE_ROOTS: ", "OUTSIDE_ROOTS: "}} {
		got := m.results("APART", i+1)
		if len(got) != len(want) {
			t.Fatalf("%q", got)
		}
		for k := range want {
			if !strings.Contains(got[k], want[k]) {
				t.Errorf("call %d.%d: %s", i, k, got[k])
			}
		}
	}
	// what the report says about throwing away does that
	if text, bad := f.say(t, "enter_worktree", fmt.Sprintf(`{"path":%q}`, tree)); bad {
		t.Error(text)
	}
	if text, bad := f.say(t, "exit_worktree", `{"action":"remove","discard_changes":true}`); bad {
		t.Error(text)
	}
	if _, err := os.Lstat(tree); err == nil || gitAt(t, f.work, "branch", "--list", "codehand/*") != "" || mainTree(t, f.work) != before {
		t.Error("something is left")
	}
}

// A work tree in which nothing changed is removed; those of sub-agents side by side are apart from each other; what one
// committed is on its branch; a sub-agent that goes on does so in the same tree.
func TestAgentsApart(t *testing.T) {
	t.Parallel()
	m := &scripted{script: map[string][]scriptTurn{
		"LOOK":  {{calls: []string{`read_file {"file_path":"a.txt"}`}}, {text: "seen"}},
		"PARTA": {{calls: []string{`write_file {"file_path":"new.txt","content":"A\n"}`}}, {text: "A"}},
		"PARTB": {{calls: []string{`write_file {"file_path":"new.txt","content":"B\n"}`}}, {text: "B"}},
		"NAMED": {{calls: []string{`write_file {"file_path":"new.txt","content":"first\n"}`}}, {text: "wrote"},
			{calls: []string{`edit_file {"file_path":"new.txt","old_string":"first","new_string":"second"}`}}, {text: "edited"}},
	}}
	f := start(t, setup{model: m, settings: map[string]string{"permissions.mode": "bypassPermissions"}})
	repository(t, f.work)
	before := mainTree(t, f.work)
	text, bad := f.say(t, "agent", `{"description":"x","prompt":"LOOK","subagent_type":"explore","isolation":"worktree"}`)
	if bad || !strings.HasSuffix(text, "\n[it changed nothing: its work tree is removed]") {
		t.Errorf("%v: %s", bad, text)
	}
	if left, _ := filepath.Glob(filepath.Join(f.work, ".codehand/worktrees/w-*")); len(left) != 0 {
		t.Errorf("left: %q", left)
	}
	text, bad = f.say(t, "agent", `{"description":"x","tasks":[{"prompt":"PARTA"},{"prompt":"PARTB"}],"isolation":"worktree"}`)
	if bad {
		t.Fatal(text)
	}
	var wrote []string
	for _, at := range regexp.MustCompile(`in work tree (\S+) on branch`).FindAllStringSubmatch(text, -1) {
		b, _ := os.ReadFile(filepath.Join(at[1], "new.txt"))
		wrote = append(wrote, string(b))
	}
	if strings.Join(wrote, "") != "A\nB\n" {
		t.Errorf("the trees hold %q:\n%s", wrote, text)
	}
	text, bad = f.say(t, "agent", `{"description":"x","prompt":"NAMED","name":"nora","isolation":"worktree"}`)
	at := regexp.MustCompile(`in work tree (\S+) on branch (\S+):`).FindStringSubmatch(text)
	if bad || at == nil {
		t.Fatal(text)
	}
	if text, bad = f.say(t, "send_message", `{"to":"nora","message":"go on"}`); bad || !strings.Contains(text, "in work tree "+at[1]+" on branch") {
		t.Fatalf("%v: %s", bad, text)
	}
	if b, _ := os.ReadFile(filepath.Join(at[1], "new.txt")); string(b) != "second\n" {
		t.Errorf("the tree holds %q", b)
	}
	if after := mainTree(t, f.work); after != before {
		t.Errorf("the main work tree changed:\n%s\nwas\n%s", after, before)
	}
	// what the report says about merging does that
	gitAt(t, f.work, "checkout", "-q", "a.txt")
	gitAt(t, at[1], "add", "-A")
	gitAt(t, at[1], "commit", "-q", "-m", "theirs")
	gitAt(t, f.work, "merge", "-q", at[2])
	if b, _ := os.ReadFile(filepath.Join(f.work, "new.txt")); string(b) != "second\n" {
		t.Errorf("merged: %q", b)
	}
}

// Where no work tree may or can be made, no sub-agent starts.
func TestAgentApartRefused(t *testing.T) {
	t.Parallel()
	bypass := map[string]string{"permissions.mode": "bypassPermissions"}
	for name, c := range map[string]struct {
		settings map[string]string
		bare     bool // no repository
		before   string
		want     string
	}{
		"no repository": {bare: true, settings: bypass, want: "NOT_A_REPOSITORY: "},
		"plan mode":     {settings: map[string]string{"permissions.mode": "plan"}, want: "PLAN_MODE: "},
		"nobody asked":  {settings: map[string]string{"permissions.mode": "dontAsk", "sandbox.auto_allow": "false"}, want: "PERMISSION_DENIED: "},
		"a rule":        {settings: map[string]string{"permissions.mode": "bypassPermissions", "permissions.deny": "Bash(git worktree *)"}, want: "PERMISSION_DENIED: "},
		"a rule of the tool": {settings: map[string]string{"permissions.mode": "bypassPermissions", "permissions.deny": "enter_worktree"},
			want: "TOOL_DISABLED: "},
		"in one":  {before: `{"name":"mine"}`, settings: bypass, want: "IN_WORKTREE: "},
		"unknown": {want: "INPUT_INVALID: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &scripted{script: map[string][]scriptTurn{"TASK": {{text: "it ran"}}}}
			f := start(t, setup{model: m, settings: c.settings})
			if !c.bare {
				repository(t, f.work)
			}
			if c.before != "" {
				if text, bad := f.say(t, "enter_worktree", c.before); bad {
					t.Fatal(text)
				}
			}
			kind := "worktree"
			if name == "unknown" {
				kind = "remote"
			}
			text, bad := f.say(t, "agent", fmt.Sprintf(`{"description":"x","prompt":"TASK","isolation":%q}`, kind))
			if !bad || !strings.HasPrefix(text, c.want) || len(m.heard) != 0 {
				t.Errorf("%v: %s", bad, text)
			}
		})
	}
}

// A rule about the tool lets an isolated sub-agent work without another question.
func TestAgentApartAllowed(t *testing.T) {
	t.Parallel()
	m := &scripted{script: map[string][]scriptTurn{"TASK": {{text: "it ran"}}}}
	f := start(t, setup{model: m, settings: map[string]string{"permissions.allow": "agent"}})
	repository(t, f.work)
	text, bad := f.say(t, "agent", `{"description":"x","prompt":"TASK","isolation":"worktree"}`)
	if bad || !strings.HasPrefix(text, "it ran\n") {
		t.Errorf("%v: %s", bad, text)
	}
}

// What a rule says of a file at the top of the workspace holds for the one in a work tree that a session or a sub-agent
// works in: it has the same content.
func TestRulesInWorkTree(t *testing.T) {
	t.Parallel()
	m := &scripted{script: map[string][]scriptTurn{"TASK": {{calls: []string{`write_file {"file_path":"a.txt","content":"x"}`}}, {text: "done"}}}}
	f := start(t, setup{model: m, settings: map[string]string{"permissions.mode": "bypassPermissions", "permissions.deny": "Edit(/a.txt)"}})
	repository(t, f.work)
	if text, bad := f.say(t, "agent", `{"description":"x","prompt":"TASK","isolation":"worktree"}`); bad {
		t.Fatal(text)
	}
	if got := m.results("TASK", 1); len(got) != 1 || !strings.HasPrefix(got[0], "PERMISSION_DENIED: ") {
		t.Errorf("a sub-agent changes it: %q", got)
	}
	if text, bad := f.say(t, "enter_worktree", `{"name":"x"}`); bad {
		t.Fatal(text)
	}
	if text, _ := f.say(t, "write_file", `{"file_path":"a.txt","content":"x"}`); !strings.HasPrefix(text, "PERMISSION_DENIED: ") {
		t.Errorf("the session changes it: %s", text)
	}
}
