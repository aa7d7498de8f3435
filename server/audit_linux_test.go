package server

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"codehand/server/audit"
	"codehand/server/replaytest"
)

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
