package tasks_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"codehand/filestate/lock"
	"codehand/tools/tasks"
)

const lastFile, tempFile = ".codehand-last", ".codehand-new"

// holds are the files of a directory, but for the locks.
func holds(t testing.TB, path string) map[string]string {
	t.Helper()
	files := map[string]string{}
	entries, err := os.ReadDir(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Type().IsRegular() {
			raw, err := os.ReadFile(filepath.Join(path, e.Name()))
			if err != nil {
				t.Fatal(err)
			}
			files[e.Name()] = string(raw)
		}
	}
	return files
}

func TestFilesOfADirectory(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a", "list")
	l := tasks.New(directory(path))
	if b := load(t, l); len(b.Tasks) > 0 {
		t.Fatal("a directory that is not there has tasks")
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal("a reader made the directory")
	}
	for _, subject := range []string{"a", "b <", "c"} {
		create(t, l, subject)
	}
	update(t, l, "2", tasks.Change{AddBlocks: []string{"3"}})
	update(t, l, "1", tasks.Change{Delete: true})
	want := map[string]string{
		lastFile: "3\n",
		"2.json": `{"id":"2","subject":"b <","description":"","status":"pending","blocks":["3"],"blockedBy":[]}` + "\n",
		"3.json": `{"id":"3","subject":"c","description":"","status":"pending","blocks":[],"blockedBy":["2"]}` + "\n",
	}
	if got := holds(t, path); !maps.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if runtime.GOOS == "windows" {
		return
	}
	for name, want := range map[string]fs.FileMode{".": 0o700, "2.json": 0o600, lastFile: 0o600, ".codehand-lock": 0o700} {
		info, err := os.Stat(filepath.Join(path, name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, want %v", name, info.Mode().Perm(), want)
		}
	}
}

// A process that ended in the middle of a change left links that stand at one end, links to tasks that are gone, and a
// half-written file; the next change makes them whole.
func TestDirectoryMends(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	put(t, path, "1.json", `{"id":"1","subject":"a","description":"","status":"pending","blocks":["2","9"],"blockedBy":["1"]}`)
	put(t, path, "2.json", `{"id":"2","subject":"b","description":"","status":"completed","blocks":["10","10"],"blockedBy":[]}`)
	put(t, path, "10.json", `{"id":"10","subject":"c","description":"","status":"in_progress","blocks":null,"blockedBy":["1"]}`)
	put(t, path, tempFile, `{"id":`)
	put(t, path, "notes.txt", "mine")
	put(t, path, "007.json", "mine, too")
	l := tasks.New(directory(path))
	want := `{"last":10,"tasks":[` +
		`{"id":"1","subject":"a","description":"","status":"pending","blocks":["2","10"],"blockedBy":[]},` +
		`{"id":"2","subject":"b","description":"","status":"completed","blocks":["10"],"blockedBy":["1"]},` +
		`{"id":"10","subject":"c","description":"","status":"in_progress","blocks":[],"blockedBy":["1","2"]}]}`
	if got := text(load(t, l)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if id := create(t, l, "d"); id != "11" {
		t.Errorf("the next id is %s", id)
	}
	files := holds(t, path)
	if !strings.Contains(files["10.json"], `"blockedBy":["1","2"]`) || strings.Contains(files["1.json"], `"9"`) || files[lastFile] != "11\n" {
		t.Errorf("the files were not mended: %q", files)
	}
	if files["notes.txt"] != "mine" || files["007.json"] != "mine, too" || files[tempFile] != "" {
		t.Errorf("foreign files: %q", files)
	}
}

// A damaged file counted as a task that is gone, and its id was given to another.
func TestDirectoryKeepsWhatIsDamaged(t *testing.T) {
	t.Parallel()
	good := func(id string) string {
		return fmt.Sprintf(`{"id":%q,"subject":"a","description":"","status":"pending","blocks":[],"blockedBy":[]}`, id)
	}
	for name, c := range map[string]struct{ content, reason string }{
		"half":           {`{"id":"2","subj`, "unexpected EOF"},
		"empty":          {"", "EOF"},
		"another id":     {good("3"), `the id in it is "3"`},
		"status":         {strings.Replace(good("2"), "pending", "gone", 1), `the status in it is "gone"`},
		"unknown field":  {strings.Replace(good("2"), `"id"`, `"prio":1,"id"`, 1), `unknown field "prio"`},
		"two values":     {good("2") + "{}", "more than one JSON value"},
		"no link":        {strings.Replace(good("2"), `"blocks":[]`, `"blocks":["../x"]`, 1), `names a task "../x"`},
		"bytes":          {strings.Replace(good("2"), `"a"`, "\"\xff\"", 1), "not UTF-8"},
		"too large":      {strings.Replace(good("2"), `"a"`, `"`+strings.Repeat("a", 1<<20)+`"`, 1), "more than 1048576 bytes"},
		"nested metdata": {strings.Replace(good("2"), `"id"`, `"metadata":{"a":`+strings.Repeat("[", 200)+strings.Repeat("]", 200)+`},"id"`, 1), "nested"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := t.TempDir()
			put(t, path, "1.json", strings.Replace(good("1"), `"blocks":[]`, `"blocks":["2"]`, 1))
			put(t, path, "2.json", c.content)
			l := tasks.New(directory(path))
			b := load(t, l)
			if len(b.Damaged) != 1 || b.Damaged[0].ID != "2" || b.Damaged[0].File != "2.json" || !strings.Contains(b.Damaged[0].Reason, c.reason) {
				t.Fatalf("damaged: %+v, want %s", b.Damaged, c.reason)
			}
			unknown, ok := errors.AsType[*tasks.UnknownError](updateError(t, l, "2"))
			if !ok || len(unknown.Damaged) != 1 {
				t.Errorf("update of it: %+v", unknown)
			}
			if id := create(t, l, "x"); id != "3" {
				t.Errorf("the next id is %s", id)
			}
			update(t, l, "1", tasks.Change{Owner: new("me")})
			files := holds(t, path)
			if files["2.json"] != c.content || !strings.Contains(files["1.json"], `"blocks":["2"]`) {
				t.Errorf("the damaged file or the link to it changed: %q", files["1.json"])
			}
		})
	}
}

// When the file with the last id is damaged, no task can be made; everything else goes on.
func TestDirectoryWithoutItsLastID(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	l := tasks.New(directory(path))
	create(t, l, "a")
	put(t, path, lastFile, "many\n")
	_, err := l.Create(t.Context(), tasks.Draft{Subject: "b"})
	if e, ok := errors.AsType[*tasks.DirectoryError](err); !ok || e.Name != lastFile || e.Writing {
		t.Errorf("create: %v", err)
	}
	update(t, l, "1", tasks.Change{Status: tasks.Completed})
	if b := load(t, l); len(b.Damaged) != 1 || b.Damaged[0].File != lastFile || b.Tasks[0].Status != tasks.Completed {
		t.Errorf("got %+v", b)
	}
	if files := holds(t, path); files[lastFile] != "many\n" {
		t.Error("the damaged file was overwritten")
	}
	if err := os.Remove(filepath.Join(path, lastFile)); err != nil {
		t.Fatal(err)
	}
	if id := create(t, l, "b"); id != "2" {
		t.Errorf("the next id is %s", id)
	}
}

// Links and directories in the place of a file are refused, and nothing is written through them.
func TestDirectoryFollowsNoLink(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	put(t, outside, "secret", "secret")
	for _, name := range []string{"1.json", lastFile, ".codehand-lock", tempFile} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := t.TempDir()
			if err := os.Symlink(filepath.Join(outside, "secret"), filepath.Join(path, name)); err != nil {
				if os.Getenv("CI") != "" {
					t.Fatal(err)
				}
				t.Skip("there are no links here: ", err)
			}
			l := tasks.New(directory(path))
			made, err := l.Create(t.Context(), tasks.Draft{Subject: "x"})
			switch name {
			case "1.json":
				if b := load(t, l); err != nil || made.ID != "2" || len(b.Damaged) != 1 || b.Damaged[0].Reason != "it is a link" {
					t.Errorf("made %+v, %v; %+v", made, err, b.Damaged)
				}
			case tempFile:
				if err != nil {
					t.Error(err)
				}
			default:
				if e, ok := errors.AsType[*tasks.DirectoryError](err); !ok || e.Name != name {
					t.Errorf("made %+v, %v", made, err)
				}
			}
			if got := holds(t, outside); !maps.Equal(got, map[string]string{"secret": "secret"}) {
				t.Errorf("outside: %q", got)
			}
		})
	}
}

