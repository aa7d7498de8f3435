package changes

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// reads is how often this process has read from files.
func reads(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/io")
	if err != nil {
		t.Skip(err)
	}
	_, rest, _ := strings.Cut(string(text), "syscr: ")
	n, err := strconv.Atoi(strings.TrimSpace(rest[:strings.IndexByte(rest, '\n')]))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// The answer to a command that made 20,000 files came two minutes later, since each of them was read. Nothing else runs
// beside this test.
func TestFloodIsNotRead(t *testing.T) {
	const files, most = 20_000, 2_000
	r := newRepo(t)
	r.sh("echo 1 >a; git add a; git commit -qm x")
	trees := New("", "")
	defer trees.Close()
	span := trees.Begin(t.Context(), r.dir)
	for i := range files {
		dir := filepath.Join(r.dir, "made", strconv.Itoa(i/1000))
		if i%1000 == 0 {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, strconv.Itoa(i)), []byte("x\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	before := reads(t)
	found := span.End(200, everything)
	if n := reads(t) - before; n > most {
		t.Errorf("%d files were read %d times", files, n)
	}
	if found.All != files {
		t.Errorf("%d of %d files are told of", found.All, files)
	}
}
