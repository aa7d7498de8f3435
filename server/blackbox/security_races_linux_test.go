package blackbox

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
)

// outsideMark is in every file outside the root, and in the name of one.
const outsideMark = "OUTSIDE-MARKER"

const (
	racers    = 8  // calls in flight
	racedLogs = 16 // files that get a line per edit
	readsEach = 10 // reads for each write
	metOften  = 30 // calls of one kind of which some meet each side; of a few, all may meet the same one
)

// racedBy begins the program over one transport, with settings by the names of their environment variables.
type racedBy func(t *testing.T, settings ...[2]string) (work string, connect func() func(tool, args string) (string, error))

// A race is a workspace in which a directory and a file are exchanged with links that lead out, all the time.
type race struct {
	*testing.T
	work, outside string
	before        string // of outside
	stop          func() int
	call          func(tool, args string) (string, error) // safe for concurrent use; an isError answer begins with "! "

	mu    sync.Mutex // covers what follows
	seen  map[string]int
	edits map[int]bool // by number: whether it was acknowledged
	files map[string]bool
}

func newRace(t *testing.T, work string) *race {
	t.Helper()
	r := &race{T: t, work: work, outside: leaktest.Dir(t), seen: map[string]int{}, edits: map[int]bool{}, files: map[string]bool{}}
	for _, side := range []struct{ dir, text string }{{work, "inside\n"}, {r.outside, outsideMark + "\n"}} {
		must(t, os.MkdirAll(filepath.Join(side.dir, "swap/sub"), 0o755))
		lay := func(name, content string) {
			must(t, os.WriteFile(filepath.Join(side.dir, name), []byte(content), 0o644))
		}
		lay("file.txt", side.text)
		lay("swap/sub/f.txt", side.text)
		lay("swap/book.ipynb", strings.Replace(hereBook, "here", strings.TrimSpace(side.text), 1))
		for i := range racedLogs {
			lay(fmt.Sprintf("swap/f%d.txt", i), side.text)
			lay("swap/"+logName(i), logHead+side.text)
		}
	}
	must(t, os.WriteFile(filepath.Join(r.outside, "swap", outsideMark+".txt"), nil, 0o644))
	must(t, os.Symlink(filepath.Join(r.outside, "swap"), filepath.Join(work, "out")))
	must(t, os.Symlink(filepath.Join(r.outside, "file.txt"), filepath.Join(work, "out.txt")))
	r.before = stamps(t, r.outside)
	return r
}

// start begins to exchange.
func (r *race) start() {
	r.Helper()
	r.stop = startSwapper(r.T, r.work, [2]string{"swap", "out"}, [2]string{"file.txt", "out.txt"})
}

func (r *race) path(name string) string { return filepath.Join(r.work, name) }

// naive resolves a path, sees that it lies inside, and opens it, as most do. It returns how often it read what is outside,
// and stops at some.
func (r *race) naive() (leaks, tries int) {
	for ; tries < 200_000 && leaks < 20; tries++ {
		name := []string{"swap/f0.txt", "file.txt"}[tries%2]
		real, err := filepath.EvalSymlinks(r.path(name))
		if err != nil || !strings.HasPrefix(real, r.work+"/") {
			continue
		}
		if b, err := os.ReadFile(real); err == nil && strings.Contains(string(b), outsideMark) {
			leaks++
		}
	}
	return leaks, tries
}

// run makes calls, racers at a time, of which each must end well or be refused for a good reason.
func (r *race) run(reads int) {
	r.Helper()
	var next atomic.Int64
	total := reads + reads/readsEach
	var all sync.WaitGroup
	for range racers {
		all.Go(func() {
			for !r.Failed() {
				n := int(next.Add(1)) - 1
				if n >= total {
					return
				}
				if n%(readsEach+1) == readsEach {
					r.write(n)
				} else {
					r.read(n)
				}
			}
		})
	}
	all.Wait()
}

// read makes one of the calls that only look.
func (r *race) read(n int) {
	file := fmt.Sprintf("swap/f%d.txt", n%racedLogs)
	switch n % 20 {
	case 0:
		r.did("list_files", "list_files", "path", "swap", "pattern", "**/*")
	case 1:
		r.did("list_files from above", "list_files", "pattern", "**/*.txt")
	case 2:
		r.did("grep_search", "grep_search", "pattern", "(?i)side", "path", "swap", "output_mode", "content")
	case 3:
		r.did("grep_search from above", "grep_search", "pattern", "(?i)side", "output_mode", "content")
	case 4:
		r.did("grep_search of a file", "grep_search", "pattern", "(?i)side", "path", file, "output_mode", "content")
	case 5, 6, 7, 8:
		r.did("read_file of a link", "read_file", "file_path", "file.txt")
	case 9, 10:
		r.did("read_file further below", "read_file", "file_path", r.path("swap/sub/f.txt"))
	case 11:
		r.did("read_file of cells", "read_file", "file_path", "swap/book.ipynb")
	default:
		r.did("read_file", "read_file", "file_path", file)
	}
}

