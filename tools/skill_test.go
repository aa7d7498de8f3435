package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	subagent "codehand/tools/agent"
	"codehand/tools/session"
	"codehand/tools/skills"
	"codehand/tools/tool"
)

// trusted hands the rig a directory of skills outside its root, and returns it.
func trusted(r *rig) string {
	r.t.Helper()
	dir, err := filepath.EvalSymlinks(r.t.TempDir())
	if err != nil {
		r.t.Fatal(err)
	}
	r.SkillDirs = []skills.Dir{{Path: dir, Trust: skills.User}}
	r.Space = r.Space.Readable(dir)
	return dir
}

// lay writes the SKILL.md of a skill.
func lay(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name, "SKILL.md"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestSkillLends(t *testing.T) {
	t.Parallel()
	var many []string
	for i := range 60 {
		many = append(many, fmt.Sprintf("  - Bash(a%d)", i))
	}
	for _, c := range []struct {
		name, allowed string
		project       bool
		shared        bool
		want          []string
		note          string
	}{
		{"none", "", false, false, nil, ""},
		{"some", "allowed-tools: Bash(git add:*), Edit", false, false, []string{"Bash(git add:*)", "Edit"}, ""},
		{"bad ones", "allowed-tools: [\"mcp__*\", \"Bash(\", Read, \"Grep(x)\", \"*\", \"Write(x)\"]", false, false, []string{"Read"}, `[allowed-tools that are not used: mcp__*, `},
		{"a project's", "allowed-tools: Bash", true, false, nil, "[allowed-tools of a project's skill are ignored]"},
		{"a project's without", "", true, false, nil, ""},
		{"shared", "allowed-tools: Bash", false, true, nil, "[allowed-tools are ignored: several conversations share this session]"},
		{"very many", "allowed-tools:\n" + strings.Join(many, "\n"), false, false, nil, "[of allowed-tools the first 50 rules count, 10 are left out]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.Shared = c.shared
			dir := trusted(r)
			if c.project {
				dir = filepath.Join(r.dir, ".claude", "skills")
			}
			lay(t, dir, "x", "---\ndescription: X.\n"+c.allowed+"\n---\nDo it.\n")
			res, text := r.do("skill", `{"skill":"x"}`)
			if res.Lends == nil {
				t.Fatalf("got %s", text)
			}
			if l := res.Lends; l.Skill != "x" || l.Life != 10*time.Minute || c.want != nil && !slices.Equal(l.Rules, c.want) || len(l.Rules) > 50 {
				t.Errorf("it lends %+v, want %q", l, c.want)
			}
			if c.want == nil && c.name != "very many" && len(res.Lends.Rules) > 0 {
				t.Errorf("it lends %q", res.Lends.Rules)
			}
			last := strings.TrimRight(text, "\n")
			last = last[strings.LastIndexByte(last, '\n')+1:]
			if c.note == "" && strings.HasPrefix(last, "[") || !strings.HasPrefix(last, c.note) {
				t.Errorf("the last line is %q, want %q", last, c.note)
			}
		})
	}
}

// Where only the machine's administrator may add rules that allow, a file in the home directory made some.
func TestSkillLendsNotWhereRulesAreManaged(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.Prefs.ManagedRules = true
	lay(t, trusted(r), "x", "---\nallowed-tools: Bash\n---\nDo it.\n")
	res, text := r.do("skill", `{"skill":"x"}`)
	if res.Lends == nil || len(res.Lends.Rules) > 0 || !strings.HasSuffix(text, "[allowed-tools are ignored: only the machine's administrator may add rules that allow]") {
		t.Errorf("it lends %+v: %s", res.Lends, text)
	}
}

// TestSkillShared: several conversations that share a session have not seen what another one loaded.
func TestSkillShared(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.write(".claude/commands/x.md", "Do it.\n")
	first := r.ok("skill", `{"skill":"x"}`)
	if again := r.ok("skill", `{"skill":"x"}`); again == first || !strings.HasPrefix(again, "Already loaded above") {
		t.Errorf("got %q", again)
	}
	r.Shared = true
	for range 2 {
		if again := r.ok("skill", `{"skill":"x"}`); again != first {
			t.Errorf("shared: got %q", again)
		}
	}
	// Nor is there anything to count on when the Store does not keep it.
	r.Shared, r.Told = false, session.Cell[map[string]string]{}
	for range 2 {
		if again := r.ok("skill", `{"skill":"x"}`); again != first {
			t.Errorf("without a store: got %q", again)
		}
	}
}

func TestSkillLoadedIsBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	full := map[string]string{}
	for i := range 200 {
		full[fmt.Sprint("x", i)] = "sum"
	}
	if _, err := r.Told.Change(t.Context(), func(map[string]string) (map[string]string, error) { return full, nil }); err != nil {
		t.Fatal(err)
	}
	r.write(".claude/commands/one-more.md", "Do it.\n")
	r.ok("skill", `{"skill":"one-more"}`)
	if shown, err := r.Told.Load(t.Context()); err != nil || len(shown) > 200 || shown["one-more"] == "" {
		t.Errorf("%d are remembered, %v", len(shown), err)
	}
}

func TestSkillRefusals(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i := range 30 {
		r.write(fmt.Sprintf(".claude/commands/cmd%d.md", i), "Do it.\n")
	}
	r.write(".claude/commands/long.md", "$ARGUMENTS"+strings.Repeat("$ARGUMENTS", 1000))
	r.write(".claude/commands/agent.md", "---\ncontext: fork\n---\nSearch.\n")
	for args, want := range map[string]string{
		`{"skill":"cmd7x"}`:                                             "SKILL_UNKNOWN: Unknown skill: cmd7x. Available: cmd7, cmd",
		`{"skill":"zzz\nSkill"}`:                                        `SKILL_UNKNOWN: Unknown skill: zzz\x0aSkill. Available: `,
		`{"skill":"` + strings.Repeat("x", 201) + `"}`:                  `INPUT_INVALID: Input validation failed for skill:` + "\n" + `- "skill" must have at most 200 bytes`,
		`{"skill":"long","args":"` + strings.Repeat("ä", 10_000) + `"}`: "TOO_LARGE: The skill long cannot be loaded: ",
		`{"skill":"long","args":"` + strings.Repeat("ä", 10_001) + `"}`: "INPUT_INVALID: ",
		`{"skill":"agent"}`:                                             "TOOL_DISABLED: The skill agent is not available: it is for a sub-agent of type general-purpose, and none can be started here. Read its text in ",
	} {
		if _, got := r.do("skill", args); !strings.HasPrefix(got, want) || len([]rune(got)) > 1000 {
			t.Errorf("%.60s: got %s, want %s", args, got, want)
		}
	}
	if _, got := r.do("skill", `{"skill":"cmd"}`); !strings.HasSuffix(got, " and 12 more.") {
		t.Errorf("got %s", got)
	}
	r.State.Skills = skills.New()
	if err := r.Store.Close(); err != nil {
		t.Fatal(err)
	}
	if _, got := r.do("skill", `{"skill":"cmd1"}`); !strings.HasPrefix(got, "STATE_UNAVAILABLE: ") {
		t.Errorf("without the store: %s", got)
	}
}

// A skill for a sub-agent names the tool that starts one, where the server can execute it.
func TestSkillForAgent(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.write(".claude/skills/far/SKILL.md", "---\ncontext: fork\nagent: Explore\n---\nSearch.\n")
	far := filepath.Join(r.dir, ".claude/skills/far/SKILL.md")
	with := subagent.New(subagent.Options{Auto: true, Sampling: true, Limits: subagent.Limits{Depth: 1}})
	for name, c := range map[string]struct {
		change func()
		want   string
	}{
		"nobody":   {func() { r.engines.Agents, r.Samples = with, false }, "none can be started here"},
		"somebody": {func() { r.engines.Agents, r.Samples = with, true }, `Call agent with subagent_type "Explore" and a prompt that holds the task and the text of ` + far + "."},
		"too deep": {func() { r.engines.Agents, r.Samples, r.Depth = with, true, 1 }, "none can be started here"},
		"no tool":  {func() { r.engines.Agents, r.Samples, r.Depth, r.Catalog = with, true, 0, nil }, "none can be started here"},
	} {
		found := r.Catalog
		c.change()
		if _, got := r.do("skill", `{"skill":"far"}`); !strings.HasPrefix(got, "TOOL_DISABLED: ") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %s", name, got)
		}
		r.Depth, r.Catalog = 0, found
	}
}

