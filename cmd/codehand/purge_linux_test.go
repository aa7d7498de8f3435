package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
)

// TestPurgeInUse: the history of a client that was at work went, and its next edit failed.
func TestPurgeInUse(t *testing.T) {
	state := filepath.Join(leaktest.Dir(t), ownName)
	journal := filepath.Join(state, "journal")
	if err := os.MkdirAll(journal, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", leaktest.Dir(t))
	t.Setenv("XDG_CONFIG_HOME", "")
	t.Setenv("CODEHAND_STATE_DIR", state)
	held, err := os.Open(journal)
	if err != nil {
		t.Fatal(err)
	}
	client := exec.Command("cat") // reads its input to the end
	input, err := client.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	client.ExtraFiles = []*os.File{held}
	if err := client.Start(); err != nil {
		t.Fatal(err)
	}
	_ = held.Close()
	purge := func() (int, string) {
		var out, errs bytes.Buffer
		code := run([]string{"uninstall", "--purge", "--yes"}, strings.NewReader(""), &out, &errs)
		return code, out.String() + errs.String()
	}
	if code, said := purge(); code != exitFailed || !strings.Contains(said, "end the client that started it first") {
		t.Errorf("exit code %d: %s", code, said)
	}
	if _, err := os.Stat(journal); err != nil {
		t.Error(err)
	}
	_ = input.Close()
	if err := client.Wait(); err != nil {
		t.Error(err)
	}
	if code, said := purge(); code != exitDone {
		t.Errorf("exit code %d: %s", code, said)
	}
	if _, err := os.Stat(state); err == nil {
		t.Error("the directory is still there")
	}
}
