package tasks_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"codehand/tools/tasks"
)

var seed = flag.Uint64("seed", 0, "of the random operations; 0: a new one")

// A model is a list as a person would keep it on paper: no bytes, no files, links as a set of pairs.
type model struct {
	last  int
	tasks map[int]tasks.Task // without links
	links map[[2]int]bool    // the first blocks the second
}

// book is what a list that went through the same has to hold.
func (m *model) book() tasks.Book {
	b := tasks.Book{Last: m.last}
	for id := 1; id <= m.last; id++ {
		t, ok := m.tasks[id]
		if !ok {
			continue
		}
		t.Blocks, t.BlockedBy = []string{}, []string{}
		for other := 1; other <= m.last; other++ {
			if m.links[[2]int{id, other}] {
				t.Blocks = append(t.Blocks, fmt.Sprint(other))
			}
			if m.links[[2]int{other, id}] {
				t.BlockedBy = append(t.BlockedBy, fmt.Sprint(other))
			}
		}
		b.Tasks = append(b.Tasks, t)
	}
	return b
}

// leads says whether one task blocks another, over others.
func (m *model) leads(from, to int) bool {
	if from == to {
		return true
	}
	for link := range m.links {
		if link[0] == from && m.leads(link[1], to) {
			return true
		}
	}
	return false
}

// update is what Update should do; "": it goes through, else the kind of its error.
func (m *model) update(id int, c tasks.Change, blocks, blockedBy []int) string {
	t, ok := m.tasks[id]
	if !ok {
		return "*tasks.UnknownError"
	}
	if c.Delete {
		delete(m.tasks, id)
		for link := range m.links {
			if link[0] == id || link[1] == id {
				delete(m.links, link)
			}
		}
		return ""
	}
	for _, other := range slices.Concat(blocks, blockedBy) {
		if _, ok := m.tasks[other]; !ok {
			return "*tasks.UnknownError"
		}
	}
	was := map[[2]int]bool{}
	for link := range m.links {
		was[link] = true
	}
	var pairs [][2]int
	for _, other := range blocks {
		pairs = append(pairs, [2]int{id, other})
	}
	for _, other := range blockedBy {
		pairs = append(pairs, [2]int{other, id})
	}
	for _, p := range pairs {
		if !m.links[p] && m.leads(p[1], p[0]) {
			m.links = was
			return "*tasks.CycleError"
		}
		m.links[p] = true
	}
	if c.Status != "" {
		t.Status = c.Status
	}
	if c.Owner != nil {
		t.Owner = *c.Owner
	}
	for key, value := range c.Metadata {
		next := map[string]json.RawMessage{}
		for k, v := range t.Metadata {
			next[k] = v
		}
		if next[key] = value; string(value) == "null" {
			delete(next, key)
		}
		t.Metadata = next
	}
	m.tasks[id] = t
	return ""
}

// TestModel does the same random things to a list in a cell, to one in a directory that two share, and on paper.
func TestModel(t *testing.T) {
	t.Parallel()
	from := *seed
	if from == 0 {
		from = uint64(time.Now().UnixNano())
	}
	for round := range uint64(20) {
		t.Run(fmt.Sprint(from+round), func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "list")
			runModel(t, rand.New(rand.NewPCG(from+round, 1)), []tasks.List{tasks.New(cell(t))}, []tasks.List{tasks.New(directory(path)), tasks.New(directory(path))})
			if t.Failed() {
				t.Logf("go test ./tools/tasks -run TestModel -seed %d", from+round)
			}
		})
	}
}

// runModel has several lists of several doors each; which door an operation takes does not matter.
func runModel(t *testing.T, r *rand.Rand, lists ...[]tasks.List) {
	t.Helper()
	m := &model{tasks: map[int]tasks.Task{}, links: map[[2]int]bool{}}
	some := func() (ids []int) {
		for range r.IntN(3) {
			ids = append(ids, 1+r.IntN(m.last+1))
		}
		return ids
	}
	for step := range 60 {
		want, did := "", ""
		var do func(l tasks.List) error
		if r.IntN(3) == 0 || m.last == 0 {
			m.last++
			subject := fmt.Sprint("task ", step)
			m.tasks[m.last] = tasks.Task{ID: fmt.Sprint(m.last), Subject: subject, Status: tasks.Pending}
			did = "create"
			do = func(l tasks.List) error { _, err := l.Create(t.Context(), tasks.Draft{Subject: subject}); return err }
		} else {
			id, blocks, blockedBy := 1+r.IntN(m.last+1), some(), some()
			c := tasks.Change{
				Delete: r.IntN(8) == 0, Status: []string{"", tasks.Pending, tasks.InProgress, tasks.Completed}[r.IntN(4)], Owner: []*string{nil, new(""), new("a"), new("b")}[r.IntN(4)],
				AddBlocks: words(blocks), AddBlockedBy: words(blockedBy),
				Metadata: map[string]json.RawMessage{fmt.Sprint("k", r.IntN(2)): json.RawMessage([]string{"null", "1", `"x"`}[r.IntN(3)])},
			}
			did = fmt.Sprintf("update %d %+v", id, c)
			was, _ := m.book().Task(fmt.Sprint(id))
			want = m.update(id, c, blocks, blockedBy)
			is, _ := m.book().Task(fmt.Sprint(id))
			do = func(l tasks.List) error {
				before, after, err := l.Update(t.Context(), fmt.Sprint(id), c)
				got, want := strip(tasks.Book{Tasks: []tasks.Task{before, after}}), strip(tasks.Book{Tasks: []tasks.Task{was, is}})
				if err == nil && got != want {
					t.Errorf("step %d, %s:\nsays %s\nwant %s", step, did, got, want)
				}
				return err
			}
		}
		for _, doors := range lists {
			err := do(doors[r.IntN(len(doors))])
			if got := kind(err); got != want {
				t.Fatalf("step %d, %s: got %q (%v), want %q", step, did, got, err, want)
			}
			if got, want := strip(load(t, doors[r.IntN(len(doors))])), strip(m.book()); got != want {
				t.Fatalf("step %d, %s:\ngot  %s\nwant %s", step, did, got, want)
			}
		}
	}
}

// strip makes nothing of what is empty in different ways.
func strip(b tasks.Book) string {
	return strings.ReplaceAll(strings.ReplaceAll(text(b), `"tasks":null`, `"tasks":[]`), `,"metadata":{}`, "")
}

func words(ids []int) (all []string) {
	for _, id := range ids {
		all = append(all, fmt.Sprint(id))
	}
	return all
}

// kind is the type of the innermost error.
func kind(err error) string {
	for err != nil {
		type wrapper interface{ Unwrap() error }
		w, ok := err.(wrapper)
		if !ok || w.Unwrap() == nil {
			return fmt.Sprintf("%T", err)
		}
		err = w.Unwrap()
	}
	return ""
}
