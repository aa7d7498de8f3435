package tasks_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"codehand/filestate/lock"
	"codehand/server/state"
	"codehand/tools/session"
	"codehand/tools/tasks"
)

// cell is a list as a session has it.
func cell(t testing.TB) tasks.Memory {
	t.Helper()
	store := state.NewMemory(state.MemoryOptions{})
	t.Cleanup(func() { _ = store.Close() })
	return session.NewCell[tasks.Book](state.Scoped(store, "sess.local.test"), "cell.tasks")
}

// directory is a list in a directory, as one process has it.
func directory(path string) *tasks.Directory {
	return tasks.NewDirectory(path, tasks.DirectoryOptions{Locker: lock.New(tasks.Locks(path)), Fast: true})
}

// both runs a test for each Memory.
func both(t *testing.T, do func(t *testing.T, l tasks.List)) {
	t.Helper()
	t.Run("cell", func(t *testing.T) { t.Parallel(); do(t, tasks.New(cell(t))) })
	t.Run("directory", func(t *testing.T) {
		t.Parallel()
		do(t, tasks.New(directory(filepath.Join(t.TempDir(), "list"))))
	})
}

func create(t testing.TB, l tasks.List, subject string) string {
	t.Helper()
	made, err := l.Create(t.Context(), tasks.Draft{Subject: subject})
	if err != nil {
		t.Fatal(err)
	}
	return made.ID
}

func update(t testing.TB, l tasks.List, id string, c tasks.Change) (before, after tasks.Task) {
	t.Helper()
	before, after, err := l.Update(t.Context(), id, c)
	if err != nil {
		t.Fatalf("update %s: %v", id, err)
	}
	return before, after
}

func load(t testing.TB, l tasks.List) tasks.Book {
	t.Helper()
	b, err := l.Book(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// text is a Book for comparisons.
func text(b tasks.Book) string {
	raw, _ := json.Marshal(b)
	return string(raw)
}

func TestList(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, l tasks.List) {
		if b := load(t, l); len(b.Tasks) != 0 || b.Last != 0 {
			t.Fatalf("a new list holds %s", text(b))
		}
		made, err := l.Create(t.Context(), tasks.Draft{
			Subject: "a", Description: "d", ActiveForm: "doing a",
			Metadata: map[string]json.RawMessage{"n": json.RawMessage("1"), "none": json.RawMessage("null")},
		})
		if err != nil || made.ID != "1" || made.Status != tasks.Pending || len(made.Metadata) != 1 {
			t.Fatalf("made %+v, %v", made, err)
		}
		create(t, l, "b")
		before, after := update(t, l, "1", tasks.Change{
			Status: tasks.Completed, Owner: new("me"), AddBlocks: []string{"2", "2"},
			Metadata: map[string]json.RawMessage{"n": json.RawMessage("null"), "x": json.RawMessage(`{"y":[]}`)},
		})
		if before.Status != tasks.Pending || len(before.Blocks) != 0 || string(before.Metadata["n"]) != "1" {
			t.Errorf("before: %+v", before)
		}
		want := `{"last":2,"tasks":[` +
			`{"id":"1","subject":"a","description":"d","activeForm":"doing a","status":"completed","owner":"me","blocks":["2"],"blockedBy":[],"metadata":{"x":{"y":[]}}},` +
			`{"id":"2","subject":"b","description":"","status":"pending","blocks":[],"blockedBy":["1"]}]}`
		b := load(t, l)
		if text(b) != want {
			t.Errorf("got  %s\nwant %s", text(b), want)
		}
		if got, _ := b.Task("1"); text(tasks.Book{Tasks: []tasks.Task{got}}) != text(tasks.Book{Tasks: []tasks.Task{after}}) {
			t.Errorf("after: %+v", after)
		}
		two, _ := b.Task("2")
		if open := b.Blockers(two); len(open) != 0 {
			t.Errorf("a completed task blocks: %v", open)
		}
	})
}

