package pauses

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"codehand/server/state"
)

// A keeper is a Table or a Dir.
type keeper interface {
	Of(principal string, all bool) []Pause
	Pause(ctx context.Context, by string, admin bool) error
	Resume(ctx context.Context, of, by string, admin bool) error
}

func table(t *testing.T, s state.Store) *Table {
	t.Helper()
	x, err := NewTable(t.Context(), s, func(string, map[string]any) {}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// of are whose pauses are listed.
func of(k keeper, who string, all bool) string {
	var names []string
	for _, p := range k.Of(who, all) {
		names = append(names, "of "+p.Of+" by "+p.By)
	}
	return strings.Join(names, "|")
}

// TestTable: people pause and resume their own calls, an administrator everybody's, and only that one resumes them. It
// holds on all machines, and after a restart.
func TestTable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := state.NewMemory(state.MemoryOptions{})
		defer s.Close()
		one, two := table(t, s), table(t, s)
		defer one.Close()
		defer two.Close()
		ctx := t.Context()
		held := func(want string) {
			t.Helper()
			synctest.Wait()
			three := table(t, s) // as after a restart
			defer three.Close()
			for i, x := range []*Table{one, two, three} {
				got := ""
				for _, who := range []string{"ann", "bob"} {
					if p := x.Paused(who); p != nil {
						got += who + " by " + p.By + " "
					}
				}
				if got != want {
					t.Errorf("table %d holds %q, want %q", i, got, want)
				}
			}
		}
		held("")
		must(t, one.Pause(ctx, "ann", false))
		must(t, one.Pause(ctx, "ann", false)) // twice is once
		held("ann by ann ")
		if of(one, "bob", false) != "" || of(two, "ann", false) != "of ann by ann" || of(two, "root", true) != "of ann by ann" {
			t.Errorf("listed %q, %q", of(one, "bob", false), of(two, "ann", false))
		}
		if err := two.Resume(ctx, "ann", "bob", false); !errors.Is(err, ErrNotYours) {
			t.Errorf("another one resumes: %v", err)
		}
		must(t, two.Pause(ctx, "root", true))
		held("ann by root bob by root ")
		if got := of(one, "ann", false); got != "of  by root|of ann by ann" {
			t.Errorf("listed %q", got)
		}
		for _, who := range []string{"ann", "bob"} {
			if err := one.Resume(ctx, "", who, false); !errors.Is(err, ErrNotYours) {
				t.Errorf("%s resumes everybody: %v", who, err)
			}
		}
		must(t, two.Resume(ctx, "ann", "ann", false))
		held("ann by root bob by root ")
		must(t, one.Resume(ctx, "", "root", true))
		held("")
		if err := one.Resume(ctx, "", "root", true); !errors.Is(err, ErrNotYours) {
			t.Errorf("it is over: %v", err)
		}
		must(t, one.Pause(ctx, "ann", false))
		held("ann by ann ")
		must(t, one.Resume(ctx, "ann", "root", true))
		held("")
	})
}

// A broken Store pauses, resumes nothing, and is no start.
type broken struct{ state.Store }

var errBroken = errors.New("broken")

func (broken) Set(context.Context, string, []byte) error { return errBroken }

func (broken) Keys(context.Context, string) ([]string, error) { return nil, errBroken }

// TestTableFails: a pause holds though it cannot be kept, and is said not to be; what cannot be written resumes nothing;
// what cannot be read lets no process start, and a record of a newer version pauses until an administrator ends that.
func TestTableFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := state.NewMemory(state.MemoryOptions{})
		defer s.Close()
		x := table(t, s)
		defer x.Close()
		x.store = broken{s}
		if err := x.Pause(t.Context(), "ann", false); !errors.Is(err, errBroken) || x.Paused("ann") == nil {
			t.Errorf("%v, %v", err, x.Paused("ann"))
		}
		if err := x.Resume(t.Context(), "ann", "ann", false); !errors.Is(err, errBroken) || x.Paused("ann") == nil {
			t.Errorf("%v, %v", err, x.Paused("ann"))
		}
		if _, err := NewTable(t.Context(), broken{s}, nil, slog.New(slog.DiscardHandler)); !errors.Is(err, errBroken) {
			t.Error(err)
		}
		must(t, s.Set(t.Context(), keyOf("bob"), []byte(`{"on":"newer"}`)))
		synctest.Wait()
		if x.Paused("bob") == nil {
			t.Error("a record that cannot be read does not pause")
		}
		x.store = s
		if err := x.Resume(t.Context(), "", "bob", false); !errors.Is(err, ErrNotYours) {
			t.Error(err)
		}
		must(t, x.Resume(t.Context(), "", "root", true))
		if x.Paused("bob") != nil {
			t.Error("it is still paused")
		}
	})
}

