package pipeline

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"codehand/filestate"
	"codehand/filestate/leaktest"
	"codehand/server/clients"
	"codehand/tools/hooks"
	"codehand/tools/tool"
)

// TestEveryProfile: 1 MB of three kinds of text arrives within characters, bytes and lines of each client, with the path
// of the whole on its first line; a refusal counts with its code. The whole is kept byte for byte, for its owner alone.
func TestEveryProfile(t *testing.T) {
	leaktest.Sequential(t)
	t.Parallel()
	texts := map[string]string{
		"lines":    numbered(1 << 20),
		"one line": strings.Repeat("x", 1<<20),
		"wide":     strings.Repeat(strings.Repeat("汉", 30)+"\n", (1<<20)/91),
		"short":    strings.Repeat("\n", 1<<20),
	}
	for _, name := range clients.Names() {
		profile, _ := clients.Named(name)
		for kind, text := range texts {
			for _, refused := range []bool{false, true} {
				t.Run(fmt.Sprint(name, "/", kind, "/", refused), func(t *testing.T) {
					t.Parallel()
					s := newState(t, "s")
					s.Client.MaxRunes, s.Client.MaxBytes, s.Client.MaxLines, s.Client.MaxJSON = profile.Runes, profile.Bytes, profile.Lines, profile.JSON
					x := fixture("x", reads, func(context.Context, tool.Env) (tool.Result, error) {
						if refused {
							return tool.Result{}, &tool.Refusal{Code: tool.StringNotFound, Text: text}
						}
						return tool.Result{Text: text}, nil
					})
					p := newCorridor()
					got, err := p.Arrive(s).Call(t.Context(), x, nil, Arrival{})
					sent, kept := got.Text, got.Meta.Kept
					if refused {
						r, _ := refusal(err)
						sent, kept = r.Error(), r.Meta.Kept
					}
					first, _, _ := strings.Cut(sent, "\n")
					if kept == nil || kept.ID == "" || !strings.Contains(first, "Full output: "+kept.Path+" ") {
						t.Fatalf("kept %+v, first line %q", kept, first)
					}
					runes, size, lines := utf8.RuneCountInString(sent), len(sent), strings.Count(strings.TrimSuffix(sent, "\n"), "\n")+1
					if runes > min(profile.Runes, tool.DefaultMaxRunes) || profile.Bytes > 0 && size > profile.Bytes || profile.Lines > 0 && lines > profile.Lines || profile.JSON > 0 && lengthInJSON(sent) > profile.JSON {
						t.Errorf("%d characters, %d bytes, %d lines; the profile allows %d, %d, %d", runes, size, lines, profile.Runes, profile.Bytes, profile.Lines)
					}
					if whole, err := os.ReadFile(kept.Path); err != nil || string(whole) != text || kept.Bytes != int64(len(text)) {
						t.Errorf("kept are %d bytes of %d (%v)", len(whole), len(text), err)
					}
					if info, err := os.Stat(kept.Path); err != nil || info.Mode() != 0o600 {
						t.Errorf("%s: %v (%v)", kept.Path, info.Mode(), err)
					}
				})
			}
		}
	}
}

// numbered is a text of at least n bytes.
func numbered(n int) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "line %d of a long output\n", i)
	}
	return b.String()
}