// Ids of deleted tasks were free again in lists that count what they have.
func TestIDsAreUsedOnce(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, l tasks.List) {
		for i := 1; i <= 3; i++ {
			if id := create(t, l, "x"); id != fmt.Sprint(i) {
				t.Fatalf("got id %s, want %d", id, i)
			}
			if _, after := update(t, l, fmt.Sprint(i), tasks.Change{Delete: true, Subject: "ignored"}); after.ID != "" {
				t.Errorf("after a deletion: %+v", after)
			}
		}
	})
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, l tasks.List) {
		for range 4 {
			create(t, l, "x")
		}
		update(t, l, "1", tasks.Change{AddBlocks: []string{"2"}})
		update(t, l, "3", tasks.Change{AddBlockedBy: []string{"2"}})
		deep := json.RawMessage(strings.Repeat("[", 101) + strings.Repeat("]", 101))
		was := text(load(t, l))
		for name, c := range map[string]struct {
			id     string
			change tasks.Change
			want   string
		}{
			"no such task":    {"9", tasks.Change{Status: tasks.Completed}, "no task 9"},
			"no id":           {"x", tasks.Change{}, "no task x"},
			"another form":    {"01", tasks.Change{}, "no task 01"},
			"links nowhere":   {"1", tasks.Change{Owner: new("me"), AddBlocks: []string{"7", "2", "7"}, AddBlockedBy: []string{"8"}}, "no task 7, 8"},
			"itself":          {"1", tasks.Change{AddBlocks: []string{"1"}}, "circle of tasks: 1, 1"},
			"back":            {"2", tasks.Change{AddBlocks: []string{"1"}}, "circle of tasks: 2, 1, 2"},
			"around":          {"1", tasks.Change{Subject: "y", AddBlockedBy: []string{"3"}}, "circle of tasks: 3, 1, 2, 3"},
			"both directions": {"4", tasks.Change{AddBlocks: []string{"1"}, AddBlockedBy: []string{"1"}}, "circle of tasks: 1, 4, 1"},
			"deep metadata":   {"4", tasks.Change{Metadata: map[string]json.RawMessage{"a": deep}}, "metadata is nested"},
			"large":           {"4", tasks.Change{Description: strings.Repeat("x", tasks.MaxBook)}, "the list would take"},
		} {
			_, _, err := l.Update(t.Context(), c.id, c.change)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: got %v, want %s", name, err, c.want)
			}
			if is := text(load(t, l)); is != was {
				t.Errorf("%s changed the list:\n%s\n%s", name, was, is)
			}
		}
		unknown, ok := errors.AsType[*tasks.UnknownError](updateError(t, l, "9"))
		if !ok || !slices.Equal(unknown.Known, []string{"1", "2", "3", "4"}) {
			t.Errorf("known: %+v", unknown)
		}
		if _, err := l.Create(t.Context(), tasks.Draft{Metadata: map[string]json.RawMessage{"a": deep}}); !errors.Is(err, tasks.ErrDepth) {
			t.Errorf("a draft with deep metadata: %v", err)
		}
	})
}

func updateError(t *testing.T, l tasks.List, id string) error {
	t.Helper()
	_, _, err := l.Update(t.Context(), id, tasks.Change{})
	return err
}

// A list that took more than the Store keeps could not be changed at all, not even made smaller.
func TestLimits(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "list")
	fill(t, path, tasks.MaxTasks)
	full := cell(t)
	if _, err := full.Change(t.Context(), func(tasks.Book) (tasks.Book, error) { return directory(path).Load(t.Context()) }); err != nil {
		t.Fatal(err)
	}
	for name, l := range map[string]tasks.List{"cell": tasks.New(full), "directory": tasks.New(directory(path))} {
		t.Logf("in a %s", name)
		update(t, l, "7", tasks.Change{Status: tasks.Completed})
		_, err := l.Create(t.Context(), tasks.Draft{Subject: "one more"})
		if limit, ok := errors.AsType[*tasks.LimitError](err); !ok || limit.Tasks != tasks.MaxTasks || limit.Completed != 1 {
			t.Errorf("one more: %v", err)
		}
		update(t, l, "7", tasks.Change{Delete: true})
		if id := create(t, l, "x"); id != "501" {
			t.Errorf("after a deletion the id is %s", id)
		}
		var refused error
		for id := 1; refused == nil && id < 20; id++ {
			_, _, refused = l.Update(t.Context(), fmt.Sprint(id), tasks.Change{Description: strings.Repeat("<", 10_000)}) // 6 bytes each in JSON
		}
		if _, ok := errors.AsType[*tasks.SizeError](refused); !ok {
			t.Errorf("the list grew over the limit: %v", refused)
		}
		update(t, l, "500", tasks.Change{Status: tasks.InProgress})
	}
}

// fill writes the files of n tasks, as if by hand.
func fill(t testing.TB, path string, n int) {
	t.Helper()
	if err := os.MkdirAll(path, 0o700); err != nil {
		t.Fatal(err)
	}
	for id := 1; id <= n; id++ {
		put(t, path, fmt.Sprintf("%d.json", id), fmt.Sprintf(`{"id":"%d","subject":"x","description":"","status":"pending","blocks":[],"blockedBy":[]}`, id))
	}
}

// put writes one file.
func put(t testing.TB, path, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(path, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Metadata at the limit of what a decoder reads made a list that could not be read again.
func TestDeepMetadataComesBack(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, l tasks.List) {
		value := strings.Repeat(`{"\"[[":[`, 50) + strings.Repeat("]}", 50)
		if _, err := l.Create(t.Context(), tasks.Draft{Subject: "x", Metadata: map[string]json.RawMessage{"a": json.RawMessage(value), "b": json.RawMessage("\"\xff\"")}}); err != nil {
			t.Fatal(err)
		}
		got := load(t, l).Tasks[0].Metadata
		if string(got["a"]) != value || string(got["b"]) != `"`+"\uFFFD"+`"` {
			t.Errorf("got %s", got)
		}
	})
}

// Eight writers lose nothing, and no id is given twice.
func TestWriters(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, l tasks.List) {
		const writers, each = 8, 12
		var all sync.WaitGroup
		for w := range writers {
			all.Go(func() {
				for i := range each {
					made, err := l.Create(t.Context(), tasks.Draft{Subject: fmt.Sprintf("%d.%d", w, i)})
					if err == nil {
						_, _, err = l.Update(t.Context(), made.ID, tasks.Change{Owner: new(fmt.Sprint(w))})
					}
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		seen := map[string]bool{}
		for _, x := range load(t, l).Tasks {
			seen[x.Subject] = true
			if owner, _, _ := strings.Cut(x.Subject, "."); x.Owner != owner {
				t.Errorf("task %s of writer %s has the owner %q", x.ID, owner, x.Owner)
			}
		}
		if len(seen) != writers*each {
			t.Errorf("%d tasks, want %d", len(seen), writers*each)
		}
	})
}
