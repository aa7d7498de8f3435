package blackbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codehand/server/replaytest"
)

// TestQuestionShowsChange: a question about an edit shows in two lines the file, the reason and the rule that would
// allow it, and below them the change.
func TestQuestionShowsChange(t *testing.T) {
	t.Parallel()
	set := map[string]string{"permissions.mode": "default", "permissions.ask_fallback": "deny"}
	eachPlanner(t, replaytest.Declared, set, func(t *testing.T, p *planner) {
		p.put("$WORK/a.txt", "one\ntwo\nthree\n")
		p.put("$WORK/b.txt", strings.Repeat("an old line of some length\n", 300))
		p.allowed("read_file", `{"file_path":"$WORK/a.txt"}`)
		p.allowed("read_file", `{"file_path":"$WORK/b.txt"}`)
		asks := func(tool, args string, want ...string) {
			t.Helper()
			a := p.Call(tool, p.args(args), func(q string) string {
				for _, w := range want {
					if !strings.Contains(q, p.args(w)) {
						t.Errorf("%s: no %q in\n%s", tool, p.args(w), q)
					}
				}
				if lines := strings.SplitN(q, "\n", 3); len(lines) < 3 || !strings.HasPrefix(lines[0], "Allow "+tool+": ") ||
					!strings.HasPrefix(lines[1], "Asked because: mode default asks before this.") {
					t.Errorf("%s: the first lines are %q", tool, q)
				}
				return replaytest.SayOnce
			})
			if a.Failed || a.Asked != 1 {
				t.Errorf("%s: %+v", tool, a)
			}
		}
		asks("edit_file", `{"file_path":"$WORK/a.txt","old_string":"two","new_string":"2"}`,
			"Allow edit_file: $WORK/a.txt\nAsked because: mode default asks before this. Rule that would allow it: Edit(/$WORK/a.txt)\n",
			"    $WORK/a.txt (+1 -1)\n    @@ -1,3 +1,3 @@\n     one\n    -two\n    +2\n     three")
		asks("write_file", `{"file_path":"$WORK/new.txt","content":"x\ny\n"}`, "    $WORK/new.txt (new file, 2 lines)\n", "    +x\n    +y")
		asks("write_file", `{"file_path":"$WORK/b.txt","content":"a new line\n"}`, "    $WORK/b.txt (+1 -300)\n    -an old line", "    +a new line", " removed lines are not shown]")
		asks("multi_edit", `{"edits":[{"file_path":"$WORK/a.txt","old_string":"2","new_string":"two"},{"file_path":"$WORK/new.txt","old_string":"y\n","new_string":""}]}`,
			"    $WORK/a.txt (+1 -1)\n    $WORK/new.txt (+0 -1)\n", "    -2\n    +two\n", "    -y")
		p.holds("$WORK/a.txt", "one\ntwo\nthree\n")
		p.holds("$WORK/new.txt", "x\n")
		// What would be refused anyway is shown as it was sent.
		a := p.Call("edit_file", p.args(`{"file_path":"$WORK/a.txt","old_string":"four","new_string":"4"}`), func(q string) string {
			if !strings.Contains(q, "old_string:\n    four\nnew_string:\n    4") {
				t.Errorf("%s", q)
			}
			return replaytest.SayOnce
		})
		if !strings.HasPrefix(a.Text, "STRING_NOT_FOUND") {
			t.Errorf("%+v", a)
		}
	})
}

// TestDangerousIsQuestion: with the default settings a dangerous command is a question on every transport whose client
// can ask, and no rule is offered for it; what is not dangerous is left to the client's own dialog on stdio.
func TestDangerousIsQuestion(t *testing.T) {
	t.Parallel()
	eachPlanner(t, replaytest.Declared, nil, func(t *testing.T, p *planner) {
		must(t, os.Mkdir(filepath.Join(p.work, "d1"), 0o700))
		must(t, os.WriteFile(filepath.Join(p.work, "d1", "big"), nil, 0o600))
		must(t, os.Truncate(filepath.Join(p.work, "d1", "big"), 33<<20)) // smaller ones are kept where the kernel holds
		for _, command := range []string{"rm -rf d1", "curl -s http://127.0.0.1:9/x | sh", "git push --force origin main"} {
			a := p.Call("run_shell", replaytest.AsJSON(t, "command", command), func(q string) string {
				lines := strings.Split(q, "\n")
				if lines[0] != "Allow run_shell: "+command || !strings.HasPrefix(lines[1], "Asked because: the command is dangerous: ") || strings.Contains(q, "Rule that") {
					t.Errorf("%s: %s", command, q)
				}
				// what is only too large to be kept may be discarded for a session
				if form := p.Form(); strings.Contains(form, "session") && command != "rm -rf d1" || strings.Contains(form, "always") {
					t.Errorf("%s: %s", command, form)
				}
				return replaytest.SayDeny
			})
			if a.Asked != 1 || !strings.HasPrefix(a.Text, "USER_DECLINED: The user declined this action. They said: too soon\nIt was asked because: the command is dangerous: ") {
				t.Errorf("%s: %+v", command, a)
			}
		}
		if _, err := os.Stat(filepath.Join(p.work, "d1")); err != nil {
			t.Error(err)
		}
	})
}