// write makes one of the calls that change something.
func (r *race) write(n int) {
	line := fmt.Sprintf("edit %d.\n", n)
	item := func(i int) map[string]any {
		return map[string]any{"file_path": "swap/" + logName(i%racedLogs), "old_string": logHead, "new_string": logHead + line}
	}
	a, b := item(n), item(n+1+n%(racedLogs-1))
	switch k := n / (readsEach + 1) % 8; k {
	case 0, 1:
		name := fmt.Sprintf("swap/new%d.txt", n)
		if k == 1 {
			name = fmt.Sprintf("swap/new%d/sub/f.txt", n)
		}
		ok := r.did("write_file", "write_file", "file_path", name, "content", "inside\n")
		r.note(func() { r.files[name] = ok })
	case 2:
		r.did("notebook_edit", "notebook_edit", "notebook_path", "swap/book.ipynb", "cell_id", "a", "new_source", "inside "+line)
	case 3:
		ok := r.did("multi_edit", "multi_edit", "edits", []any{a, b})
		r.note(func() { r.edits[n] = ok })
	case 4:
		r.did("edit_file of a link", "edit_file", "file_path", "file.txt", "old_string", "inside", "new_string", "inside "+line)
	case 5:
		r.did("write_file of a link", "write_file", "file_path", "file.txt", "content", "inside "+line)
	default:
		ok := r.did("edit_file", "edit_file", "file_path", a["file_path"], "old_string", logHead, "new_string", logHead+line)
		r.note(func() { r.edits[n] = ok })
	}
}

func (r *race) note(what func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	what()
}

// did makes a call, and says whether it was done. kind is what it counts as.
func (r *race) did(kind, tool string, args ...any) bool {
	text, err := r.call(tool, replaytest.AsJSON(r.T, args...))
	code, _, refused := strings.Cut(strings.TrimPrefix(text, "! "), ": ")
	refused = refused && strings.HasPrefix(text, "! ")
	if !refused {
		code = "done"
	}
	if err != nil || text == "" || strings.Contains(text, outsideMark) || code == "INTERNAL" || strings.HasPrefix(text, "!!") {
		r.Errorf("%s %v: %v, %s", tool, args, err, text)
	}
	r.note(func() { r.seen[kind+": "+code]++ })
	return !refused
}

// check looks at both sides when all is over.
func (r *race) check() {
	r.Helper()
	if after := stamps(r.T, r.outside); after != r.before {
		r.Errorf("outside was\n%sis\n%s", r.before, after)
	}
	there := map[int]int{}
	for i := range racedLogs {
		b, err := os.ReadFile(r.path("swap/" + logName(i)))
		must(r, err)
		for line := range strings.Lines(string(b)) {
			var n int
			if _, err := fmt.Sscanf(line, "edit %d.\n", &n); err == nil {
				there[n]++
			}
		}
	}
	for n, ok := range r.edits {
		want := 0
		if ok {
			want = 1
			if n/(readsEach+1)%8 == 3 {
				want = 2
			}
		}
		if there[n] != want {
			r.Errorf("edit %d is there %d times, want %d", n, there[n], want)
		}
	}
	for _, one := range [][2]string{{"file.txt", "out.txt"}, {"out.txt", "file.txt"}} { // edits met both orders of the two
		info, err := os.Lstat(r.path(one[0]))
		must(r, err)
		if !info.Mode().IsRegular() {
			continue
		}
		if target, err := os.Readlink(r.path(one[1])); err != nil || target != filepath.Join(r.outside, "file.txt") {
			r.Errorf("%s leads to %s, %v", one[1], target, err)
		}
		if b, err := os.ReadFile(r.path(one[0])); err != nil || !strings.HasPrefix(string(b), "inside") {
			r.Errorf("%s holds %q, %v", one[0], b, err)
		}
	}
	for name, ok := range r.files {
		if b, err := os.ReadFile(r.path(name)); ok != (err == nil) || ok && string(b) != "inside\n" {
			r.Errorf("%s: acknowledged is %t, it holds %q, %v", name, ok, b, err)
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(r.seen)) {
		r.Logf("%7d %s", r.seen[kind], kind)
	}
	for _, kind := range []string{"read_file", "read_file of a link", "read_file further below", "grep_search", "list_files", "edit_file", "write_file", "multi_edit", "notebook_edit"} {
		done, out := r.seen[kind+": done"], r.seen[kind+": OUTSIDE_ROOTS"]
		if done+out >= metOften && min(done, out) == 0 || kind == "read_file" && done+out < metOften {
			r.Errorf("%s met only one of the two sides", kind)
		}
	}
}

// stamps are all names below dir, with what the system says of them but for when they were read.
func stamps(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	must(t, filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		st := inode(t, path)
		fmt.Fprintln(&b, path, st.Ino, st.Mode, st.Nlink, st.Uid, st.Gid, st.Size, st.Mtim, st.Ctim)
		return err
	}))
	return b.String() + tree(t, dir)
}

// A directory in the middle of a path and a file at its end are exchanged with links that lead out, while tools read and
// write through them: no answer has what is outside, and nothing is changed or made there. Edits that were acknowledged
// are there, others are not. The usual way, to resolve and then to open, leaks (SEC-02).
func TestSEC02Races(t *testing.T) {
	t.Parallel()
	reads := map[string]int{"stdio": leaktest.Rounds(2_000, 100_000), "http": leaktest.Rounds(500, 10_000)}
	for name, begin := range map[string]racedBy{"stdio": racedStdio, "http": racedHTTP} {
		t.Run(name, func(t *testing.T) {
			work, connect := begin(t)
			r := newRace(t, work)
			r.call = connect()
			for i := range racedLogs {
				r.did("before", "read_file", "file_path", "swap/"+logName(i))
			}
			r.did("before", "read_file", "file_path", "swap/book.ipynb")
			r.start()
			leaks, tries := r.naive()
			r.run(reads[name])
			swaps := r.stop()
			if !r.did("after", "read_file", "file_path", "swap/sub/f.txt") {
				t.Error("the program works no more")
			}
			r.check()
			t.Logf("%d reads and %d writes during %d exchanges: 0 answers from outside, nothing changed outside; resolve-then-open read %d of %d from outside",
				reads[name], reads[name]/readsEach, swaps, leaks, tries)
			if leaks == 0 || swaps < 1_000 {
				t.Error("they hardly met")
			}
		})
	}
}
