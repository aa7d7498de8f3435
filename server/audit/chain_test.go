package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// written is a log of three files, by name, as it was written.
func written(t testing.TB) (dir string, names []string) {
	t.Helper()
	dir = logDir(t)
	a := openTest(t, dir, func(o *Options) { o.Rotate = 2500 })
	for len(names) < 3 {
		must(t, a.Call(testRecord()))
		files, err := listFiles(dir)
		must(t, err)
		names = nil
		for _, f := range files {
			names = append(names, f.name)
		}
	}
	for range 2 {
		must(t, a.Event("login", map[string]any{"p": "corp/1234"}))
	}
	must(t, a.Close())
	if n, err := Check(dir); err != nil || n < 12 {
		t.Fatalf("%d lines, %v", n, err)
	}
	return dir, names
}

// TestCheck damages one thing at a time: each is found, and at its place.
func TestCheck(t *testing.T) {
	t.Parallel()
	edit := func(name int, change func(lines [][]byte) [][]byte) func(*testing.T, string, []string) {
		return func(t *testing.T, dir string, names []string) {
			path := filepath.Join(dir, names[name])
			b, err := os.ReadFile(path)
			must(t, err)
			must(t, os.WriteFile(path, bytes.Join(change(slices.Collect(bytes.Lines(b))), nil), 0o600))
		}
	}
	swap := func(n int, old, with string) func([][]byte) [][]byte {
		return func(l [][]byte) [][]byte {
			b := bytes.Replace(l[n], []byte(old), []byte(with), 1)
			if bytes.Equal(b, l[n]) {
				panic("nothing is changed in " + string(b))
			}
			l[n] = b
			return l
		}
	}
	drop := func(from, to int) func([][]byte) [][]byte {
		return func(l [][]byte) [][]byte { return slices.Delete(l, from, to) }
	}
	for _, c := range []struct {
		name   string
		damage func(t *testing.T, dir string, names []string)
		file   int
		line   int
		kind   string
	}{
		{"a letter changed", edit(0, swap(1, "edit_file", "read_file")), 0, 2, "changed"},
		{"a blank added", edit(1, swap(1, `"ok":true`, `"ok": true`)), 1, 2, "changed"},
		{"the last line of a file changed", edit(0, swap(3, "edit_file", "read_file")), 0, 4, "changed"},
		{"a first line changed", edit(1, swap(0, `"t":"2`, `"t":"3`)), 1, 1, "changed"},
		{"the first line of all changed", edit(0, swap(0, `"prev":"0`, `"prev":"1`)), 0, 1, "changed"},
		{"the hash changed", edit(1, swap(1, `"prev":"`, `"prev":"x`)), 1, 2, "changed"},
		{"a line deleted", edit(1, drop(1, 2)), 1, 2, "missing"},
		{"lines deleted", edit(0, drop(1, 3)), 0, 2, "missing"},
		{"the first line of a file deleted", edit(1, drop(0, 1)), 1, 1, "missing"},
		{"the last line of a file deleted", edit(0, func(l [][]byte) [][]byte { return l[:len(l)-1] }), 1, 1, "missing"},
		{"a line twice", edit(0, func(l [][]byte) [][]byte { return slices.Insert(l, 2, l[1]) }), 0, 3, "changed"},
		{"two lines in another order", edit(0, func(l [][]byte) [][]byte { l[1], l[2] = l[2], l[1]; return l }), 0, 2, "missing"},
		{"a line of another replica", edit(0, swap(1, `"rep":"r4k2"`, `"rep":"r4k3"`)), 0, 2, "changed"},
		{"the last line of all of another node", edit(2, swap(4, `"rep":"r4k2"`, `"rep":"r4k2","node":"b"`)), 2, 5, "changed"},
		{"another version", edit(0, swap(1, `"v":1`, `"v":2`)), 0, 2, "changed"},
		{"a wrong type", edit(0, swap(1, `"seq":2`, `"seq":"2"`)), 0, 2, "changed"},
		{"a field missing", edit(0, swap(1, `"ev":`, `"EX":`)), 0, 2, "changed"},
		{"a line cut", edit(0, func(l [][]byte) [][]byte { l[1] = append(l[1][:50:50], '\n'); return l }), 0, 2, "cut"},
		{"a line without end", edit(0, func(l [][]byte) [][]byte { n := len(l) - 1; l[n] = l[n][:len(l[n])-1]; return l }), 0, 4, "cut"},
		{"the end cut", edit(2, func(l [][]byte) [][]byte { n := len(l) - 1; l[n] = l[n][:20]; return l }), 2, 5, "cut"},
		{"an empty line", edit(0, func(l [][]byte) [][]byte { return slices.Insert(l, 1, []byte("\n")) }), 0, 2, "cut"},
		{"zeros", edit(0, func(l [][]byte) [][]byte { l[1] = append(make([]byte, 100), '\n'); return l }), 0, 2, "cut"},
		{"a very long line", edit(0, func(l [][]byte) [][]byte { l[1] = append(bytes.Repeat([]byte{' '}, maxLine), l[1]...); return l }), 0, 2, "changed"},
		{"an empty file", edit(0, func([][]byte) [][]byte { return nil }), 0, 1, "cut"},
		{"a file deleted", func(t *testing.T, dir string, names []string) { must(t, os.Remove(filepath.Join(dir, names[1]))) }, 2, 1, "missing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir, names := written(t)
			c.damage(t, dir, names)
			var err error
			synctest.Test(t, func(*testing.T) { _, err = Check(dir) }) // the clock of its pauses takes no time
			b, ok := errors.AsType[*Break](err)
			if !ok {
				t.Fatalf("got %v", err)
			}
			if b.File != names[c.file] || b.Line != c.line || b.Kind != c.kind {
				t.Errorf("got %v; want %s:%d: %s", err, names[c.file], c.line, c.kind)
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line: %q", err)
			}
		})
	}
}