func TestDirectoryIsBounded(t *testing.T) {
	t.Parallel()
	many := t.TempDir()
	fill(t, many, 1001)
	large := t.TempDir()
	for id := range 9 {
		put(t, large, fmt.Sprintf("%d.json", id+1), fmt.Sprintf(`{"id":"%d","subject":%q,"status":"pending"}`, id+1, strings.Repeat("x", 1<<20-100)))
	}
	file := filepath.Join(many, "1.json")
	for path, want := range map[string]string{many: "1001 files of tasks", large: "more than 8388608 bytes", file: "not a directory"} {
		_, err := directory(path).Load(t.Context())
		if e, ok := errors.AsType[*tasks.DirectoryError](err); !ok || !strings.Contains(err.Error(), want) || e.Writing {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	// A list over the limits that a person made by hand can be made smaller.
	over := t.TempDir()
	for id := range 3 {
		put(t, over, fmt.Sprintf("%d.json", id+1), fmt.Sprintf(`{"id":"%d","subject":%q,"status":"pending"}`, id+1, strings.Repeat("x", 200<<10)))
	}
	l := tasks.New(directory(over))
	if _, err := l.Create(t.Context(), tasks.Draft{Subject: "y"}); err == nil {
		t.Error("it grew")
	}
	update(t, l, "1", tasks.Change{Delete: true})
	update(t, l, "2", tasks.Change{Status: tasks.Completed, Subject: "short"})
}

// refuser is a Locker that never gives its lock.
type refuser struct{}

func (refuser) Lock(context.Context, ...string) (func(), error) { return nil, lock.ErrLocked }

func TestDirectoryIsLocked(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	l := tasks.New(tasks.NewDirectory(path, tasks.DirectoryOptions{Locker: refuser{}}))
	if _, err := l.Create(t.Context(), tasks.Draft{Subject: "x"}); !errors.Is(err, lock.ErrLocked) {
		t.Errorf("create: %v", err)
	}
	if files := holds(t, path); len(files) > 0 {
		t.Errorf("it wrote %q", files)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	gone := tasks.New(directory(path))
	if _, err := gone.Create(ctx, tasks.Draft{Subject: "x"}); !errors.Is(err, context.Canceled) {
		t.Errorf("create after a cancel: %v", err)
	}
	if _, err := gone.Book(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("load after a cancel: %v", err)
	}
}

// A full disk or a read-only one is an error, and the list is as it was.
func TestDirectoryThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	l := tasks.New(directory(path))
	create(t, l, "a")
	// Something that is not empty stands where files are written first.
	if err := os.MkdirAll(filepath.Join(path, tempFile, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	was := holds(t, path)
	_, err := l.Create(t.Context(), tasks.Draft{Subject: "b"})
	if e, ok := errors.AsType[*tasks.DirectoryError](err); !ok || !e.Writing || strings.Contains(err.Error(), path) {
		t.Errorf("create: %v", err)
	}
	if is := holds(t, path); !maps.Equal(is, was) {
		t.Errorf("it is %q, was %q", is, was)
	}
	if !slices.Equal(load(t, l).IDs(), []string{"1"}) {
		t.Error("the list changed")
	}
}

// A list that could not be locked, on a read-only disk say, was reported as a Store that does not answer. It can be
// read.
func TestDirectoryWithoutItsLock(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "list")
	create(t, tasks.New(directory(path)), "x")
	l := tasks.New(tasks.NewDirectory(path, tasks.DirectoryOptions{Locker: lock.New(filepath.Join(path, "1.json"))}))
	_, err := l.Create(t.Context(), tasks.Draft{Subject: "y"})
	_, loading := l.Book(t.Context())
	for _, err := range []error{err, loading} {
		if e, ok := errors.AsType[*tasks.DirectoryError](err); !ok || e.Step != "lock" || e.Writing || strings.Contains(err.Error(), path) {
			t.Errorf("got %v", err)
		}
	}
}

// A mover is a Locker that puts another directory in the place of the one at path before it gives its lock.
type mover struct {
	t    *testing.T
	path string
}

func (m mover) Lock(context.Context, ...string) (func(), error) {
	if err := errors.Join(os.Rename(m.path, m.path+".old"), os.Mkdir(m.path, 0o700)); err != nil {
		m.t.Error(err)
	}
	return func() {}, nil
}

// A task was written to the directory that had been there before the wait for the lock: it was acknowledged, and lost.
func TestDirectoryThatIsReplaced(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("a directory that is open cannot be renamed there")
	}
	path := filepath.Join(t.TempDir(), "list")
	create(t, tasks.New(tasks.NewDirectory(path, tasks.DirectoryOptions{Locker: mover{t, path}, Fast: true})), "x")
	if b := load(t, tasks.New(directory(path))); len(b.Tasks) != 1 {
		t.Errorf("the list has %v", b.IDs())
	}
}