// A skill without arguments was refused for its "args" where the name of a directory would have been code.
func TestSkillInOddDirectory(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.Prefs.SkillShell = true
	dir := filepath.Join(trusted(r), "a (b)")
	r.SkillDirs[0].Path = dir
	lay(t, dir, "x", "!`ls ${CLAUDE_SKILL_DIR}`\n")
	call, err := skill(nil).Bind(r.State, json.RawMessage(`{"skill":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	env := r.Env(call)
	env.Call = func(context.Context, string, json.RawMessage, *tool.Loan) (tool.Result, error) {
		t.Error("it runs")
		return tool.Result{}, nil
	}
	if _, err = call.Run(t.Context(), env); err == nil || !strings.HasPrefix(err.Error(), "SKILL_DENIED: The skill x was not loaded: ") || !strings.Contains(err.Error(), dir) {
		t.Errorf("got %v", err)
	}
}

// TestSkillFiles: at most 50 files are named, each on the one line.
func TestSkillFiles(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i := range 60 {
		r.write(fmt.Sprintf(".claude/skills/x/f%02d.md", i), "")
	}
	r.write(".claude/skills/x/SKILL.md", "Do it.\n")
	head, _, _ := strings.Cut(r.ok("skill", `{"skill":"x"}`), "\n")
	if n := strings.Count(head, ".md"); n != 50 || !strings.HasSuffix(head, "f49.md, …") {
		t.Errorf("%d files: %s", n, head)
	}
}

// TestSkillCommands: the commands of a trusted skill are calls of run_shell, with what the skill lends. A project's never
// are, nor are those that are written for another shell.
func TestSkillCommands(t *testing.T) {
	t.Parallel()
	type made struct {
		name, command string
		loan          *tool.Loan
	}
	failure := tool.Refuse(tool.PermissionDenied, "Permission denied: run_shell: no.\nmore")
	ours := errors.New("a fault of ours")
	for _, c := range []struct {
		name, text string
		project    bool
		off        bool
		result     tool.Result
		err        error
		calls      []string
		want       string // the end of the text, or the refusal
	}{
		{"runs", "A !`one` B !`two`", false, false, tool.Result{Text: "out"}, nil, []string{"one", "two"}, "A out B out"},
		{"nothing printed", "A!\n!`one`.", false, false, tool.Result{Text: "(no output)"}, nil, []string{"one"}, "A!\n."},
		{"fails", "!`one`", false, false, tool.Result{Text: "COMMAND_FAILED: x", Failed: tool.CommandFailed}, nil, []string{"one"}, "\nCOMMAND_FAILED: x"},
		{"not looked at again", "!`one`", false, false, tool.Result{Text: "!`two` $ARGUMENTS"}, nil, []string{"one"}, "!`two` $ARGUMENTS"},
		{"refused", "!`one` !`two`", false, false, tool.Result{}, failure, []string{"one"},
			"SKILL_DENIED: The skill x was not loaded: its command `one` was refused: PERMISSION_DENIED: Permission denied: run_shell: no. Tell the user."},
		{"cancelled", "!`one`", false, false, tool.Result{}, tool.Refuse(tool.Interrupted, "Tool execution cancelled by user."), []string{"one"}, "CANCELLED: Tool execution cancelled by user."},
		{"a fault", "!`one`", false, false, tool.Result{}, ours, []string{"one"}, "a fault of ours"},
		{"a project's", "!`one`", true, false, tool.Result{}, nil, nil, "[shell command execution disabled by policy]"},
		{"switched off", "!`one`", false, true, tool.Result{}, nil, nil, "[shell command execution disabled by policy]"},
		{"another shell", "---\nshell: powershell\n---\n!`one`", false, false, tool.Result{}, nil, nil, "[shell command execution disabled by policy]"},
		{"too many", strings.Repeat("!`one`\n", 51), false, false, tool.Result{}, nil, nil, "TOO_LARGE: The skill x cannot be loaded: the skill has more than 50 commands. Tell the user."},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.Prefs.SkillShell = !c.off
			dir := trusted(r)
			if c.project {
				dir = filepath.Join(r.dir, ".claude", "skills")
			}
			lay(t, dir, "x", c.text)
			call, err := skill(nil).Bind(r.State, json.RawMessage(`{"skill":"x"}`))
			if err != nil {
				t.Fatal(err)
			}
			if call.Traits.Ungated == c.off {
				t.Errorf("ungated: %v", call.Traits.Ungated)
			}
			var calls []made
			env := r.Env(call)
			env.Call = func(_ context.Context, name string, input json.RawMessage, loan *tool.Loan) (tool.Result, error) {
				var in struct{ Command string }
				if err := json.Unmarshal(input, &in); err != nil {
					t.Error(err)
				}
				calls = append(calls, made{name, in.Command, loan})
				return c.result, c.err
			}
			res, err := call.Run(t.Context(), env)
			got := res.Text
			if err != nil {
				got = err.Error()
			}
			if !strings.HasSuffix(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
			var commands []string
			for _, m := range calls {
				commands = append(commands, m.command)
				if m.name != "run_shell" || m.loan == nil || m.loan.Skill != "x" {
					t.Errorf("called %s with %+v", m.name, m.loan)
				}
			}
			if !slices.Equal(commands, c.calls) {
				t.Errorf("ran %q, want %q", commands, c.calls)
			}
		})
	}
}