// What is no damage is none: the oldest file is gone, the clock was set back, the process has only just begun a file.
func TestCheckTakes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(t *testing.T, dir string, names []string)
	}{
		{"the oldest file is gone", func(t *testing.T, dir string, names []string) { must(t, os.Remove(filepath.Join(dir, names[0]))) }},
		{"names in another order", func(t *testing.T, dir string, names []string) {
			must(t, os.Rename(filepath.Join(dir, names[1]), filepath.Join(dir, fileName("r4k2", time.Unix(1, 0)))))
		}},
		{"an empty file that is written", func(t *testing.T, dir string, names []string) {
			must(t, os.Rename(filepath.Join(dir, names[2]), filepath.Join(dir, fileName("r4k2", time.Now()))))
			must(t, os.WriteFile(filepath.Join(dir, names[2]), nil, 0o600))
		}},
		{"other files", func(t *testing.T, dir string, _ []string) {
			must(t, os.WriteFile(filepath.Join(dir, "README"), []byte("x"), 0o600))
			must(t, os.WriteFile(filepath.Join(dir, "audit-.jsonl"), []byte("x"), 0o600))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir, names := written(t)
			c.change(t, dir, names)
			if n, err := Check(dir); err != nil || n == 0 {
				t.Errorf("%d lines, %v", n, err)
			}
		})
	}
}

func TestCheckCannot(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := Check(dir); err == nil || err.Error() != "there is no audit log in "+dir {
		t.Errorf("an empty directory: %v", err)
	}
	if _, err := Check(filepath.Join(dir, "missing")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no directory: %v", err)
	}
	must(t, os.Mkdir(filepath.Join(dir, "audit-x.jsonl"), 0o700))
	if _, err := Check(dir); err == nil || !strings.Contains(err.Error(), "is not a regular file") {
		t.Errorf("a directory at the name: %v", err)
	}
}

// A line that is gone from the end of what is written shows as soon as the next one is there.
func TestCheckWhileWritten(t *testing.T) {
	t.Parallel()
	dir := logDir(t)
	a := openTest(t, dir, nil)
	must(t, a.Event("login", nil))
	path := filepath.Join(dir, "audit-r4k2.jsonl")
	b, err := os.ReadFile(path)
	must(t, err)
	must(t, os.WriteFile(path, b[:bytes.IndexByte(b, '\n')+1], 0o600))
	mustCheck(t, dir, 1)
	must(t, a.Event("logout", nil))
	if _, err := Check(dir); err == nil || !strings.Contains(err.Error(), "audit-r4k2.jsonl:2: missing: numbers 2 to 2 are gone") {
		t.Errorf("got %v", err)
	}
}

// A writer can be held up within a line: what ends while it is looked at is whole, what does not is cut.
func TestCheckHalfLine(t *testing.T) {
	t.Parallel()
	dir, names := written(t)
	lines, err := Check(dir)
	must(t, err)
	path := filepath.Join(dir, names[2])
	b, err := os.ReadFile(path)
	must(t, err)
	half := len(b) - 20
	must(t, os.WriteFile(path, b[:half], 0o600))
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if _, err := Check(dir); err == nil || !strings.Contains(err.Error(), "cut: the line has no end") {
			t.Errorf("it never gets an end: %v", err)
		}
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("the check took %v", took)
		}
		var writer sync.WaitGroup
		defer writer.Wait()
		writer.Go(func() {
			time.Sleep(time.Second)
			f, err := createFile(path)
			if err == nil {
				_, err = f.Write(b[half:])
				err = errors.Join(err, f.Close())
			}
			if err != nil {
				t.Error(err)
			}
		})
		mustCheck(t, dir, lines)
	})
}

