package pipeline

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"codehand/filestate"
	"codehand/filestate/leaktest"
	"codehand/server/clients"
	"codehand/tools/hooks"
	"codehand/tools/permission"
	"codehand/tools/tool"
)

// What hooks said came after the cut, so a result was longer than its client takes: the client cut it itself, and the path
// of the whole was lost. Whatever hooks say, each result is within its profile, with the path first and with their words.
func TestHooksStayWithinProfiles(t *testing.T) {
	leaktest.Sequential(t)
	t.Parallel()
	words := map[string]string{
		"a word":   "remember the milk",
		"a lot":    "HOOK " + strings.Repeat("milk ", 3_000),
		"wide":     "HOOK " + strings.Repeat("汉", 10_000),
		"in lines": "HOOK" + strings.Repeat("\n.", 4_000),
	}
	for _, name := range []string{"claude-code", "codex", "copilot-cli", "opencode", "cline", "default"} { // each form once
		profile, _ := clients.Named(name)
		for kind, said := range words {
			for what, o := range map[string]hooks.Outcome{
				"context": {Context: said}, "objection": {Opinions: []permission.Verdict{permission.Deny}, Reason: said},
				"output": {Output: &said}, "all": {Context: said, Output: &said, Opinions: []permission.Verdict{permission.Deny}, Reason: said},
			} {
				for _, size := range []int{0, profile.Runes - 40, 300_000} {
					for _, c := range []struct{ refused, pages bool }{{false, false}, {true, false}, {false, true}} {
						if c.pages && size > profile.Runes {
							continue // it pages by itself
						}
						t.Run(fmt.Sprint(name, "/", kind, "/", what, "/", size, "/", c), func(t *testing.T) {
							t.Parallel()
							s := newState(t, "s")
							s.Client.MaxRunes, s.Client.MaxBytes, s.Client.MaxLines, s.Client.MaxJSON = profile.Runes, profile.Bytes, profile.Lines, profile.JSON
							p := newCorridor()
							p.Hooks = &fakeHooks{after: func(context.Context, hooks.Event) (hooks.Outcome, error) { return o, nil }}
							text := strings.Repeat("0123456789 ", size/11)
							x := fixture("x", reads, func(context.Context, tool.Env) (tool.Result, error) {
								if c.refused {
									return tool.Result{}, &tool.Refusal{Code: tool.StringNotFound, Text: text}
								}
								return tool.Result{Text: text}, nil
							})
							if c.pages {
								x.Spec.MaxRunes = tool.Unbounded
							}
							got, err := p.run(t, s, x, "", Arrival{})
							sent, kept := got.Text, got.Meta.Kept
							if c.refused {
								r, _ := refusal(err)
								sent, kept = r.Error(), r.Meta.Kept
							}
							runes, bytes, lines := utf8.RuneCountInString(sent), len(sent), strings.Count(strings.TrimSuffix(sent, "\n"), "\n")+1
							if runes > min(profile.Runes, tool.DefaultMaxRunes) || profile.Bytes > 0 && bytes > profile.Bytes || profile.Lines > 0 && lines > profile.Lines || profile.JSON > 0 && lengthInJSON(sent) > profile.JSON {
								t.Errorf("%d characters, %d bytes, %d lines; the profile allows %d, %d, %d", runes, bytes, lines, profile.Runes, profile.Bytes, profile.Lines)
							}
							first, _, _ := strings.Cut(sent, "\n")
							if kept != nil && (!strings.Contains(first, "Full output: "+kept.Path+" ") || kept.Shown != utf8.RuneCountInString(strings.TrimPrefix(sent, "STRING_NOT_FOUND: "))) {
								t.Errorf("%+v of %d, first line %.200q", kept, runes, first)
							}
							if size == 300_000 && what != "output" && what != "all" {
								if whole, err := os.ReadFile(kept.Path); err != nil || string(whole) != text {
									t.Errorf("kept are %d bytes (%v)", len(whole), err)
								}
							}
							if !c.pages && !strings.Contains(sent, said[:4]) {
								t.Errorf("nothing of what the hook said is in %.300q", sent)
							}
							if !c.pages && len(said) > 10_000 && profile.Runes < 10_000 && !strings.Contains(sent, "[... truncated ") {
								t.Errorf("nobody says that words are missing: %.300q", sent)
							}
						})
					}
				}
			}
		}
	}
}

