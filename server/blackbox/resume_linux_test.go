package blackbox

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"codehand/server/replaytest"
	"codehand/tools/permission"
)

// TestReadStateSurvivesKill: a client that starts the program again under the same handle, after a crash, edits what it had
// read without reading it once more. Another conversation has nothing of that, and an edit of what another program
// changed meanwhile is refused as ever.
func TestReadStateSurvivesKill(t *testing.T) {
	t.Parallel()
	p := newPlot(t)
	for _, name := range []string{"a.txt", "b.txt", "c.txt"} {
		p.lay(name, "one\ntwo\n")
	}
	s := p.start()
	for _, name := range []string{"a.txt", "b.txt", "c.txt"} {
		p.must(s, "read_file", "file_path", name)
	}
	began := time.Now()
	p.waitForSnapshot(s, "c.txt")
	t.Logf("what was read was on the disk after %s", time.Since(began).Round(100*time.Millisecond))
	p.kill(s)

	for what, env := range map[string]string{"another handle": "CODEHAND_SESSION=another-one", "no handle": "CODEHAND_SESSION="} {
		p.env = []string{env}
		s = p.start()
		text, err := s.Call("edit_file", json.RawMessage(`{"file_path":"a.txt","old_string":"one","new_string":"foreign"}`))
		if err != nil || !strings.HasPrefix(text, "! FILE_NOT_READ") {
			t.Errorf("with %s: %v %s", what, err, text)
		}
		p.kill(s)
	}

	p.env = nil
	p.lay("b.txt", "one\ntwo\nby another program\n")
	s = p.start()
	p.must(s, "edit_file", "file_path", "a.txt", "old_string", "one", "new_string", "1")
	p.must(s, "write_file", "file_path", "c.txt", "content", "whole\n")
	text, err := s.Call("edit_file", json.RawMessage(`{"file_path":"b.txt","old_string":"one","new_string":"1"}`))
	if err != nil || !strings.HasPrefix(text, "! FILE_CHANGED") {
		t.Errorf("what another program changed: %v %s", err, text)
	}
	if got := p.held("a.txt"); got != "1\ntwo\n" {
		t.Errorf("a.txt holds %q", got)
	}

	p.end(s) // at a good end it is written at once
	s = p.start()
	p.must(s, "edit_file", "file_path", "a.txt", "old_string", "two", "new_string", "2")
	p.must(s, "edit_file", "file_path", "c.txt", "old_string", "whole", "new_string", "part")
	for _, path := range p.snapshots(s) {
		info, err := os.Stat(path)
		if err != nil || info.Mode() != 0o600 {
			t.Errorf("%s is %v, %v", path, info, err)
		}
		raw, err := os.ReadFile(path)
		if err != nil || bytes.Contains(raw, []byte("two")) || bytes.Contains(raw, []byte("whole")) {
			t.Errorf("%s has contents of files: %s, %v", path, raw, err)
		}
	}
	p.kill(s)
}

// After a restart in plan mode the model was told that the mode was default now, while another one was in force: that
// in which the operator lets sessions start.
func TestPlanModeAfterRestart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		mode, says string
		writes     bool
	}{
		{"default", "The mode is default now.", false},
		{"dontAsk", "The mode is dontAsk now.", false},
		{"acceptEdits", "The mode is acceptEdits now.", true},
		{"plan", "The mode is default now.", false}, // which comes after that of planning
	} {
		t.Run(c.mode, func(t *testing.T) {
			t.Parallel()
			p := newPlot(t, "--permissions-mode="+c.mode, "--permissions-ask-fallback=deny", "--plan-approval-fallback=auto", "--tools-deferral=off")
			s := p.start()
			p.must(s, "enter_plan_mode")
			p.end(s)
			s = p.start()
			write := func() bool {
				text, err := s.Call("write_file", json.RawMessage(`{"file_path":"a.txt","content":"one\n"}`))
				must(t, err)
				return !strings.HasPrefix(text, "! ")
			}
			if write() {
				t.Error("a file was written while it planned")
			}
			if text := p.must(s, "exit_plan_mode", "plan", "1. Think."); !strings.Contains(text, c.says) {
				t.Errorf("want %s, got %s", c.says, text)
			}
			if got := write(); got != c.writes {
				t.Errorf("a file was written afterwards: %t", got)
			}
		})
	}
}

func asText(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	must(t, err)
	return string(raw)
}

// A grant for the session is gone when the process is, though the session is the same: in the file of an earlier version, too.
func TestGrantsEndWithTheProcess(t *testing.T) {
	t.Parallel()
	p := newPlot(t)
	p.lay("a.txt", "one\n")
	s := p.start()
	p.must(s, "read_file", "file_path", "a.txt")
	p.waitForSnapshot(s, "a.txt")
	p.kill(s)
	planted := p.snapshots(s)
	if len(planted) != 1 {
		t.Fatalf("there are %q", planted)
	}
	raw, err := os.ReadFile(planted[0])
	must(t, err)
	var file map[string]any
	must(t, json.Unmarshal(raw, &file))
	add := func(key string, value any) {
		file["values"] = append(file["values"].([]any), map[string]any{"k": key, "b": []byte(asText(t, value))})
	}
	add("cell.mode", permission.Bypass)
	add("cell.grants", []permission.Grant{{Rule: "Bash(touch *)", At: time.Now()}})
	must(t, os.WriteFile(planted[0], []byte(asText(t, file)), 0o600))

	p.flags = []string{"--permissions-mode=default", "--permissions-ask-fallback=deny"}
	s = p.start()
	text, err := s.Call("run_shell", json.RawMessage(`{"command":"touch granted"}`))
	if err != nil || !strings.HasPrefix(text, "! ") {
		t.Errorf("a grant of a process before: %v %s", err, text)
	}
	if _, err := os.Stat(p.path("granted")); err == nil {
		t.Error("it ran")
	}
	p.kill(s)
}

// end lets the program end well.
func (p *plot) end(s *replaytest.Spawned) {
	p.Helper()
	must(p, s.In.Close())
	for range s.Lines { // to the end of its output, as Wait demands
	}
	must(p, s.Cmd.Wait())
}

func (p *plot) snapshots(s *replaytest.Spawned) []string {
	p.Helper()
	found, err := filepath.Glob(filepath.Join(s.State, "sessions", "*", "*", "state.json"))
	must(p, err)
	return found
}

// waitForSnapshot returns when a snapshot says that a file was read. The program itself passes the time, so that it would
// be seen if it hung.
func (p *plot) waitForSnapshot(s *replaytest.Spawned, name string) {
	p.Helper()
	for limit := time.Now().Add(replaytest.HangAfter); time.Now().Before(limit); {
		for _, path := range p.snapshots(s) {
			raw, err := os.ReadFile(path)
			must(p, err)
			var file struct {
				Values []struct {
					K string
					B []byte
				}
			}
			must(p, json.Unmarshal(raw, &file))
			for _, v := range file.Values {
				if strings.HasPrefix(v.K, "seen.") && bytes.Contains(v.B, []byte(p.path(name))) {
					return
				}
			}
		}
		p.must(s, "run_shell", "command", "sleep 0.2")
	}
	p.Fatal("nothing is kept")
}