// A process that was killed within a line leaves its half. Who comes after it has another file, and mends this one.
func TestMend(t *testing.T) {
	t.Parallel()
	dir, names := written(t)
	path := filepath.Join(dir, names[2])
	b, err := os.ReadFile(path)
	must(t, err)
	before := bytes.Count(b, []byte("\n"))
	must(t, os.WriteFile(path, b[:len(b)-20], 0o600))
	log := slog.New(slog.DiscardHandler)
	for _, replica := range []string{"", "r9x9", "../r4k2"} { // none, another replica, no name
		must(t, Mend(dir, replica, log))
		if info, err := os.Stat(path); err != nil || info.Size() != int64(len(b)-20) {
			t.Fatalf("Mend of %q touched it: %v", replica, err)
		}
	}
	for range 2 {
		must(t, Mend(dir, "r4k2", log))
		got, err := os.ReadFile(path)
		must(t, err)
		if !bytes.HasPrefix(b, got) || bytes.Count(got, []byte("\n")) != before-1 || got[len(got)-1] != '\n' {
			t.Fatalf("left are %d of %d bytes", len(got), len(b))
		}
	}
	if _, err := Check(dir); err != nil {
		t.Error(err)
	}
	must(t, os.Remove(path))
	must(t, os.Symlink("/dev/null", path))
	if err := Mend(dir, "r4k2", log); err == nil {
		t.Error("a link was followed")
	}
	must(t, Mend(filepath.Join(dir, "missing"), "r4k2", log))
	must(t, Mend("-", "r4k2", log))
}

// A goneEntry is of a file that has left its name since the directory was read.
type goneEntry struct{ os.DirEntry }

func (goneEntry) Info() (os.FileInfo, error) { return nil, os.ErrNotExist }

// The only file there is gets another name while the directory is listed.
func TestFilesMove(t *testing.T) {
	t.Parallel()
	dir := logDir(t)
	must(t, openTest(t, dir, nil).Close())
	moved := fileName("r4k2", time.Now())
	reads := 0
	move := func(dir string) ([]os.DirEntry, error) {
		entries, err := os.ReadDir(dir)
		if reads++; err == nil && reads == 1 {
			err = os.Rename(filepath.Join(dir, entries[0].Name()), filepath.Join(dir, moved))
			entries[0] = goneEntry{entries[0]}
		}
		return entries, err
	}
	if files, err := listAgain(dir, 2, move); err != nil || len(files) != 1 || files[0].name != moved {
		t.Errorf("got %v, %v", files, err)
	}
	reads = 0
	stale := func(dir string) ([]os.DirEntry, error) {
		entries, err := os.ReadDir(dir)
		for i, e := range entries {
			entries[i] = goneEntry{e}
		}
		reads++
		return entries, err
	}
	if files, err := listAgain(dir, 5, stale); err != nil || len(files) != 0 || reads != 5 {
		t.Errorf("a directory that lists what is gone: %v, %v, read %d times", files, err, reads)
	}
}

// A file is set aside between the listing and the reading: the next try goes on where this one came to.
func TestCheckRotated(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(t *testing.T, first, second string)
		gone   bool // the two files
	}{
		{"only that", func(*testing.T, string, string) {}, false},
		{"what was read is not read again", func(t *testing.T, first, _ string) {
			b, err := os.ReadFile(first)
			must(t, err)
			must(t, os.WriteFile(first, bytes.Replace(b, []byte("edit_file"), []byte("read_file"), 1), 0o600))
		}, false},
		{"what was read is deleted", func(t *testing.T, first, second string) {
			must(t, errors.Join(os.Remove(first), os.Remove(second)))
		}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir, names := written(t)
			old, err := listFiles(dir)
			must(t, err)
			must(t, os.Rename(filepath.Join(dir, names[2]), filepath.Join(dir, fileName("r4k2", time.Now()))))
			must(t, openTest(t, dir, nil).Close())
			all, err := Check(dir)
			must(t, err)

			chains := map[string]chain{}
			before, err := checkChains(dir, old, chains)
			if b, ok := errors.AsType[*Break](err); !ok || b.Kind != auditMissing || b.File != names[2] {
				t.Fatalf("got %v", err)
			}
			c.change(t, filepath.Join(dir, names[0]), filepath.Join(dir, names[1]))
			if c.gone {
				all -= before
			}
			now, err := listFiles(dir)
			must(t, err)
			if n, err := checkChains(dir, now, chains); err != nil || n != all {
				t.Errorf("%d lines, %v; want %d", n, err, all)
			}
		})
	}
}

