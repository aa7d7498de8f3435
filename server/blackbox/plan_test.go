package blackbox

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
	"codehand/tools"
)

// A planner is a client of the built program that is led through plan mode.
type planner struct {
	*replaytest.ElicitClient
	work, state string
	plan        string // the plan file
}

// eachPlanner runs a test against the built program on each way on which a person can be asked. set are settings.
func eachPlanner(t *testing.T, caps string, set map[string]string, test func(t *testing.T, p *planner)) {
	for _, k := range leaktest.Some(3, []wireKind{{"stdio", "legacy"}, {"stdio", "modern"}, {"http", "legacy"}, {"http", "modern"}}) {
		t.Run(k.transport+"/"+k.era, func(t *testing.T) {
			t.Parallel()
			p := planOnPipe
			if k.transport == "http" {
				p = planOnHTTP
			}
			test(t, p(t, &replaytest.ElicitClient{T: t, Modern: k.era == "modern", Caps: caps}, set))
		})
	}
}

// planOnPipe connects a client that is ready but for its connection.
func planOnPipe(t *testing.T, c *replaytest.ElicitClient, set map[string]string) *planner {
	t.Helper()
	path := replaytest.Program(t)
	work, home := resolved(t), resolved(t)
	args := []string{"stdio", work}
	for k, v := range set {
		args = append(args, "--"+replaytest.FlagOf(k)+"="+v)
	}
	cmd := exec.Command(path, args...)
	cmd.Dir, cmd.Env = work, []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "XDG_STATE_HOME=" + home}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := leaktest.Start(cmd); err != nil {
		t.Fatal(err)
	}
	w := replaytest.NewWire(in, out, "plan-test", c.Modern)
	t.Cleanup(func() {
		_ = in.Close()
		for range w.Lines { // to the end of its output, as Wait demands
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("the program ended with %v", err)
		}
	})
	return &planner{ElicitClient: replaytest.OnPipeAs(t, w, c), work: work, state: filepath.Join(home, "codehand")}
}

// planOnHTTP has a handle, so its session is the conversation's own in both eras.
func planOnHTTP(t *testing.T, c *replaytest.ElicitClient, set map[string]string) *planner {
	t.Helper()
	var env []string
	for k, v := range set {
		if k == "config" {
			continue // the user's file of the deployment
		}
		env = append(env, "CODEHAND_"+strings.ToUpper(strings.ReplaceAll(k, ".", "_"))+"="+v)
	}
	d := deploy(t, env...)
	if from := set["config"]; from != "" {
		text, err := os.ReadFile(from)
		must(t, err)
		replaytest.Lay(t, d.home, map[string]string{".config/codehand/config.toml": string(text)})
	}
	if mode := set["permissions.mode"]; mode != "" {
		d.token = d.mint("--mode", mode)
	}
	h := &replaytest.HTTPClient{T: t, URL: d.serve().url + "/mcp/s/plan-test-handle", Token: d.token}
	return &planner{ElicitClient: replaytest.OverHTTPAs(t, h, c), work: d.work, state: filepath.Join(d.home, "state", "codehand")}
}

func resolved(t *testing.T) string {
	t.Helper()
	dir := leaktest.Dir(t)
	return dir
}

// args are arguments in which $WORK, $STATE and $PLAN stand for paths.
func (p *planner) args(text string) string {
	return strings.NewReplacer("$WORK", p.work, "$STATE", p.state, "$PLAN", p.plan).Replace(text)
}

func (p *planner) do(name, args string) replaytest.ElicitAnswer {
	p.T.Helper()
	return p.Call(name, p.args(args), replaytest.Never(p.T))
}

// allowed is do for a call that must succeed.
func (p *planner) allowed(name, args string) string {
	p.T.Helper()
	a := p.do(name, args)
	if a.Failed {
		p.T.Errorf("%s %s is refused: %s", name, args, a.Text)
	}
	return a.Text
}

// refused is do for a call that must fail with a code.
func (p *planner) refused(code, name, args string) {
	p.T.Helper()
	if a := p.do(name, args); !a.Failed || !strings.HasPrefix(a.Text, code+": ") {
		p.T.Errorf("%s %s: want %s, got %s", name, args, code, a.Text)
	}
}

// enter enters plan mode and notes the plan file.
func (p *planner) enter() {
	p.T.Helper()
	text := p.allowed("enter_plan_mode", `{}`)
	m := regexp.MustCompile(`(?m)^Plan mode is on\. Plan file: (/.+)$`).FindStringSubmatch(text)
	if m == nil {
		p.T.Fatalf("enter_plan_mode: %s", text)
	}
	p.plan = m[1]
}