// TestGroupOfCalls: ten calls at once show at most 200,000 characters together, and the sum counts what hooks add.
func TestGroupOfCalls(t *testing.T) {
	t.Parallel()
	p := newCorridor()
	s := newState(t, "s")
	text := numbered(40_000)
	var begun sync.WaitGroup
	begun.Add(10)
	x := fixture("x", reads, func(context.Context, tool.Env) (tool.Result, error) {
		begun.Done()
		begun.Wait()
		return tool.Result{Text: text}, nil
	})
	var all [10]tool.Result
	var wg sync.WaitGroup
	for i := range all {
		v := p.Arrive(s)
		wg.Go(func() {
			var err error
			if all[i], err = v.Call(t.Context(), x, nil, Arrival{}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	total, whole := 0, 0
	for _, r := range all {
		total += utf8.RuneCountInString(r.Text)
		if r.Meta.Kept == nil {
			whole++
			continue
		}
		if kept, err := os.ReadFile(r.Meta.Kept.Path); err != nil || string(kept) != text {
			t.Errorf("%s holds %d bytes (%v)", r.Meta.Kept.Path, len(kept), err)
		}
		if first, _, _ := strings.Cut(r.Text, "\n"); !strings.Contains(first, r.Meta.Kept.Path) || r.Meta.Kept.Shown != utf8.RuneCountInString(r.Text) {
			t.Errorf("first line %q, %+v", first, r.Meta.Kept)
		}
	}
	if total > 200_000 || whole != 4 {
		t.Errorf("%d characters, %d whole", total, whole)
	}
}

// TestGroupAndPages: what a tool shows that pages by itself is never kept, but it counts; if it has to be cut, it names
// the file that it shows, and the session has not seen that file.
func TestGroupAndPages(t *testing.T) {
	t.Parallel()
	p := newCorridor()
	s := newState(t, "s")
	path := filepath.Join(t.TempDir(), "a.txt")
	spec := tool.Spec{Name: "page", Title: "page", Description: "A fixture.", Traits: reads, MaxRunes: tool.Unbounded}
	page := made(spec, func(context.Context, tool.Env) (tool.Result, error) {
		return tool.Result{Text: numbered(60_000), Shows: []string{path}, Meta: tool.Meta{Version: "abc"}}, nil
	})
	for i := range 4 {
		got, err := p.Arrive(s).Call(t.Context(), page, nil, Arrival{})
		if err != nil {
			t.Fatal(err)
		}
		if i < 2 {
			if len(got.Text) < 60_000 || got.Meta.Version == "" {
				t.Errorf("call %d was cut to %d", i, len(got.Text))
			}
			continue
		}
		if !strings.HasPrefix(got.Text, "Output too large (58.6 KB, ") || !strings.Contains(got.Text, "Full output: "+path+" Read it with") || len(got.Text) > 2_500 {
			t.Errorf("call %d: %d characters, %.200q", i, len(got.Text), got.Text)
		}
		if got.Meta.Kept != nil || got.Meta.Version != "" {
			t.Errorf("%+v", got.Meta)
		}
	}
	if entries, err := os.ReadDir(s.Results.Dir()); err != nil || len(entries) > 0 {
		t.Errorf("kept: %v (%v)", entries, err)
	}
}

// TestBriefRefusals: a refusal that shows content shows all of it, or says in its brief form that it does not, and then the
// session has not seen it.
func TestBriefRefusals(t *testing.T) {
	t.Parallel()
	const brief = "The change is too long to show here."
	long := numbered(4_000)
	for _, c := range []struct {
		name  string
		limit int    // of the client, in runes
		first string // is shown before in the same turn
		said  hooks.Outcome
		want  string
		seen  bool
	}{
		{"fits", 0, "", hooks.Outcome{}, long, true},
		{"too long for the client", 3_000, "", hooks.Outcome{}, brief, false},
		{"no room in the turn", 0, numbered(178_000), hooks.Outcome{}, brief, false},
		{"gives way to a hook", 5_000, "", hooks.Outcome{Context: strings.Repeat("x", 2_000)}, brief + "\n" + strings.Repeat("x", 2_000), false},
		{"beside a hook", 9_000, "", hooks.Outcome{Context: "and more"}, strings.TrimSuffix(long, "\n") + "\nand more", true},
		{"a hook writes another", 3_000, "", hooks.Outcome{Output: new("hidden")}, "hidden", false},
		{"a hook writes a long one", 3_000, "", hooks.Outcome{Output: &long}, "Output too large", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p, s := newCorridor(), newState(t, "s")
			s.Files = filestate.New(filestate.Options{Dir: t.TempDir()})
			s.Client.MaxRunes = c.limit
			path := filepath.Join(s.Space.Roots()[0], "a.txt")
			if err := os.WriteFile(path, []byte("foreign\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			if c.first != "" {
				first := made(tool.Spec{Name: "page", Title: "page", Description: "A fixture.", Traits: reads, MaxRunes: tool.Unbounded}, func(context.Context, tool.Env) (tool.Result, error) {
					return tool.Result{Text: c.first}, nil
				})
				if _, err := p.unanswered(t, s, first, "", Arrival{}); err != nil {
					t.Fatal(err)
				}
			}
			p.Hooks = &fakeHooks{after: func(context.Context, hooks.Event) (hooks.Outcome, error) { return c.said, nil }}
			_, err := p.run(t, s, fixture("edit", reads, func(context.Context, tool.Env) (tool.Result, error) {
				see(t, s, path)
				return tool.Result{}, &tool.Refusal{Code: tool.FileChanged, Text: long, Brief: brief, Shows: []string{path}, Meta: tool.Meta{Version: "abc"}}
			}), "", Arrival{})
			r := wantRefusal(t, err, tool.FileChanged, "")
			if !strings.HasPrefix(r.Text, c.want) || len(r.Text) > len(c.want) && c.want != "Output too large" {
				t.Errorf("got %.300q", r.Text)
			}
			if (r.Meta.Version != "") != c.seen {
				t.Errorf("version %q", r.Meta.Version)
			}
			err = write(t.Context(), s, path, "new\n")
			if c.seen && err != nil || !c.seen && !errors.Is(err, filestate.ErrNotRead) {
				t.Errorf("a write after it: %v", err)
			}
		})
	}
}

// TestKeptByTheTool: a text whose whole the tool has kept is not kept again, and the answer says where it is.
func TestKeptByTheTool(t *testing.T) {
	t.Parallel()
	p := newCorridor()
	s := newState(t, "s")
	s.Client.MaxRunes = 1_000
	x := fixture("x", reads, func(context.Context, tool.Env) (tool.Result, error) {
		return tool.Result{Text: numbered(5_000), Meta: tool.Meta{Kept: &tool.Kept{ID: "id", Path: "/spool", Bytes: 9e6, Lines: 7}}}, nil
	})
	got, err := p.Arrive(s).Call(t.Context(), x, nil, Arrival{})
	if err != nil {
		t.Fatal(err)
	}
	want := tool.Kept{ID: "id", Path: "/spool", Bytes: 9e6, Lines: 7, Shown: utf8.RuneCountInString(got.Text)}
	if *got.Meta.Kept != want || !strings.HasPrefix(got.Text, "Output too large (8.6 MB, 7 lines). Full output: /spool Read") || len(got.Text) > 1_000 {
		t.Errorf("%+v: %.200q", got.Meta.Kept, got.Text)
	}
	if entries, err := os.ReadDir(s.Results.Dir()); err != nil || len(entries) > 0 {
		t.Errorf("kept: %v (%v)", entries, err)
	}
}

// lengthInJSON is what JSON.stringify(text).length is in JavaScript, without the quotes.
func lengthInJSON(text string) int {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(text) // into memory
	return len(utf16.Encode([]rune(b.String()))) - len("\"\"\n")
}