// The first line of the file that is written is half there: the files before it have their order all the same.
func TestSortHalfLine(t *testing.T) {
	t.Parallel()
	dir, names := written(t)
	early := fileName("r4k2", time.Unix(1, 0))
	must(t, os.Rename(filepath.Join(dir, names[1]), filepath.Join(dir, early)))
	must(t, os.WriteFile(filepath.Join(dir, names[2]), []byte(`{"v":1,`), 0o600))
	files, err := listFiles(dir)
	must(t, err)
	sortFiles(dir, files)
	if files[0].name != names[0] || files[1].name != early || !files[2].active {
		t.Errorf("got %v", files)
	}
}

// slowCheck is the checker as one would write it on paper, for one file that is written.
func slowCheck(data []byte) (lines int, whole bool) {
	prev, seq := strings.Repeat("0", 64), int64(0)
	if len(data) > 0 && data[len(data)-1] != '\n' {
		whole = false
	} else {
		whole = true
	}
	for line := range strings.SplitAfterSeq(string(data), "\n") {
		if line == "" {
			break
		}
		body, ended := strings.CutSuffix(line, "\n")
		var h struct {
			V, Seq        int64
			T             time.Time
			Ev, Rep, Prev string
		}
		ok := ended && len(line) <= 16<<10 && json.Unmarshal([]byte(body), &h) == nil && h.V == 1 && h.Rep == "r" && h.Ev != "" &&
			h.Seq > 0 && !h.T.IsZero() && len(h.Prev) == 64
		if lines == 0 {
			ok = ok && (h.Ev == "serve.start" || h.Ev == "rotate") && (h.Seq > 1 || h.Prev == prev)
		} else {
			ok = ok && h.Seq == seq+1 && h.Prev == prev
		}
		if !ok {
			return lines, false
		}
		sum := sha256.Sum256([]byte(body))
		prev, seq = hex.EncodeToString(sum[:]), h.Seq
		lines++
	}
	return lines, whole
}

// FuzzCheck: the checker agrees with a slow one on any bytes, and finds every change of a byte, every line that is
// gone and every cut of a log that was written, but at its very end.
func FuzzCheck(f *testing.F) {
	var lines [][]byte
	var out bytes.Buffer
	a, err := Open(Options{Dir: "-", Out: &out, Replica: "r", Start: map[string]any{"version": "1"}})
	must(f, err)
	for range 4 {
		must(f, a.Call(testRecord()))
	}
	must(f, a.Close())
	good := out.Bytes()
	lines = slices.Collect(bytes.Lines(good))
	f.Add([]byte(nil), uint(0), byte(0))
	f.Add(good, uint(10), byte(1))
	f.Add(bytes.Join(lines[1:], nil), uint(len(good)/2), byte(0x20))
	f.Add(append(slices.Clone(good), "{}\n"...), uint(len(good)-1), byte(0xff))
	check := func(data []byte) (int, error) {
		c := chain{replica: "r"}
		err := c.read(bytes.NewReader(data), logFile{name: "audit-r.jsonl", replica: "r", active: true})
		return c.lines, err
	}
	f.Fuzz(func(t *testing.T, data []byte, at uint, flip byte) {
		n, err := check(data)
		if want, whole := slowCheck(data); (err == nil) != whole || whole && n != want {
			t.Errorf("%d lines, %v; on paper %d, whole: %v\n%q", n, err, want, whole, data)
		}
		if n, err := check(good); err != nil || n != len(lines) {
			t.Fatalf("%d lines, %v", n, err)
		}
		at %= uint(len(good) - len(lines[len(lines)-1])) // but in the last line, which nothing follows
		changed := slices.Clone(good)
		if changed[at] ^= flip; flip != 0 {
			if _, err := check(changed); err == nil {
				t.Errorf("byte %d changed by %#x is not found", at, flip)
			}
		}
		line := int(at) % (len(lines) - 1)
		if _, err := check(bytes.Join(slices.Delete(slices.Clone(lines), line, line+1), nil)); err == nil {
			t.Errorf("line %d deleted is not found", line+1)
		}
		if _, err := check(good[:at]); err == nil && at > 0 && good[at-1] != '\n' {
			t.Errorf("a cut at %d is not found", at)
		}
		if _, err := check(slices.Insert(slices.Clone(good), int(at), []byte(fmt.Sprintln(string(data)))...)); err == nil {
			t.Errorf("%q put in at %d is not found", data, at)
		}
	})
}
