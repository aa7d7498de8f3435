package server

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"codehand/server/audit"
	"codehand/server/replaytest"
)

// TestAuditOfCommands: what a command made, changed and removed in a git work tree is in its record, also what the session
// has never read.
func TestAuditOfCommands(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "audit")
	f, a := audited(t, audit.Options{Dir: dir, Sync: -1}, setup{})
	must(t, os.MkdirAll(filepath.Join(f.work, "build"), 0o755))
	for name, text := range map[string]string{"a.conf": "one\n", "build/x": "x\n", "build/y": "y\n"} {
		must(t, os.WriteFile(filepath.Join(f.work, name), []byte(text), 0o644))
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-q", "-m", "a"}} {
		git := exec.Command("git", args...)
		git.Dir = f.work
		if out, err := git.CombinedOutput(); err != nil {
			t.Skipf("no git: %v %s", err, out)
		}
	}
	shell := func(command string) {
		t.Helper()
		if text := f.Must(t, "run_shell", replaytest.AsJSON(t, "command", command)); strings.HasPrefix(text, "!") {
			t.Fatalf("%s: %s", command, text)
		}
	}
	shell("rm -r build/x; rm build/y; echo two >> a.conf; echo gen > gen.txt")
	shell("ls")
	must(t, a.Close())
	logs, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil || len(logs) != 1 {
		t.Fatalf("%v, %v", logs, err)
	}
	text, err := os.ReadFile(logs[0])
	must(t, err)
	var got []string
	for l := range strings.Lines(string(text)) {
		var m struct {
			Ev, Tool string
			Files    []struct{ Path, Op, Did, Before, After string }
		}
		must(t, json.Unmarshal([]byte(l), &m))
		if m.Ev != "call.done" {
			continue
		}
		for _, c := range m.Files {
			name, err := filepath.Rel(f.work, c.Path)
			must(t, err)
			sums := ""
			if c.Before != "" {
				sums += "-"
			}
			if c.After != "" {
				sums += "+"
			}
			got = append(got, c.Op+" "+c.Did+" "+name+" "+sums)
		}
		got = append(got, m.Tool)
	}
	want := "shell change a.conf -+|shell delete build/x -|shell delete build/y -|shell create gen.txt +|run_shell|run_shell"
	if strings.Join(got, "|") != want {
		t.Errorf("the record has\n%s\nwant\n%s", strings.Join(got, "|"), want)
	}
	if all, err := audit.Sessions(dir, ""); err != nil || len(all) != 1 || all[0].Changes != 4 {
		t.Errorf("sessions: %+v, %v", all, err)
	}
}

// TestAuditFullDisk: while the log cannot be written nothing is done, and the model is told so. With room again
// everything works, and no line is broken.
func TestAuditFullDisk(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("a small tmpfs can be mounted by root only")
	}
	small := t.TempDir()
	if err := syscall.Mount("tmpfs", small, "tmpfs", 0, "size=64k,mode=0700"); err != nil {
		t.Skip("a tmpfs cannot be mounted here: ", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(small, syscall.MNT_DETACH) })
	dir := filepath.Join(small, "audit")
	f, a := audited(t, audit.Options{Dir: dir, Sync: -1}, setup{})
	write := func(name string) string {
		return f.Must(t, "write_file", replaytest.AsJSON(t, "file_path", filepath.Join(f.work, name), "content", "x\n"))
	}
	if text := write("before"); strings.HasPrefix(text, "!") {
		t.Fatal(text)
	}
	filler := filepath.Join(small, "filler")
	must(t, os.WriteFile(filler, nil, 0o600))
	fill, err := os.OpenFile(filler, os.O_WRONLY|os.O_APPEND, 0)
	must(t, err)
	defer fill.Close()
	for {
		if _, err := fill.Write(make([]byte, 4096)); err != nil {
			break
		}
	}
	const want = "! AUDIT_UNAVAILABLE: The audit log cannot be written: no space left on device. Nothing was done. Tell the operator."
	done := 0
	var text string
	for done < 100 { // until the last page of the log is full
		if text = write("during"); strings.HasPrefix(text, "!") {
			break
		}
		must(t, os.Remove(filepath.Join(f.work, "during")))
		done++
	}
	if text != want {
		t.Fatalf("after %d calls: %q", done, text)
	}
	if _, err := os.Stat(filepath.Join(f.work, "during")); err == nil {
		t.Error("the file was written although the call was refused")
	}
	for name, args := range map[string]string{
		"read_file":  replaytest.AsJSON(t, "file_path", filepath.Join(f.work, "before")),
		"run_shell":  replaytest.AsJSON(t, "command", "touch '"+filepath.Join(f.work, "during")+"'"),
		"list_files": `{"pattern":5,"no":1}`,
	} {
		if text := f.Must(t, name, args); text != want {
			t.Errorf("%s: %q", name, text)
		}
	}
	if _, err := os.Stat(filepath.Join(f.work, "during")); err == nil || a.Failed() == nil {
		t.Errorf("the command ran, or the log says that it does not fail (%v)", a.Failed())
	}
	must(t, fill.Truncate(0)) // a child of another test may have it open for a while
	must(t, os.Remove(filler))
	_ = fill.Close()
	_ = write("after") // may be the one that finds out
	if text := write("after2"); strings.HasPrefix(text, "!") {
		t.Errorf("with room again: %s", text)
	}
	must(t, a.Close())
	if n, err := audit.Check(dir); err != nil || n < 8 {
		t.Errorf("%d lines, %v", n, err)
	}
	refused := 0
	for _, m := range replaytest.AuditLines(t, dir) {
		if m["code"] == "AUDIT_UNAVAILABLE" {
			refused++
		}
	}
	if refused < 4 {
		t.Errorf("%d refused calls are in the log, want all", refused)
	}
}
