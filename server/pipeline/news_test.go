package pipeline

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"codehand/tools/hooks"
	"codehand/tools/tool"
)

// The end of a job is told under any result, within what its client takes and without cutting away what hooks said; what
// has no room waits, and is not taken.
func TestNews(t *testing.T) {
	t.Parallel()
	const line = "[job job_aaaaaaaaaaaa finished: exit 0, 42 s, 310 lines]"
	for _, c := range []struct {
		name    string
		text    string
		hook    string
		refused bool
		pages   bool
		lines   int
		want    string // what the result ends with
		taken   int
	}{
		{name: "a result", text: "text", lines: 2, want: "text\n" + line + "\n" + line, taken: 2},
		{name: "a refusal", text: "text", refused: true, lines: 1, want: "STRING_NOT_FOUND: text\n" + line, taken: 1},
		{name: "nothing to tell", text: "text", want: "text"},
		{name: "behind hooks", text: "text", hook: "milk", lines: 1, want: "text\nmilk\n" + line, taken: 1},
		{name: "a long result gives way", text: strings.Repeat("0123456789\n", 300), lines: 3, want: line + "\n" + line + "\n" + line, taken: 3},
		{name: "a long page does not", text: strings.Repeat("0123456789", 95), pages: true, lines: 2, want: "789", taken: 0},
		{name: "hooks are not cut away", text: strings.Repeat("0123456789\n", 300), hook: strings.Repeat("milk ", 90), lines: 9, want: "", taken: -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newState(t, "s")
			s.Client.MaxRunes = 1000
			p := newCorridor()
			if c.hook != "" {
				p.Hooks = &fakeHooks{after: func(context.Context, hooks.Event) (hooks.Outcome, error) {
					return hooks.Outcome{Context: c.hook}, nil
				}}
			}
			spec := tool.Spec{Name: "x", Title: "x", Description: "A fixture.", Traits: reads}
			if c.pages {
				spec.MaxRunes = tool.Unbounded
			}
			x := made(spec, func(context.Context, tool.Env) (tool.Result, error) {
				if c.refused {
					return tool.Result{}, &tool.Refusal{Code: tool.StringNotFound, Text: c.text}
				}
				return tool.Result{Text: c.text, Meta: tool.Meta{Job: &tool.Job{ID: "job_own"}}}, nil
			})
			taken, about := 0, ""
			news := func(_ context.Context, a About) ([]string, func(int) []string) {
				about = a.Job
				lines := make([]string, c.lines)
				for i := range lines {
					lines[i] = line
				}
				return lines, func(n int) []string { taken = n; return lines[:n] }
			}
			got, err := p.run(t, s, x, "", Arrival{News: news})
			sent := got.Text
			if c.refused {
				sent = err.Error()
			}
			if n := utf8.RuneCountInString(sent); n > 1000 || !strings.HasSuffix(sent, c.want) {
				t.Errorf("%d characters, which end with %q", n, sent[max(0, len(sent)-300):])
			}
			if c.taken >= 0 && taken != c.taken || strings.Count(sent, line) != taken || !strings.Contains(sent, strings.TrimSpace(c.hook)) {
				t.Errorf("%d taken, %d shown: %s", taken, strings.Count(sent, line), sent)
			}
			if !c.refused && about != "job_own" {
				t.Errorf("the call is about %q", about)
			}
		})
	}
}

// A call whose client has left gets no news, nor does an inner call.
func TestNewsUnheard(t *testing.T) {
	t.Parallel()
	asked := 0
	news := func(context.Context, About) ([]string, func(int) []string) {
		asked++
		return []string{"news"}, func(int) []string { return []string{"news"} }
	}
	ctx, cancel := context.WithCancel(t.Context())
	for i, c := range []struct {
		a    Arrival
		run  func(context.Context, tool.Env) (tool.Result, error)
		want string
	}{
		{Arrival{News: news, Lost: func() bool { return true }}, done, "done"},
		{Arrival{News: news, inside: &inside{}}, done, "done"},
		{Arrival{}, done, "done"},
		{Arrival{News: news}, done, "done\nnews"},
		{Arrival{News: news}, func(context.Context, tool.Env) (tool.Result, error) { cancel(); return tool.Result{Text: "done"}, nil }, "done"},
	} {
		s := newState(t, fmt.Sprint(i))
		p := newCorridor()
		got, err := p.Arrive(s).Call(ctx, fixture("x", reads, c.run), nil, c.a)
		if err != nil || got.Text != c.want {
			t.Errorf("%d: %q, %v; want %q", i, got.Text, err, c.want)
		}
	}
	if asked != 1 {
		t.Errorf("asked %d times, want once", asked)
	}
}
