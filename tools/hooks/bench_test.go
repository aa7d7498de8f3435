package hooks

import (
	"testing"
)

// BenchmarkBefore is what one hook costs that does nothing, with the start of its program.
func BenchmarkBefore(b *testing.B) {
	for _, bm := range []struct {
		name  string
		hooks []Hook
	}{
		{"none", nil},
		{"other tool", []Hook{{Event: PreToolUse, Matcher: "Edit", Command: []string{"true"}}}},
		{"true", []Hook{{Event: PreToolUse, Command: []string{"true"}}}},
		{"four at once", []Hook{
			{Event: PreToolUse, Command: []string{"true", "1"}}, {Event: PreToolUse, Command: []string{"true", "2"}},
			{Event: PreToolUse, Command: []string{"true", "3"}}, {Event: PreToolUse, Command: []string{"true", "4"}},
		}},
	} {
		b.Run(bm.name, func(b *testing.B) {
			r, err := New(Options{Hooks: bm.hooks})
			if err != nil {
				b.Fatal(err)
			}
			defer r.Close()
			e := Event{Place: Place{Roots: []string{b.TempDir()}}, Tool: "run_shell", Aliases: []string{"Bash"}, Input: []byte(`{"command":"ls"}`)}
			for b.Loop() {
				if o, err := r.Before(b.Context(), e); err != nil || o.Opinions != nil {
					b.Fatalf("%+v, %v", o, err)
				}
			}
		})
	}
}
