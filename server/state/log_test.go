package state

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// A history is a log, what the Store held after each of its records, and where each begins.
type history struct {
	log    []byte
	states []map[string]string // after no record, after one, …
	starts []int               // and the end of the last one
}

// newHistory writes random changes with a sync that is as given.
func newHistory(t *testing.T, sync time.Duration) history {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	s, _ := openFake(t, Options{Dir: t.TempDir(), Sync: sync, Timeout: time.Minute})
	h := history{states: []map[string]string{held(s)}}
	path := s.writer.disk.path(logName(1))
	for len(h.states) < 40 {
		key := fmt.Sprintf("token.%d", r.IntN(4))
		value := []byte(strings.Repeat(fmt.Sprint(r.IntN(1000)), 1+r.IntN(4)))
		if r.IntN(4) == 0 { // somebody keeps a piece of our log
			log, err := os.ReadFile(path)
			must(t, err)
			value = log[max(0, len(log)-100):]
		}
		before := s.Stats().Disk
		switch r.IntN(5) {
		case 0:
			must(t, s.Delete(t.Context(), key))
		case 1:
			must(t, s.Append(t.Context(), "job.p.a", value))
		default:
			must(t, s.Set(t.Context(), key, value))
		}
		if s.Stats().Disk > before {
			h.states, h.starts = append(h.states, held(s)), append(h.starts, int(before))
		}
	}
	var err error
	h.log, err = os.ReadFile(path)
	must(t, err)
	h.starts = append(h.starts, len(h.log))
	must(t, s.Close())
	return h
}

// records is how many whole records the first bytes of the log are.
func (h history) records(bytes int) int {
	n, found := slices.BinarySearch(h.starts, bytes)
	if found {
		return n
	}
	return n - 1
}

// openLog opens a Store whose only log has these bytes.
func openLog(t *testing.T, dir string, log []byte) (*embedded, error) {
	t.Helper()
	must(t, os.RemoveAll(dir))
	must(t, os.MkdirAll(filepath.Join(dir, "store"), 0o700))
	must(t, os.WriteFile(filepath.Join(dir, "store", logName(1)), log, 0o600))
	return openEmbedded(t.Context(), Options{Dir: dir, Timeout: time.Minute}, func(dir string) (disk, error) { return newFakeDisk(dir) })
}

// A log that is cut anywhere opens, holds what was written up to there, and takes more.
func TestTorn(t *testing.T) {
	t.Parallel()
	h := newHistory(t, 0)
	dir := t.TempDir()
	garbage := make([]byte, 50)
	for i := range garbage {
		garbage[i] = byte(rand.Uint32())
	}
	for cut := h.starts[len(h.starts)-10]; cut <= len(h.log); cut++ {
		want := h.states[h.records(cut)]
		for _, tail := range [][]byte{nil, make([]byte, 4096), garbage, h.log[headerSize:min(cut, 300)]} {
			s, err := openLog(t, dir, slices.Concat(h.log[:cut], tail))
			must(t, err)
			if got := held(s); !maps.Equal(got, want) {
				t.Fatalf("cut at %d, %d bytes follow:\ngot  %v\nwant %v", cut, len(tail), got, want)
			}
			if torn := int64(cut - h.starts[h.records(cut)] + len(tail)); s.Stats().Cut != torn {
				t.Errorf("cut at %d: %+v, want %d", cut, s.Stats(), torn)
			}
			must(t, s.Set(t.Context(), "token.after", []byte("v")))
			after := held(s)
			must(t, s.Close())
			s, err = openEmbedded(t.Context(), Options{Dir: dir, Timeout: time.Minute}, openDisk)
			must(t, err)
			if got := held(s); !maps.Equal(got, after) || s.Stats().Cut != 0 {
				t.Fatalf("cut at %d and written again:\ngot  %v\nwant %v", cut, got, after)
			}
			must(t, s.Close())
		}
	}
}

// What was on the disk and is broken now is an error that says where. What was never synced is cut off.
func TestDamaged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synced, loose := newHistory(t, 0), newHistory(t, time.Hour)
	last := len(synced.starts) - 2
	for at := range len(synced.log) {
		broken := bytes.Clone(synced.log)
		broken[at] ^= 0x10
		s, err := openLog(t, dir, broken)
		record := synced.records(at)
		if record == last { // nothing after it says that it was ever whole
			must(t, err)
			wantHeld(t, fmt.Sprint("byte ", at), s, synced.states[last])
			must(t, s.Close())
			continue
		}
		d, ok := errors.AsType[*DamagedError](err)
		if !ok || filepath.Base(d.File) != logName(1) || d.Offset != int64(start(synced, at)) {
			t.Fatalf("byte %d of record %d: %v", at, record, err)
		}
		if now, err := os.ReadFile(d.File); err != nil || !bytes.Equal(now, broken) {
			t.Fatalf("a damaged file was changed: %v", err)
		}
	}
	for at := loose.starts[0]; at < len(loose.log); at += 7 {
		broken := bytes.Clone(loose.log)
		broken[at] ^= 0x10
		s, err := openLog(t, dir, broken)
		must(t, err)
		wantHeld(t, fmt.Sprint("unsynced byte ", at), s, loose.states[loose.records(at)])
		must(t, s.Close())
	}
}

// start is where the record of a byte begins; 0: the header.
func start(h history, at int) int {
	if at < headerSize {
		return 0
	}
	n, found := slices.BinarySearch(h.starts, at)
	if !found {
		n--
	}
	return h.starts[n]
}