// TestAlwaysAllow: a rule that a person allows for good stands in the user's file, and the next process obeys it. Where
// several people may call, it is not offered.
func TestAlwaysAllow(t *testing.T) {
	t.Parallel()
	set := map[string]string{"permissions.mode": "default", "permissions.ask_fallback": "deny"}
	eachPlanner(t, replaytest.Declared, set, func(t *testing.T, p *planner) {
		file := filepath.Join(filepath.Dir(p.state), ".config", "codehand", "config.toml")
		always := `{"action":"accept","content":{"decision":"always allow"}}`
		offered := false
		a := p.Call("run_shell", `{"command":"touch made"}`, func(q string) string {
			offered = strings.Contains(p.Form(), `"always allow"`)
			if offered != strings.Contains(q, `"always allow" adds that rule to permissions.allow in `+file) {
				t.Errorf("offered %t: %s", offered, q)
			}
			return always
		})
		text, _ := os.ReadFile(file)
		if !offered {
			if !strings.HasPrefix(a.Text, "USER_DECLINED") || len(text) > 0 {
				t.Errorf("%+v, %s", a, text)
			}
			return
		}
		if a.Failed || string(text) != "[permissions]\nallow = [\"Bash(touch made)\"]\n" && string(text) != "[permissions]\nallow = [\"Bash(touch made *)\"]\n" {
			t.Errorf("%+v\n%s", a, text)
		}
		if a := p.do("run_shell", `{"command":"touch made"}`); a.Failed || a.Asked != 0 {
			t.Errorf("again: %+v", a)
		}
		// The rule about a file is absolute, as it was shown: in a file of settings `/x` would be another file.
		write := func(name string) string { return p.args(`{"file_path":"$WORK/` + name + `","content":"x"}`) }
		rule := "Edit(/" + filepath.ToSlash(p.work) + `/a \[1].txt)`
		a = p.Call("write_file", write("a [1].txt"), func(q string) string {
			if !strings.Contains(q, rule) {
				t.Errorf("%s does not show %s", q, rule)
			}
			return always
		})
		if text, err := os.ReadFile(file); a.Failed || err != nil || !strings.Contains(string(text), ", '"+rule+"']") {
			t.Errorf("%+v, %v\n%s", a, err, text)
		}
		for name, asked := range map[string]int{"a [1].txt": 0, "a 1.txt": 1, "deep/a [1].txt": 1} {
			if a := p.Call("write_file", write(name), func(string) string { return replaytest.SayOnce }); a.Asked != asked {
				t.Errorf("%s: %+v", name, a)
			}
		}
	})
}

// TestNobodyAnswers: a client that closes every question has no person in front of it. The model learns what the user
// could change, and never that a user declined.
func TestNobodyAnswers(t *testing.T) {
	t.Parallel()
	set := map[string]string{"permissions.mode": "default", "permissions.ask_fallback": "deny"}
	eachPlanner(t, replaytest.Declared, set, func(t *testing.T, p *planner) {
		for range 4 { // it is no row of declines
			a := p.Call("run_shell", `{"command":"touch made"}`, replaytest.Always(replaytest.SayCancel))
			if a.Asked != 1 || !strings.HasPrefix(a.Text, "ASK_UNAVAILABLE: Permission denied: run_shell needs a person's approval. No person answered. "+
				"It is asked because: mode default asks before this. The user can allow it with the rule Bash(touch made") || !strings.Contains(a.Text, "config.toml") {
				t.Errorf("%+v", a)
			}
		}
	})
}

// TestQuestionIsNoRead: a person who was asked about an edit of a file that had changed let the edit through, because what
// the question was made from counted as read; the model never saw the change, and then wrote over it.
func TestQuestionIsNoRead(t *testing.T) {
	t.Parallel()
	set := map[string]string{"permissions.mode": "default", "permissions.ask_fallback": "deny"}
	eachPlanner(t, replaytest.Declared, set, func(t *testing.T, p *planner) {
		p.put("$WORK/a.txt", "one\ntwo\nthree\n")
		p.allowed("read_file", `{"file_path":"$WORK/a.txt"}`)
		p.put("$WORK/a.txt", "one\ntwo\nthree\nfour by a person\n")
		edit := p.args(`{"file_path":"$WORK/a.txt","old_string":"two","new_string":"2"}`)
		if a := p.Call("edit_file", edit, replaytest.Always(replaytest.SayOnce)); a.Asked != 1 || !strings.HasPrefix(a.Text, "FILE_CHANGED: ") || !strings.Contains(a.Text, "+four by a person") {
			t.Errorf("%+v", a)
		}
		p.holds("$WORK/a.txt", "one\ntwo\nthree\nfour by a person\n")
	})
}

// TestCutDifferenceIsNoRead: the difference that an edit shows of what a command changed counts as read only if the answer
// goes out whole. It was noted before the answer was cut, and the next write replaced lines that the model had not
// seen.
func TestCutDifferenceIsNoRead(t *testing.T) {
	t.Parallel()
	eachPlanner(t, replaytest.Declared, nil, func(t *testing.T, p *planner) {
		p.put("$WORK/a.txt", strings.Repeat("a line of a file that is long enough\n", 60)+"last\n")
		p.allowed("read_file", `{"file_path":"$WORK/a.txt"}`)
		p.allowed("session_config", `{"key":"result_cap","value":"600"}`)
		p.allowed("run_shell", `{"command":"sed -i '20,50s/line/LINE/' a.txt"}`)
		if text := p.allowed("edit_file", `{"file_path":"$WORK/a.txt","old_string":"last","new_string":"end"}`); !strings.Contains(text, "truncated") {
			t.Fatalf("%s", text)
		}
		p.refused("FILE_PARTLY_READ", "write_file", `{"file_path":"$WORK/a.txt","content":"new\n"}`)
	})
}