// stays checks that plan mode is on, and that the plan alone can be changed.
func (p *planner) stays(after string) {
	p.T.Helper()
	if a := p.do("write_file", `{"file_path":"$WORK/a.txt","content":"x"}`); !strings.HasPrefix(a.Text, "PLAN_MODE: Blocked in plan mode: write_file. ") {
		p.T.Fatalf("after %s: %s", after, a.Text)
	}
}

func (p *planner) put(name, text string) {
	p.T.Helper()
	if err := os.WriteFile(p.args(name), []byte(text), 0o600); err != nil {
		p.T.Fatal(err)
	}
}

// holds checks that a file is as it should be.
func (p *planner) holds(name, want string) {
	p.T.Helper()
	got, err := os.ReadFile(p.args(name))
	if err != nil || string(got) != want {
		p.T.Errorf("%s holds %q (%v), want %q", name, got, err, want)
	}
}

// writers are calls of every tool that can change something, none of which may go on in plan mode. free are those that
// change the session's own memory only.
var writers = map[string][]string{
	"write_file": {`{"file_path":"$WORK/a.txt","content":"x"}`, `{"file_path":"$WORK/new.txt","content":"x"}`, `{"file_path":"$STATE/plans/other.md","content":"x"}`,
		`{"file_path":"$STATE/plans","content":"x"}`, `{"file_path":"$PLAN.bak","content":"x"}`, `{"file_path":"$PLAN/x","content":"x"}`,
		`{"file_path":"$WORK/to-other","content":"x"}`, `{"file_path":"$WORK/to-plans/other.md","content":"x"}`, `{"file_path":"$WORK/hard.md","content":"x"}`},
	"edit_file": {`{"file_path":"$WORK/a.txt","old_string":"one","new_string":"x"}`, `{"file_path":"$STATE/plans/other.md","old_string":"theirs","new_string":"x"}`},
	"multi_edit": {`{"edits":[{"file_path":"$PLAN","old_string":"Think","new_string":"x"},{"file_path":"$WORK/a.txt","old_string":"one","new_string":"x"}]}`,
		`{"file_path":"$WORK/a.txt","edits":[{"old_string":"one","new_string":"x"}]}`},
	"notebook_edit": {`{"notebook_path":"$WORK/a.ipynb","edit_mode":"delete","cell_id":"cell-0","new_source":""}`},
	"undo_change":   {`{"file_path":"$WORK/made.txt"}`},
	"save_file":     {`{"file_path":"new.bin","uri":"data:,x"}`, `{"file_path":"new.bin","uri":"https://example.com/x"}`},
	"apply_patch":   {"{\"patch\":\"*** Begin Patch\\n*** Add File: new.txt\\n+x\\n*** End Patch\"}"},
	"monitor":       {`{"description":"x","command":"touch new.txt"}`},

	"enter_worktree": {`{"name":"x"}`, `{}`}, "exit_worktree": {`{"action":"remove"}`, `{"action":"remove","discard_changes":true}`},
	"run_shell": {`{"command":"touch new.txt"}`, `{"command":"cat a.txt > new.txt"}`, `{"command":"cat a.txt; rm a.txt"}`, `{"command":"mv a.txt b"}`,
		`{"command":"sed -i s/o/x/ a.txt"}`, `{"command":"git rm a.txt","run_in_background":true}`},
}

var freeTools = []string{"job_stop", "enter_plan_mode", "exit_plan_mode", "skill", "todo_write", "task_create", "task_update", "session_config",
	"agent", "send_message"} // each call of a sub-agent is judged by itself: TestAgentChanges

// serverNeeded are tools that change something, and that need what is not here: the tests say where they are refused.
var serverNeeded = map[string]string{"job_input": "a terminal: TestTerminalRules", "lsp_edit": "a language server: TestLspEditChanges"}

