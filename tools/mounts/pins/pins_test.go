package pins

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/filestate/lock"
	"codehand/tools/mounts/upstream"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func tool(name, description, schema string) upstream.Definition {
	return upstream.Definition{Name: name, Description: description, Schema: json.RawMessage(schema)}
}

// What a server says first is pinned, also for the next process; what it says later is a change until it is accepted.
// The order of a schema's members is none, and a tool that comes is none.
func TestPins(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "pins")
	locker := lock.New(t.TempDir())
	first := tool("a", "one", `{"type":"object","properties":{"x":{},"y":{}}}`)
	yes := true
	for i, c := range []struct {
		now  upstream.Definition
		want string
	}{
		{first, ""}, {tool("a", "one", `{"properties": {"y":{},"x":{}}, "type":"object"}`), ""},
		{tool("a", "two", `{"type":"object"}`), "description,schema"}, {tool("b", "", `{}`), ""}, {first, ""},
		{upstream.Definition{Name: "a", Title: "A", Description: "one", Schema: first.Schema, Hints: upstream.Hints{ReadOnly: &yes}}, "title,hints"},
	} {
		b := New(dir, locker) // another process
		changed, err := b.Hold(t.Context(), "demo", []upstream.Definition{c.now})
		must(t, err)
		p, ok := changed[c.now.Name]
		if ok != (c.want != "") || ok && strings.Join(Differs(p, c.now), ",") != c.want || b.Same(t.Context(), "demo", c.now) == ok {
			t.Errorf("%d: %v", i, changed)
		}
	}
	b := New(dir, locker)
	second := tool("a", "two", `{}`)
	must(t, b.Accept(t.Context(), "demo", second))
	if !New(dir, locker).Same(t.Context(), "demo", second) || b.Same(t.Context(), "demo", first) {
		t.Error("what was accepted does not count")
	}
	if info, err := os.Stat(filepath.Join(dir, "demo.json")); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// A file that cannot be read makes every tool a changed one, until a person accepts.
func TestDamaged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "demo.json"), []byte(`{"tools":`), 0o600))
	b, one := New(dir, lock.New(t.TempDir())), tool("a", "", `{}`)
	changed, err := b.Hold(t.Context(), "demo", []upstream.Definition{one})
	if _, ok := changed["a"]; !ok || err == nil || b.Same(t.Context(), "demo", one) {
		t.Errorf("%v %v", changed, err)
	}
	must(t, b.Accept(t.Context(), "demo", one))
	if changed, err = b.Hold(t.Context(), "demo", []upstream.Definition{one}); err != nil || len(changed) > 0 {
		t.Errorf("%v %v", changed, err)
	}
}

// Where no file can be written, what was seen first holds for the process.
func TestInMemory(t *testing.T) {
	t.Parallel()
	blocked := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(blocked, nil, 0o600))
	b := New(filepath.Join(blocked, "pins"), lock.New(t.TempDir()))
	if changed, err := b.Hold(t.Context(), "demo", []upstream.Definition{tool("a", "one", `{}`)}); err == nil || len(changed) > 0 {
		t.Errorf("%v %v", changed, err)
	}
	if changed, _ := b.Hold(t.Context(), "demo", []upstream.Definition{tool("a", "two", `{}`)}); len(changed) != 1 {
		t.Errorf("%v", changed)
	}
}

// A server that has new names each time does not fill the disk, and of what is huge only a digest is kept.
func TestBounded(t *testing.T) {
	t.Parallel()
	b := New(t.TempDir(), lock.New(t.TempDir()))
	for round := range 3 {
		var all []upstream.Definition
		for i := range 1_000 {
			all = append(all, tool(fmt.Sprint("t", round, "-", i), "", `{}`))
		}
		_, err := b.Hold(t.Context(), "demo", all)
		must(t, err)
	}
	pinned, err := b.read("demo")
	must(t, err)
	if len(pinned) > mostPinned {
		t.Errorf("%d pins", len(pinned))
	}
	huge := tool("huge", strings.Repeat("x", mostKept+1), `{}`)
	_, err = b.Hold(t.Context(), "huge", []upstream.Definition{huge})
	must(t, err)
	huge.Description += "y"
	changed, err := b.Hold(t.Context(), "huge", []upstream.Definition{huge})
	must(t, err)
	if p, ok := changed["huge"]; !ok || p.Definition != nil || Differs(p, huge) != nil {
		t.Errorf("%v", changed)
	}
}

// Processes that pin at the same time lose nothing of each other.
func TestTogether(t *testing.T) {
	t.Parallel()
	dir, locks := t.TempDir(), t.TempDir()
	var all sync.WaitGroup
	var names []string
	for i := range 8 {
		name := fmt.Sprint("t", i)
		names = append(names, name)
		all.Go(func() {
			_, err := New(dir, lock.New(locks)).Hold(t.Context(), "demo", []upstream.Definition{tool(name, "", `{}`)})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	pinned, err := New(dir, lock.New(locks)).read("demo")
	must(t, err)
	if slices.ContainsFunc(names, func(n string) bool { return pinned[n].Sum == "" }) {
		t.Errorf("%d pins", len(pinned))
	}
}
