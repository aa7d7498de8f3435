package shell

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"codehand/filestate/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// hang is the time after which a condition that does not come true is a failure.
const hang = 60 * time.Second

// reached polls until the condition holds; false: it never did.
func reached(condition func() bool) bool {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	late := time.After(hang)
	for !condition() {
		select {
		case <-late:
			return false
		case <-tick.C:
		}
	}
	return true
}

func waitFor(t *testing.T, what string, condition func() bool) {
	t.Helper()
	if !reached(condition) {
		t.Fatalf("still not true after %v: %s", hang, what)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A board keeps records in memory.
type board struct {
	mu     sync.Mutex
	values map[string][]byte
	broken error // what every method answers
}

func newBoard() *board { return &board{values: map[string][]byte{}} }

func (b *board) Get(_ context.Context, key string) ([]byte, uint64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.values[key], 1, b.broken
}

func (b *board) Set(_ context.Context, key string, value []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.broken == nil {
		b.values[key] = value
	}
	return b.broken
}

func (b *board) Delete(_ context.Context, key string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.broken == nil {
		delete(b.values, key)
	}
	return b.broken
}

func (b *board) Keys(_ context.Context, prefix string) ([]string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	keys := slices.Collect(maps.Keys(b.values))
	return slices.DeleteFunc(slices.Sorted(slices.Values(keys)), func(k string) bool {
		return !strings.HasPrefix(k, prefix+".")
	}), b.broken
}

func (b *board) fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.broken = err
}

var errDown = errors.New("the store is down")

// A stage is a Shell with a directory to run commands in.
type stage struct {
	*Shell
	board *board
	dir   string // where commands run
}

func newStage(t *testing.T) stage {
	t.Helper()
	return stageOn(t, newBoard(), filepath.Join(t.TempDir(), "jobs"))
}

func stageOn(t *testing.T, b *board, jobs string) stage {
	t.Helper()
	s, err := New(Options{Dir: jobs, Board: b, Env: []string{"PATH=/usr/local/bin:/usr/bin:/bin"}})
	if errors.Is(err, ErrNoShell) {
		t.Skip(err)
	}
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	dir := leaktest.Dir(t)
	return stage{s, b, dir}
}

// start starts a command; it must succeed.
func (s stage) start(t *testing.T, c Command) *Job {
	t.Helper()
	root, err := os.OpenRoot(s.dir)
	must(t, err)
	defer root.Close()
	c.Dir = root
	if c.Timeout == 0 {
		c.Timeout = hang
	}
	j, err := s.Start(t.Context(), c)
	must(t, err)
	return j
}

// run runs text to its end and returns what became of it.
func (s stage) run(t *testing.T, text string) (Info, string, string) {
	t.Helper()
	j := s.start(t, Command{Text: text})
	defer j.Release()
	i, err := j.Wait(t.Context(), time.Time{})
	must(t, err)
	stdout, stderr, err := s.Streams(t.Context(), i.ID, 1<<20)
	must(t, err)
	return i, stdout.Head, stderr.Head
}

// merged returns what a job has printed so far.
func (s stage) merged(t *testing.T, j *Job) string {
	t.Helper()
	c, err := s.Output(t.Context(), j.id, 0, 1<<20)
	must(t, err)
	return c.Head
}

// printed waits until a job has printed text.
func (s stage) printed(t *testing.T, j *Job, text string) {
	t.Helper()
	waitFor(t, "the command has printed "+text, func() bool { return strings.Contains(s.merged(t, j), text) })
}

// file makes a file in the directory of commands, for which they wait.
func (s stage) file(t *testing.T, name string) {
	t.Helper()
	must(t, os.WriteFile(filepath.Join(s.dir, name), nil, 0o600))
}

// files returns the names in the directory of spools.
func (s stage) files(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir(s.Shell.dir)
	must(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
