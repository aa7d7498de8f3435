package server

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestReadStateSurvivesKill: a client that starts the program again under the same handle, after a crash, edits what it had
// read without reading it once more. Another conversation has nothing of that, and what somebody changed meanwhile is
// refused as ever.
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
		text, err := s.call("edit_file", json.RawMessage(`{"file_path":"a.txt","old_string":"one","new_string":"foreign"}`))
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
	text, err := s.call("edit_file", json.RawMessage(`{"file_path":"b.txt","old_string":"one","new_string":"1"}`))
	if err != nil || !strings.HasPrefix(text, "! FILE_CHANGED") {
		t.Errorf("what another program changed: %v %s", err, text)
	}
	if got := p.held("a.txt"); got != "1\ntwo\n" {
		t.Errorf("a.txt holds %q", got)
	}

	// At a good end it is written at once.
	must(t, s.in.Close())
	for range s.lines { // to the end of its output, as Wait demands
	}
	must(t, s.cmd.Wait())
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

func (p *plot) snapshots(s *spawned) []string {
	p.Helper()
	found, err := filepath.Glob(filepath.Join(s.state, sessionsDir, "*", "*", "state.json"))
	must(p, err)
	return found
}

// waitForSnapshot returns when a snapshot says that a file was read. The program itself passes the time, so that it would
// be seen if it hung.
func (p *plot) waitForSnapshot(s *spawned, name string) {
	p.Helper()
	for limit := time.Now().Add(hangAfter); time.Now().Before(limit); {
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
