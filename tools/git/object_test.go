package git

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// gitIn runs git in a directory, free of this machine's configuration.
func gitIn(t testing.TB, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a",
		"GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// What git has of a file, loose, packed or as a delta, we read as git does. What lies in another repository is not read.
func TestObjects(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("git is not installed: it makes the objects")
		}
		t.Skip("git is not installed: it makes the objects")
	}
	dir := filepath.Join(t.TempDir(), "one")
	gitIn(t, filepath.Dir(dir), "init", "-q", dir)
	var base strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&base, "line %d of a file that is long enough for deltas\n", i)
	}
	contents := map[string]OID{}
	add := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "f"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		gitIn(t, dir, "add", "f")
		gitIn(t, dir, "commit", "-qm", "x")
		id, err := hex.DecodeString(gitIn(t, dir, "rev-parse", "HEAD:f"))
		if err != nil {
			t.Fatal(err)
		}
		contents[text] = OID(id)
		if BlobOID([]byte(text)) != OID(id) {
			t.Errorf("BlobOID differs from git's for %d bytes", len(text))
		}
	}
	check := func(common, how string) {
		t.Helper()
		o := NewObjects(common)
		defer o.Close()
		for text, id := range contents {
			if got, err := o.Blob(id, 1<<20); err != nil || string(got) != text {
				t.Errorf("%s: a blob of %d bytes is %d bytes, %v", how, len(text), len(got), err)
			}
			if _, err := o.Blob(id, len(text)-1); err == nil && text != "" {
				t.Errorf("%s: a blob that is larger than allowed is read", how)
			}
		}
		if _, err := o.Blob(OID{1}, 1<<20); err == nil {
			t.Errorf("%s: there is an object that is not there", how)
		}
	}
	add("")
	add(base.String())
	for i := range 20 {
		add(strings.Replace(base.String(), fmt.Sprintf("line %d ", i*100), "changed ", 1) + strings.Repeat("x", i))
	}
	check(filepath.Join(dir, ".git"), "loose")
	gitIn(t, dir, "repack", "-adfq", "--depth=50")
	check(filepath.Join(dir, ".git"), "packed")
	gitIn(t, dir, "config", "repack.useDeltaBaseOffset", "false")
	gitIn(t, dir, "repack", "-adfq")
	check(filepath.Join(dir, ".git"), "packed, bases by name")
	inner := filepath.Join(dir, ".git", "objects", "more")
	if err := os.Mkdir(inner, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, ".git", "objects", "pack"), filepath.Join(inner, "pack")); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, ".git", "objects", "info", "alternates"), "more\n"+inner+"\n")
	check(filepath.Join(dir, ".git"), "alternates in the repository")
	id := contents[""]
	for name, make := range map[string]func(other string){
		"alternates": func(other string) {
			put(t, filepath.Join(other, ".git", "objects", "info", "alternates"), inner+"\n")
		},
		"a link of the packs": func(other string) {
			pack := filepath.Join(other, ".git", "objects", "pack")
			if err := os.Remove(pack); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(filepath.Join(inner, "pack"), pack); err != nil {
				t.Skip("no links here:", err)
			}
		},
	} {
		other := filepath.Join(t.TempDir(), "two")
		gitIn(t, filepath.Dir(dir), "init", "-q", other)
		make(other)
		o := NewObjects(filepath.Join(other, ".git"))
		defer o.Close()
		if content, err := o.Blob(id, 1<<20); err == nil {
			t.Errorf("%s: an object of another repository is read: %q", name, content)
		}
	}
}

func put(t testing.TB, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// The index of a pack named a count of objects that its size did not fit, and up to 1 GiB of each was read. It is
// searched on the disk now, and what is unpacked has a limit.
func TestPackLimits(t *testing.T) {
	t.Parallel()
	common := t.TempDir()
	pack := filepath.Join(common, "objects", "pack", "pack-x")
	idx := func(count uint32, rest int) string {
		head := []byte("\xfftOc\x00\x00\x00\x02")
		for range 256 {
			head = binary.BigEndian.AppendUint32(head, count)
		}
		return string(head) + strings.Repeat("\x00", rest)
	}
	for name, c := range map[string]struct {
		text string
		ok   bool
	}{
		"none":        {idx(0, 40), true},
		"one":         {idx(1, 68), true},
		"one far":     {idx(1, 76), true},
		"too short":   {idx(1, 67), false},
		"too long":    {idx(1, 77), false},
		"endless":     {idx(1<<32-1, 68), false},
		"no head":     {"x", false},
		"falling fan": {strings.Replace(idx(1, 68), "\x02\x00\x00\x00\x01", "\x02\x00\x00\x00\x02", 1), false},
	} {
		put(t, pack+".idx", c.text)
		o := NewObjects(common)
		o.open()
		if got := len(o.packs) == 1; got != c.ok {
			t.Errorf("%s: opened %v, want %v", name, got, c.ok)
		}
		o.Close()
	}
	content := strings.Repeat("x", 1000)
	var packed bytes.Buffer
	z := zlib.NewWriter(&packed)
	_, _ = fmt.Fprintf(z, "blob %d\x00%s", len(content), content)
	_ = z.Close()
	id := BlobOID([]byte(content))
	put(t, filepath.Join(common, "objects", id.String()[:2], id.String()[2:]), packed.String())
	o := NewObjects(common)
	defer o.Close()
	o.left = 2500
	for _, want := range []bool{true, true, false, false} {
		if _, err := o.Blob(id, 1<<20); (err == nil) != want {
			t.Errorf("with %d bytes left, the blob is %v", o.left, err)
		}
	}
}

// A delta is a file of the workspace: whatever stands in it ends in an answer.
func FuzzDelta(f *testing.F) {
	f.Add([]byte("abcdef"), []byte{6, 3, 0x90, 3})
	f.Add([]byte("abcdef"), []byte{6, 5, 2, 'x', 'y', 0x91, 1, 3})
	f.Fuzz(func(t *testing.T, base, delta []byte) {
		if out, err := applyDelta(bytes.Clone(base), delta, 1<<16); err == nil && len(out) > 1<<16 {
			t.Errorf("%d bytes", len(out))
		}
	})
}
