package state

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
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
	d := newFakeDisk(nil)
	s := openFake(t, d, Options{Sync: sync, Timeout: time.Minute})
	h := history{states: []map[string]string{held(s)}}
	for len(h.states) < 40 {
		key := fmt.Sprintf("token.%d", r.IntN(4))
		value := []byte(strings.Repeat(fmt.Sprint(r.IntN(1000)), 1+r.IntN(4)))
		if r.IntN(4) == 0 { // a value is a piece of our log
			log := d.content()[logName(1)]
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
	h.log = d.content()[logName(1)]
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

// openContent opens a Store with these files.
func openContent(t *testing.T, files map[string][]byte) (*embedded, *fakeDisk, error) {
	t.Helper()
	d := newFakeDisk(files)
	s, err := openOn(t.Context(), d, func() error { return nil }, Options{Timeout: time.Minute})
	return s, d, err
}

// shared is how many bytes two texts begin with together.
func shared(a, b []byte) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// A log that is cut anywhere opens, holds what was written up to there, and takes more.
func TestTorn(t *testing.T) {
	t.Parallel()
	h := newHistory(t, 0)
	garbage := make([]byte, 50)
	for i := range garbage {
		garbage[i] = byte(rand.Uint32())
	}
	for cut := h.starts[len(h.starts)-10]; cut <= len(h.log); cut++ {
		for _, tail := range [][]byte{nil, make([]byte, 4096), garbage, h.log[headerSize:min(cut, 300)]} {
			content := slices.Concat(h.log[:cut], tail)
			last := h.records(shared(content, h.log)) // by chance what follows may go on as the log did
			want := h.states[last]
			s, d, err := openContent(t, map[string][]byte{logName(1): content})
			must(t, err)
			if got := held(s); !maps.Equal(got, want) {
				t.Fatalf("cut at %d, %d bytes follow:\ngot  %v\nwant %v", cut, len(tail), got, want)
			}
			if torn := int64(len(content) - h.starts[last]); s.Stats().Cut != torn {
				t.Errorf("cut at %d: %+v, want %d", cut, s.Stats(), torn)
			}
			must(t, s.Set(t.Context(), "token.after", []byte("v")))
			after := held(s)
			must(t, s.Close())
			s = openFake(t, d, Options{Timeout: time.Minute})
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
	synced, loose := newHistory(t, 0), newHistory(t, time.Hour)
	last := len(synced.starts) - 2
	for at := range len(synced.log) {
		broken := bytes.Clone(synced.log)
		broken[at] ^= 0x10
		s, d, err := openContent(t, map[string][]byte{logName(1): broken})
		record := synced.records(at)
		if record == last { // nothing after it says that it was ever whole
			must(t, err)
			wantHeld(t, fmt.Sprint("byte ", at), s, synced.states[last])
			must(t, s.Close())
			continue
		}
		damage, ok := errors.AsType[*DamagedError](err)
		if !ok || damage.File != d.path(logName(1)) || damage.Offset != int64(start(synced, at)) {
			t.Fatalf("byte %d of record %d: %v", at, record, err)
		}
		if now := d.content(); len(now) != 1 || !bytes.Equal(now[logName(1)], broken) {
			t.Fatal("a damaged file was changed")
		}
	}
	for at := loose.starts[0]; at < len(loose.log); at += 7 {
		broken := bytes.Clone(loose.log)
		broken[at] ^= 0x10
		s, _, err := openContent(t, map[string][]byte{logName(1): broken})
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
	var good map[string][]byte
	synctest.Test(t, func(t *testing.T) {
		d := newFakeDisk(nil)
		s := openFake(t, d, Options{Sync: time.Hour, Timeout: time.Minute, compact: 1000})
		for i := range 100 {
			must(t, s.Set(t.Context(), "token.a", fmt.Appendf(nil, "%100d", i)))
			synctest.Wait() // a compaction ends
		}
		must(t, s.Close())
		good = d.content()
	})
	log := slices.Sorted(maps.Keys(good))[0]
	if len(good) != 2 || log == logName(1) {
		t.Fatalf("there are %v", slices.Sorted(maps.Keys(good)))
	}
	shorter := func(name string, by int) func(map[string][]byte) {
		return func(f map[string][]byte) { f[name] = f[name][:len(f[name])-by] }
	}
	for _, c := range []struct {
		name  string
		spoil func(map[string][]byte)
		want  string
		newer bool
	}{
		{name: "no log", spoil: func(f map[string][]byte) { delete(f, log) }, want: "the file is missing"},
		{name: "no snapshot", spoil: func(f map[string][]byte) { delete(f, snapshotName) }, want: "the file is missing"},
		{name: "empty log", spoil: func(f map[string][]byte) { f[log] = nil }, want: "no header"},
		{name: "short snapshot", spoil: shorter(snapshotName, 1), want: "it does not go on to its end"},
		{name: "snapshot without an end", spoil: shorter(snapshotName, overhead), want: "it does not go on to its end"},
		{name: "longer snapshot", spoil: func(f map[string][]byte) { f[snapshotName] = append(f[snapshotName], 0) }, want: "it does not go on to its end"},
		{name: "snapshot as log", spoil: func(f map[string][]byte) { f[log] = f[snapshotName] }, want: "it is a file of another kind"},
		{name: "log of another number", spoil: func(f map[string][]byte) { f[log] = header{kind: kindLog, generation: 77}.encode() }, want: "it is log 77 under another name"},
		{name: "log before a torn one", want: "the next log has records", spoil: func(f map[string][]byte) {
			h, err := readHeader(bytes.NewReader(f[log]))
			must(t, err)
			next := header{kind: kindLog, generation: h.generation + 1}
			f[logName(next.generation)] = next.add(next.encode(), 0, headerSize, record{opDelete, 0, 0, "token.a", nil})
			f[log] = append(f[log], 0)
		}},
		{name: "newer", newer: true, want: "format 2, this program knows 1", spoil: func(f map[string][]byte) {
			head := bytes.Clone(f[log][:40])
			head[8]++
			f[log] = slices.Concat(head, sumOf(head), f[log][headerSize:])
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			files := maps.Clone(good)
			c.spoil(files)
			_, d, err := openContent(t, files)
			_, damaged := errors.AsType[*DamagedError](err)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), d.path("")) || damaged == c.newer || errors.Is(err, ErrNewer) != c.newer {
				t.Errorf("got %v, want %s", err, c.want)
			}
			if !maps.EqualFunc(files, d.content(), bytes.Equal) {
				t.Error("the files were changed")
			}
		})
	}
}

func sumOf(b []byte) []byte {
	sum := crc32.Checksum(b, castagnoli())
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