// TestTableSays: who refuses says where people resume, and whether waiting is of use.
func TestTableSays(t *testing.T) {
	t.Parallel()
	s := state.NewMemory(state.MemoryOptions{})
	defer s.Close()
	var events []string
	x, err := NewTable(t.Context(), s, func(name string, f map[string]any) {
		events = append(events, name+" "+f["p"].(string)+" "+f["by"].(string))
	}, slog.New(slog.DiscardHandler))
	must(t, err)
	defer x.Close()
	must(t, x.Pause(t.Context(), "ann", false))
	if p := x.Paused("ann"); p.Where != nowhere || p.Closing || time.Since(p.Since) > time.Hour {
		t.Errorf("%+v", p)
	}
	x.Serve("http://h/")
	if p := x.Paused("ann"); p.Where != "on http://h/" || p.Closing {
		t.Errorf("%+v", p)
	}
	if x.Stop(); !x.Paused("ann").Closing {
		t.Error("calls wait for a process that stops")
	}
	must(t, x.Resume(t.Context(), "ann", "root", true))
	if !slices.Equal(events, []string{"page.pause ann ann", "page.resume ann root"}) {
		t.Errorf("%q", events)
	}
}

// TestDir: the file pauses all processes of the user, and so does one that cannot be read.
func TestDir(t *testing.T) {
	t.Parallel()
	d := Dir(t.TempDir())
	if d.Paused("local") != nil || !errors.Is(d.Resume(t.Context(), "local", "local", false), ErrNotYours) {
		t.Error("paused before")
	}
	must(t, d.Pause(t.Context(), "local", false))
	first := d.Of("local", false)
	must(t, d.Pause(t.Context(), "local", false))
	if p := d.Paused("local"); p == nil || p.By != "local" || p.Where != "with `codehand page`" || p.Since.IsZero() || p.Closing {
		t.Errorf("%+v", p)
	}
	if again := d.Of("local", false); !again[0].Since.Equal(first[0].Since) || !again[0].Ends("local", false) {
		t.Errorf("%+v, %+v", first, again)
	}
	info, err := os.Stat(d.path())
	if err != nil || runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		t.Errorf("%v, %v", info, err)
	}
	must(t, d.Resume(t.Context(), "local", "local", false))
	if left, err := filepath.Glob(filepath.Join(string(d), "*")); err != nil || len(left) != 0 || d.Paused("local") != nil {
		t.Errorf("left %v, %v", left, err)
	}
	for _, make := range []func() error{
		func() error { return os.WriteFile(d.path(), []byte("{"), 0o600) },
		func() error { return os.Mkdir(d.path(), 0o700) },
	} {
		must(t, make())
		if p := d.Paused("local"); p == nil || p.By != "" {
			t.Errorf("%+v", p)
		}
		must(t, d.Resume(t.Context(), "local", "local", false))
	}
}

// BenchmarkPaused is what it costs a call that nothing is paused.
func BenchmarkPaused(b *testing.B) {
	s := state.NewMemory(state.MemoryOptions{})
	defer s.Close()
	t, err := NewTable(context.Background(), s, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	defer t.Close()
	dir := Dir(b.TempDir())
	for name, paused := range map[string]func(string) bool{
		"serve": func(who string) bool { return t.Paused(who) != nil },
		"stdio": func(who string) bool { return dir.Paused(who) != nil },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if paused("local") {
					b.Fatal("paused")
				}
			}
		})
	}
}
