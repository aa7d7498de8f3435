package tasks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// alone is a Locker without other users.
type alone struct{}

func (alone) Lock(context.Context, ...string) (func(), error) { return func() {}, nil }

// TestEveryEnd ends each kind of change after each file that it writes. The next reader finds the whole list as before
// or as after the change, and the next writer gets a new id.
func TestEveryEnd(t *testing.T) {
	t.Parallel()
	changes := map[string]func(l List, ctx context.Context) error{
		"create": func(l List, ctx context.Context) error { _, err := l.Create(ctx, Draft{Subject: "new"}); return err },
		"link": func(l List, ctx context.Context) error {
			_, _, err := l.Update(ctx, "3", Change{AddBlocks: []string{"4", "5"}, AddBlockedBy: []string{"1"}})
			return err
		},
		"delete": func(l List, ctx context.Context) error {
			_, _, err := l.Update(ctx, "2", Change{Delete: true})
			return err
		},
		"status": func(l List, ctx context.Context) error {
			_, _, err := l.Update(ctx, "2", Change{Status: Completed})
			return err
		},
	}
	ends := 0
	for name, change := range changes {
		for at := 1; ; at++ {
			path := t.TempDir()
			whole := New(NewDirectory(path, DirectoryOptions{Locker: alone{}, Fast: true}))
			for range 5 {
				if _, err := whole.Create(t.Context(), Draft{Subject: "x"}); err != nil {
					t.Fatal(err)
				}
			}
			if _, _, err := whole.Update(t.Context(), "2", Change{AddBlocks: []string{"4"}, AddBlockedBy: []string{"1"}}); err != nil {
				t.Fatal(err)
			}
			// The youngest is gone, so only the file with the last id knows of it.
			if _, err := whole.Create(t.Context(), Draft{Subject: "gone"}); err != nil {
				t.Fatal(err)
			}
			if _, _, err := whole.Update(t.Context(), "6", Change{Delete: true}); err != nil {
				t.Fatal(err)
			}
			dying := NewDirectory(path, DirectoryOptions{Locker: alone{}, Fast: true})
			killed, n := errors.New("killed"), 0
			dying.done = func() error {
				if n++; n == at {
					return killed
				}
				return nil
			}
			err := change(New(dying), t.Context())
			if err == nil {
				break // there are fewer files
			}
			if !errors.Is(err, killed) {
				t.Fatal(err)
			}
			ends++
			if err := os.WriteFile(path+"/"+tempFile, []byte("half"), 0o600); err != nil {
				t.Fatal(err)
			}
			found, err := whole.Book(t.Context())
			if err != nil || found.Damaged != nil {
				t.Fatalf("%s, ended after %d files: %v %v", name, at, err, found.Damaged)
			}
			checkEnd(t, name+" "+strconv.Itoa(at), found)
			made, err := whole.Create(t.Context(), Draft{Subject: "after"})
			if n, _ := strconv.Atoi(made.ID); err != nil || n < 7 || slices.Contains(found.ids(), made.ID) {
				t.Errorf("%s, ended after %d files: the next id is %q, %v", name, at, made.ID, err)
			}
			// What is on the disk now is what was read, without anything to mend.
			for _, x := range found.Tasks {
				raw, err := os.ReadFile(path + "/" + fileOf(x.ID))
				if text, _ := encode(x); err != nil || !bytes.Equal(raw, text) {
					t.Errorf("%s, ended after %d files: %v\n%s\n%s", name, at, err, raw, text)
				}
			}
		}
	}
	if ends < 9 {
		t.Errorf("only %d ends were tried", ends)
	}
}

// checkEnd looks at a list that was found after an end in mid-change: a status is old or new, a deleted task is there
// with all its links or with none, and links stand at both ends.
func checkEnd(t *testing.T, name string, b Book) {
	t.Helper()
	for _, x := range b.Tasks {
		for _, other := range x.Blocks {
			if o, ok := b.task(other); !ok || !slices.Contains(o.BlockedBy, x.ID) {
				t.Errorf("%s: %s blocks %s at one end only", name, x.ID, other)
			}
		}
		for _, other := range x.BlockedBy {
			if o, ok := b.task(other); !ok || !slices.Contains(o.Blocks, x.ID) {
				t.Errorf("%s: %s is blocked by %s at one end only", name, x.ID, other)
			}
		}
	}
	if two, ok := b.task("2"); ok && (!slices.Contains(two.Blocks, "4") || !slices.Contains(two.BlockedBy, "1")) {
		t.Errorf("%s: task 2 lost its links: %+v", name, two)
	}
	if len(b.ids()) < 4 {
		t.Errorf("%s: only %v are left", name, b.ids())
	}
}

// FuzzTaskFile: what is taken for a task is written back as the same task, and a Book with it can be read again.
func FuzzTaskFile(f *testing.F) {
	for _, text := range []string{
		`{"id":"7","subject":"a","description":"d","activeForm":"x","status":"pending","owner":"o","blocks":["8"],"blockedBy":[],"metadata":{"a":{"b":[1,"]"]}}}`,
		`{"id":"7","status":"completed","metadata":{"a":null}}`, `{"id":"7"`, `{"ID":"7","status":"pending"}`, `{"id":"7","status":"pending"}{}`,
		`{"id":"7","status":"pending","metadata":{"a":` + strings.Repeat("[", 150) + strings.Repeat("]", 150) + `}}`,
		`{"id":"7","status":"pending","subject":"\ud800\u2028<&>"}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		x, err := decode("7", text)
		if err != nil {
			return
		}
		once, err := encode(x)
		if err != nil {
			t.Fatal(err)
		}
		again, err := decode("7", once)
		if err != nil {
			t.Fatalf("%v: %s", err, once)
		}
		if twice, _ := encode(again); !bytes.Equal(once, twice) {
			t.Fatalf("%s\n%s", once, twice)
		}
		b := Book{Last: 7, Tasks: []Task{again}}
		b.mend()
		raw, err := json.Marshal(b)
		var back Book
		if err == nil {
			err = json.Unmarshal(raw, &back)
		}
		if err != nil || len(back.Tasks) != 1 {
			t.Fatalf("%v: %s", err, raw)
		}
	})
}