// The change of a hook that is cut was not seen, whatever cut it.
func TestHookChangeWithoutRoom(t *testing.T) {
	t.Parallel()
	for size, want := range map[int]bool{10: true, 8_000: false} {
		p, s := newCorridor(), newState(t, "s")
		s.Client.MaxRunes = 7_500
		s.Files = filestate.New(filestate.Options{Dir: t.TempDir()})
		path := filepath.Join(s.Space.Roots()[0], "a.txt")
		if err := os.WriteFile(path, []byte("old\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		see(t, s, path)
		p.Hooks = &fakeHooks{after: func(context.Context, hooks.Event) (hooks.Outcome, error) {
			return hooks.Outcome{}, os.WriteFile(path, []byte(strings.Repeat("a line\n", size/7)), 0o600)
		}}
		edit := fixture("edit", writes, func(ctx context.Context, e tool.Env) (tool.Result, error) {
			return tool.Result{Text: strings.Repeat("x", 7_000), Meta: tool.Meta{Files: []tool.FileChange{{Path: path, Op: "change"}}}},
				write(ctx, e.State, path, "one\n")
		})
		r, err := p.run(t, s, edit, "", Arrival{})
		if err != nil || utf8.RuneCountInString(r.Text) > 7_500 || !strings.Contains(r.Text, "[a hook changed "+path) {
			t.Errorf("%d characters, %v: %.300q", utf8.RuneCountInString(r.Text), err, r.Text)
		}
		err = write(t.Context(), s, path, "next\n")
		if _, stale := errors.AsType[*filestate.StaleError](err); stale == want {
			t.Errorf("%d bytes: the next edit: %v", size, err)
		}
	}
}

// A formatter's change was shown with the escape sequences that are in the file.
func TestHookChangeIsShownSafely(t *testing.T) {
	t.Parallel()
	p, s := newCorridor(), newState(t, "s")
	s.Files = filestate.New(filestate.Options{Dir: t.TempDir()})
	path := filepath.Join(s.Space.Roots()[0], "a.txt")
	if err := os.WriteFile(path, []byte("old\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	see(t, s, path)
	p.Hooks = &fakeHooks{after: func(context.Context, hooks.Event) (hooks.Outcome, error) {
		return hooks.Outcome{}, os.WriteFile(path, []byte("\x1b]0;title\a\u202eevil\n"), 0o600)
	}}
	edit := fixture("edit", writes, func(ctx context.Context, e tool.Env) (tool.Result, error) {
		return tool.Result{Text: "edited", Meta: tool.Meta{Files: []tool.FileChange{{Path: path, Op: "change"}}}}, write(ctx, e.State, path, "one\n")
	})
	r, err := p.run(t, s, edit, "", Arrival{})
	if err != nil || strings.ContainsAny(r.Text, "\x1b\a\u202e") || !strings.Contains(r.Text, `+\x1b]0;title\x07\u202eevil`) {
		t.Errorf("%v: %q", err, r.Text)
	}
}

// TestRefusalsBeforeTheRun: what was refused before it ran was not bounded, so the reason of a hook or an input that is
// repeated could be longer than the client takes, and hold escape sequences.
func TestRefusalsBeforeTheRun(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("汉\x1b[31m\u202e ", 5_000)
	for name, profile := range map[string]string{"small": "cline", "bytes": "copilot-cli", "lines": "opencode"} {
		profile, _ := clients.Named(profile)
		s := newState(t, "s")
		s.Client.MaxRunes, s.Client.MaxBytes, s.Client.MaxLines, s.Client.MaxJSON = profile.Runes, profile.Bytes, profile.Lines, profile.JSON
		p := newCorridor()
		p.Hooks = &fakeHooks{before: func(context.Context, hooks.Event) (hooks.Outcome, error) {
			return hooks.Outcome{Opinions: []permission.Verdict{permission.Deny}, Reason: strings.Repeat(long+"\n.", 5), Origin: "config.toml:3:1"}, nil
		}}
		for what, x := range map[string]tool.Tool{"whole": fixture("x", reads, nil), "pages": fixture("x", reads, nil)} {
			if what == "pages" {
				x.Spec.MaxRunes = tool.Unbounded
			}
			_, err := p.run(t, s, x, "", Arrival{})
			wantRefusal(t, err, tool.HookBlocked, "")
			if r := p.last(); r.Origin != "config.toml:3:1" || r.By != byHook {
				t.Errorf("the record has %q by %q", r.Origin, r.By)
			}
			checkSize(t, name+" "+what, err.Error(), profile)
		}
		_, err := p.run(t, s, fixture("x", reads, nil), "", Arrival{Admission: Admission{Refused: &tool.Refusal{Code: tool.ScopeMissing, Text: long}}})
		wantRefusal(t, err, tool.ScopeMissing, "")
		checkSize(t, name+" server", err.Error(), profile)
	}
}

func checkSize(t *testing.T, name, text string, p clients.Profile) {
	t.Helper()
	runes, lines := utf8.RuneCountInString(text), strings.Count(text, "\n")+1
	if runes > p.Runes || p.Bytes > 0 && len(text) > p.Bytes || p.Lines > 0 && lines > p.Lines || strings.ContainsAny(text, "\x1b\u202e") {
		t.Errorf("%s: %d characters, %d bytes, %d lines: %.200q", name, runes, len(text), lines, text)
	}
}
