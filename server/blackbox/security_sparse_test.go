package blackbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"codehand/filestate/leaktest"
)

// readTime is what read_file, and everything that has no limit of its own, may take; the figures are printed. slack is what
// a busy machine may add to any limit: what has none takes far longer.
const (
	readTime = 2 * time.Second
	slack    = 9 * readTime
)

// lacking skips a test for what a machine may not have. CI has it.
func lacking(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

// SEC-47, files that are larger than anything could read: each call is answered within 2 s and 128 MiB. A file over 1 GiB is
// not remembered, and its lines are not counted.
func TestSEC47SparseFile(t *testing.T) {
	t.Parallel()
	p, work := blackbox(t)
	p.Must(t, "list_files", `{"pattern":"*"}`)
	before := peak(t, p.Cmd.Process.Pid)
	path := filepath.Join(work, "sparse")
	var b strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&b, "line %d of the text\n", i+1)
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 50<<30); err != nil {
		lacking(t, "a sparse file of 50 GB: %v", err)
	}
	for _, c := range []struct{ name, tool, args, want string }{
		{"head", "read_file", `{"file_path":"sparse","limit":200}`, "line 1 of the text\n"},
		{"number of lines", "read_file", `{"file_path":"sparse","limit":200}`, "of at least 3,001"},
		{"into the hole", "read_file", `{"file_path":"sparse","offset":2999}`, "line 3000 of the text\n"},
		{"behind the hole", "read_file", `{"file_path":"sparse","offset":5000}`, "line 5000 was not reached"},
		{"edit", "edit_file", `{"file_path":"sparse","old_string":"line 1 of","new_string":"x"}`, "! TOO_LARGE: "},
		{"edit with a version", "edit_file", `{"file_path":"sparse","old_string":"line 1 of","new_string":"x","version":"0123456789ab"}`, "! TOO_LARGE: "},
		{"replace", "write_file", `{"file_path":"sparse","content":"x"}`, "! TOO_LARGE: "},
	} {
		start := time.Now()
		text := p.Must(t, c.tool, c.args)
		took := time.Since(start)
		t.Logf("%s: %v", c.name, took)
		if !strings.Contains(text, c.want) || strings.Contains(text, "version ") {
			t.Errorf("%s: got %.300q, want %q and no version", c.name, text, c.want)
		}
		if leaktest.Long() && took > readTime+slack {
			t.Errorf("%s took %v, want at most %v", c.name, took, readTime)
		}
	}
	grown := peak(t, p.Cmd.Process.Pid) - before
	t.Logf("peak memory grew by %d KiB", grown)
	if grown > 128<<10 {
		t.Errorf("peak memory grew by %d KiB, limit 128 MiB", grown)
	}
	if info, err := os.Stat(path); err != nil || info.Size() != 50<<30 {
		t.Errorf("the file is %v, %v", info, err)
	}
}