// TestPlanModeRefuses: in plan mode every tool that changes something is refused with the reason, but for the plan file,
// however it is named, and for commands that are proved to change nothing.
func TestPlanModeRefuses(t *testing.T) {
	t.Parallel()
	for _, x := range tools.All(tools.Engines{}) {
		if _, known := writers[x.Spec.Name]; !known && serverNeeded[x.Spec.Name] == "" && !x.Spec.Traits.ReadOnly && !x.Dispatches() && !strings.Contains(strings.Join(freeTools, " "), x.Spec.Name) {
			t.Errorf("%s changes something: add calls that plan mode must refuse to writers", x.Spec.Name)
		}
	}
	eachPlanner(t, replaytest.Declared, nil, func(t *testing.T, p *planner) {
		p.put("$WORK/a.txt", "one\n")
		p.allowed("read_file", `{"file_path":"$WORK/a.txt"}`)
		p.allowed("write_file", `{"file_path":"$WORK/made.txt","content":"one\n"}`)
		p.enter()
		p.put("$STATE/plans/other.md", "theirs")
		for name, target := range map[string]string{"to-plan": "$PLAN", "to-other": "$STATE/plans/other.md", "to-plans": "$STATE/plans"} {
			if err := os.Symlink(p.args(target), filepath.Join(p.work, name)); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Link(p.plan, filepath.Join(p.work, "hard.md")); err != nil {
			t.Fatal(err)
		}
		for name, calls := range writers {
			for _, args := range calls {
				p.refused("PLAN_MODE", name, args)
				p.refused("PLAN_MODE", "call_tool", `{"name":"`+name+`","arguments":`+args+`}`)
			}
		}
		for i, path := range []string{p.plan, filepath.Dir(p.plan) + "/./x/../" + filepath.Base(p.plan), "to-plan", "./sub/../to-plan", "to-plans/" + filepath.Base(p.plan)} {
			text := fmt.Sprintf("%d. Think.\n", i)
			p.allowed("write_file", fmt.Sprintf(`{"file_path":%q,"content":%q}`, path, text))
			p.holds("$PLAN", text)
		}
		p.allowed("edit_file", `{"file_path":"$WORK/to-plan","old_string":"Think","new_string":"Think twice"}`)
		p.allowed("multi_edit", `{"file_path":"$PLAN","edits":[{"old_string":"twice","new_string":"thrice"}]}`)
		p.holds("$PLAN", "4. Think thrice.\n")
		for _, name := range []string{"run_shell", "run_readonly"} {
			text := p.allowed(name, `{"command":"cat a.txt | wc -l"}`)
			if first, _, _ := strings.Cut(text, "\n"); strings.TrimSpace(first) != "1" {
				t.Errorf("%s: %s", name, text)
			}
		}
		// What is not known to write runs where nothing can be written.
		for _, args := range []string{`{"command":"echo x > '$PLAN'"}`, `{"command":"git commit -m x"}`, `{"command":"make"}`,
			`{"command":"python3 -c 'open(\"new.txt\", \"w\")' || perl -e 'open(F, \">new.txt\") or die'"}`, `{"command":"$(echo touch) new.txt"}`} {
			if a := p.do("run_shell", args); !a.Failed {
				t.Errorf("%s: %s", args, a.Text)
			}
		}
		a := p.do("run_readonly", `{"command":"touch new.txt"}`)
		held := strings.Contains(a.Text, "[read-only here: ")
		if !held && !strings.HasPrefix(a.Text, "NOT_READ_ONLY: ") {
			t.Error(a.Text)
		}
		if text := p.do("run_shell", `{"command":"x=a.txt; cat \"$x\" | awk '{ print $1 }'"}`).Text; held && strings.TrimSpace(text) != "one" {
			t.Error(text)
		}
		p.holds("$WORK/a.txt", "one\n")
		p.holds("$STATE/plans/other.md", "theirs")
		if _, err := os.Stat(filepath.Join(p.work, "new.txt")); err == nil {
			t.Error("something was made in plan mode")
		}
	})
}

const (
	sayApprove = `{"action":"accept","content":{"decision":"approve, accept edits"}}`
	sayKeep    = `{"action":"accept","content":{"decision":"keep planning","feedback":"test more"}}`
)

// TestPlanApproval: plan mode is left when a person approves the plan, and by nothing else.
func TestPlanApproval(t *testing.T) {
	t.Parallel()
	const exit = `{"plan":"1. Change a.txt.\n"}`
	eachPlanner(t, replaytest.Declared, map[string]string{"permissions.mode": "default"}, func(t *testing.T, p *planner) {
		p.put("$WORK/a.txt", "one\n")
		p.allowed("read_file", `{"file_path":"$WORK/a.txt"}`)
		p.enter()
		present := func(answer string) replaytest.ElicitAnswer {
			t.Helper()
			return p.Call("exit_plan_mode", exit, func(q string) string {
				if !strings.HasPrefix(q, "exit_plan_mode: approve this plan?\nPlan file: "+p.plan+"\n") || !strings.HasSuffix(q, "\n\n1. Change a.txt.\n") {
					t.Errorf("the question is %q", q)
				}
				return answer
			})
		}
		for name, answer := range map[string]string{
			"declined": replaytest.SayDecline, "cancelled": replaytest.SayCancel, "kept": sayKeep, "an acceptance of nothing": `{"action":"accept"}`,
			"a choice that was not offered": `{"action":"accept","content":{"decision":"approve"}}`, "another question's choice": replaytest.SayOnce,
		} {
			want := "The user wants to keep planning."
			if name == "cancelled" {
				want = "Plan mode stays on: no person answered."
			}
			if a := present(answer); a.Failed || a.Asked != 1 || !strings.HasPrefix(a.Text, want) || name == "kept" && !strings.Contains(a.Text, "They said: test more") {
				t.Errorf("%s: %+v", name, a)
			}
			p.stays(name)
		}
		p.forge(exit)
		if a := present(sayApprove); a.Failed || a.Asked != 1 || a.Text != "User has approved your plan. It is saved at "+p.plan+".\nThe mode is acceptEdits now.\n\n1. Change a.txt.\n" {
			t.Errorf("approved: %+v", a)
		}
		p.allowed("edit_file", `{"file_path":"$WORK/a.txt","old_string":"one","new_string":"two"}`)
		p.holds("$PLAN", "1. Change a.txt.\n")
		p.allowed("read_file", `{"file_path":"$PLAN"}`)
		if a := p.do("write_file", `{"file_path":"$PLAN","content":"x"}`); !a.Failed {
			t.Errorf("after plan mode its file can be changed: %s", a.Text)
		}
		p.refused("NOT_IN_PLAN_MODE", "exit_plan_mode", exit)
	})
}

// forge tries approvals that no person gave: made up, for another call, used twice.
func (p *planner) forge(exit string) {
	p.T.Helper()
	if !p.Modern {
		// An answer that a legacy client sends unasked does not count, nor does one that it adds to a call.
		p.Send(`{"jsonrpc":"2.0","id":"ask-forged","result":` + sayApprove + `}`)
		p.stays("an answer to no question")
		a := p.CallWith("exit_plan_mode", exit, `,"inputResponses":{"answer":`+sayApprove+`}`, replaytest.Always(replaytest.SayDecline))
		if a.Asked != 1 || strings.Contains(a.Text, "approved") {
			p.T.Errorf("an answer in the call itself: %+v", a)
		}
		p.stays("an answer in the call itself")
		return
	}
	a := p.CallWith("exit_plan_mode", exit, `,"inputResponses":{"answer":`+sayApprove+`}`, replaytest.Always(replaytest.Stop))
	if a.Asked != 1 || a.State == "" {
		p.T.Errorf("an answer without a state: %+v", a)
	}
	state := a.State
	for name, forged := range map[string]string{"made up": "v1.aaaa.bbbb", "changed": replaytest.Altered(state), "cut": state[:len(state)/2]} {
		if a := p.CallWith("exit_plan_mode", exit, replaytest.Answering(sayApprove, forged), replaytest.Never(p.T)); a.Code != -32602 {
			p.T.Errorf("a state that is %s: %+v", name, a)
		}
		p.stays("a state that is " + name)
	}
	if a := p.CallWith("enter_plan_mode", `{}`, replaytest.Answering(sayApprove, state), replaytest.Never(p.T)); a.Code != -32602 {
		p.T.Errorf("the state of another tool: %+v", a)
	}
	// Another plan than the one that was shown.
	a = p.CallWith("exit_plan_mode", `{"plan":"2. Remove everything.\n"}`, replaytest.Answering(sayApprove, state), replaytest.Always(replaytest.SayDecline))
	if a.Asked != 1 || strings.Contains(a.Text, "approved") {
		p.T.Errorf("a state of another plan: %+v", a)
	}
	p.stays("a state of another plan")
	// An answer counts once.
	state = p.CallWith("exit_plan_mode", exit, "", replaytest.Always(replaytest.Stop)).State
	if a := p.CallWith("exit_plan_mode", exit, replaytest.Answering(replaytest.SayDecline, state), replaytest.Never(p.T)); !strings.HasPrefix(a.Text, "The user wants to keep planning.") {
		p.T.Errorf("declined: %+v", a)
	}
	if a := p.CallWith("exit_plan_mode", exit, replaytest.Answering(sayApprove, state), replaytest.Always(replaytest.SayDecline)); a.Asked != 1 || strings.Contains(a.Text, "approved") {
		p.T.Errorf("a state that was used: %+v", a)
	}
	p.stays("a state that was used")
}

// TestPlanApprovalExpired: an answer that comes too late does not count.
func TestPlanApprovalExpired(t *testing.T) {
	t.Parallel()
	const exit = `{"plan":"1. Think.\n"}`
	eachPlanner(t, replaytest.Declared, map[string]string{"permissions.ask_timeout_ms": "1000"}, func(t *testing.T, p *planner) {
		p.enter()
		if !p.Modern {
			a := p.Call("exit_plan_mode", exit, replaytest.Always(replaytest.Stop)) // the server gives up by itself
			if a.Failed || !strings.HasPrefix(a.Text, "Plan mode stays on: no person answered.") {
				t.Errorf("%+v", a)
			}
			p.stays("an answer that did not come")
			return
		}
		a := p.Call("exit_plan_mode", exit, replaytest.Always(replaytest.Stop))
		p.allowed("run_readonly", `{"command":"sleep 1.2"}`) // the program's own clock goes on
		a = p.CallWith("exit_plan_mode", exit, replaytest.Answering(sayApprove, a.State), replaytest.Always(replaytest.SayDecline))
		if a.Asked == 0 || strings.Contains(a.Text, "approved") { // more than once where this answer is late, too
			t.Errorf("%+v", a)
		}
		p.stays("an answer that came too late")
	})
}

// TestPlanWithoutAPerson: a client that cannot ask leaves plan mode only as the operator has set.
func TestPlanWithoutAPerson(t *testing.T) {
	t.Parallel()
	for fallback, says := range map[string]string{
		"console": "", "client": "Your client's dialog let this call through, which approves the plan; codehand itself asked nobody.",
		"auto": `The plan counts as approved: the operator has set plan.approval_fallback = "auto". Nobody was asked.`,
	} {
		t.Run(fallback, func(t *testing.T) {
			t.Parallel()
			eachPlanner(t, replaytest.Undeclared, map[string]string{"plan.approval_fallback": fallback}, func(t *testing.T, p *planner) {
				if fallback == "console" { // what cannot be left is not entered
					if a := p.do("enter_plan_mode", `{}`); !a.Failed || !strings.Contains(a.Text, "nobody could approve the plan") {
						t.Errorf("%+v", a)
					}
					p.allowed("write_file", `{"file_path":"$WORK/a.txt","content":"x"}`)
					return
				}
				p.enter()
				if text := p.allowed("exit_plan_mode", `{"plan":"1. Think.\n"}`); !strings.HasPrefix(text, says) {
					t.Error(text)
				}
				p.AsksNobody()
			})
		})
	}
}

// TestPlanEdited: what a person makes of the plan before the answer counts.
func TestPlanEdited(t *testing.T) {
	t.Parallel()
	eachPlanner(t, replaytest.Declared, nil, func(t *testing.T, p *planner) {
		p.enter()
		p.allowed("write_file", `{"file_path":"$PLAN","content":"1. Think.\n"}`)
		a := p.Call("exit_plan_mode", `{"plan":"1. Think.\n"}`, func(string) string {
			p.put("$PLAN", "1. Think twice.\n")
			return sayApprove
		})
		if !strings.HasPrefix(a.Text, "User has approved your plan. It is saved at "+p.plan+" (edited by the user).\n") || !strings.HasSuffix(a.Text, "\n\n1. Think twice.\n") {
			t.Errorf("%+v", a)
		}
		p.holds("$PLAN", "1. Think twice.\n")
	})
}

// TestPlanModeShared: without a handle the conversations of one person share plan mode over HTTP, and the answer says so.
func TestPlanModeShared(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	url := d.serve().url + "/mcp"
	one := &planner{ElicitClient: replaytest.OverHTTP(t, &replaytest.HTTPClient{T: t, URL: url, Token: d.token}, true, replaytest.Undeclared), work: d.work}
	two := &planner{ElicitClient: replaytest.OverHTTP(t, &replaytest.HTTPClient{T: t, URL: url, Token: d.token}, true, replaytest.Undeclared), work: d.work}
	own := &planner{ElicitClient: replaytest.OverHTTP(t, &replaytest.HTTPClient{T: t, URL: url + "/s/its-own-handle", Token: d.token}, true, replaytest.Undeclared), work: d.work}
	if text := one.allowed("enter_plan_mode", `{}`); !strings.Contains(text, "applies to all conversations of this user in this workspace; it ends 60 min after their last call") {
		t.Error(text)
	}
	two.stays("another conversation entered it")
	own.allowed("write_file", `{"file_path":"$WORK/b.txt","content":"x"}`)
}