// Files that do not belong together are refused, and nothing is changed.
func TestWrongFiles(t *testing.T) {
	t.Parallel()
	make3 := func(t *testing.T) string {
		o := Options{Dir: t.TempDir(), Sync: time.Hour, Timeout: time.Minute, compact: 1000}
		s := openReal(t, o)
		for i := range 100 {
			must(t, s.Set(t.Context(), "token.a", fmt.Appendf(nil, "%100d", i)))
		}
		must(t, s.Close())
		return filepath.Join(o.Dir, "store")
	}
	current := func(t *testing.T, dir string) string {
		logs, err := filepath.Glob(filepath.Join(dir, "log.*"))
		must(t, err)
		return logs[len(logs)-1]
	}
	rewrite := func(t *testing.T, path string, change func([]byte) []byte) {
		b, err := os.ReadFile(path)
		must(t, err)
		must(t, os.WriteFile(path, change(b), 0o600))
	}
	for _, c := range []struct {
		name  string
		spoil func(*testing.T, string)
		want  string
		newer bool
	}{
		{name: "no log", spoil: func(t *testing.T, dir string) { must(t, os.Remove(current(t, dir))) }, want: "the file is missing"},
		{name: "no snapshot", spoil: func(t *testing.T, dir string) { must(t, os.Remove(filepath.Join(dir, snapshotName))) }, want: "the file is missing"},
		{name: "empty log", spoil: func(t *testing.T, dir string) { must(t, os.Truncate(current(t, dir), 0)) }, want: "no header"},
		{name: "short snapshot", spoil: func(t *testing.T, dir string) {
			rewrite(t, filepath.Join(dir, snapshotName), func(b []byte) []byte { return b[:len(b)-1] })
		}, want: "it does not go on to its end"},
		{name: "snapshot without an end", spoil: func(t *testing.T, dir string) {
			rewrite(t, filepath.Join(dir, snapshotName), func(b []byte) []byte { return b[:len(b)-overhead] })
		}, want: "it does not go on to its end"},
		{name: "snapshot as log", spoil: func(t *testing.T, dir string) {
			rewrite(t, current(t, dir), func([]byte) []byte {
				b, err := os.ReadFile(filepath.Join(dir, snapshotName))
				must(t, err)
				return b
			})
		}, want: "it is a file of another kind"},
		{name: "log of another number", spoil: func(t *testing.T, dir string) {
			rewrite(t, current(t, dir), func([]byte) []byte { return header{kind: kindLog, generation: 77}.encode() })
		}, want: "it is log 77 under another name"},
		{name: "newer", newer: true, spoil: func(t *testing.T, dir string) {
			rewrite(t, current(t, dir), func(b []byte) []byte {
				b[8]++
				return append(append(b[:40:40], sumOf(b[:40])...), b[44:]...)
			})
		}, want: "format 2, this program knows 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := make3(t)
			c.spoil(t, dir)
			_, err := Open(t.Context(), "embedded:", Options{Dir: filepath.Dir(dir)})
			_, damaged := errors.AsType[*DamagedError](err)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), dir) || damaged == c.newer || errors.Is(err, ErrNewer) != c.newer {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

func sumOf(b []byte) []byte {
	sum := crc32.Checksum(b, castagnoli)
	return []byte{byte(sum), byte(sum >> 8), byte(sum >> 16), byte(sum >> 24)}
}

// FuzzReadLog reads any bytes as a file, and as the body of a record whose checksum is right. What is whole of a file is
// a file, with the same records; and what was read is written as it was.
func FuzzReadLog(f *testing.F) {
	h := header{kind: kindLog, generation: 1, salt: 7, last: 9}
	log := h.encode()
	for i, r := range []record{
		{opSet, 10, 5, "token.a", []byte("v")}, {opDelete, 0, 0, "token.a", nil}, {opAppend, 11, 99, "job.p.a", []byte("w")}, {op: opEnd, at: 3},
	} {
		log = h.add(log, 0, int64(len(log)), r)
		f.Add(log)
		f.Add(log[:len(log)-1-i])
		f.Add(log[len(log)-bodyHead-len(r.name)-len(r.value):])
	}
	f.Add([]byte{})
	f.Add(bytes.Repeat(recordMagic, 100))
	f.Fuzz(func(t *testing.T, data []byte) {
		body := h.encode()
		body = append(body, recordMagic...)
		if len(data) >= bodyHead && len(data) <= maxBody {
			r, err := parse(data)
			if err == nil {
				body = h.add(h.encode(), 0, 0, r)
				if !bytes.Equal(body[headerSize+recordHead:], data) {
					t.Fatalf("%x was read as %+v", data, r)
				}
			}
		}
		for _, file := range [][]byte{data, body, slices.Concat(log, data), slices.Concat(body, data)} {
			read := func(b []byte) (records []string, whole int64, err error) {
				_, whole, err = readLog(bytes.NewReader(b), "f", int64(len(b)), func(r record) error {
					records = append(records, fmt.Sprint(r))
					return nil
				})
				return records, whole, err
			}
			first, whole, err := read(file)
			if whole > int64(len(file)) || err != nil && errors.Is(err, errTorn) {
				t.Fatalf("%d of %d bytes are whole, %v", whole, len(file), err)
			}
			if whole < headerSize {
				continue
			}
			again, n, err := read(file[:whole])
			if err != nil || n != whole || !slices.Equal(first, again) {
				t.Fatalf("the whole part is not: %d of %d, %v", n, whole, err)
			}
		}
	})
}
