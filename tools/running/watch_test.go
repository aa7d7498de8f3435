package running

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"codehand/tools/shell"
	"codehand/tools/tool"
)

// A person saw 3.001933414 where a command had run for three seconds, and nothing at all of its errors.
func TestWatch(t *testing.T) {
	t.Parallel()
	var notes []string
	out, errs := "", ""
	env := tool.Env{Progress: func(done, total float64, note string) {
		notes = append(notes, fmt.Sprintf("%v %v %s", done, total, note))
	}}
	w := newWatch(env, func() (string, string) { return out, errs })
	i := shell.Info{Start: w.told}
	look := func(after time.Duration) string {
		notes = nil
		w.look(i, i.Start.Add(after))
		return strings.Join(notes, "\n")
	}
	for _, step := range []struct {
		after     time.Duration
		out, errs string
		want      string
	}{
		{500 * time.Millisecond, "", "", ""},
		{1003 * time.Millisecond, "", "", "1 0 1 s, no output yet"},
		{1500 * time.Millisecond, "", "", ""},
		{3001933414, "one", "", "3 0 3 s: one"},
		{3500 * time.Millisecond, "one", "", ""},
		{4010 * time.Millisecond, "one", "", "4 0 4 s: one"},
		{4500 * time.Millisecond, "one", "bad \x1b[31mred\x1b[0m", "5 0 5 s: one | stderr: bad red"},
		{5500 * time.Millisecond, "one", "bad red", "6 0 6 s: one | stderr: bad red"},
		{8 * time.Second, "one", "bad red", "8 0 8 s, no output for 4 s: one | stderr: bad red"},
		{90 * time.Second, "", "bad\nred", `90 0 90 s: stderr: bad\x0ared`},
		{91 * time.Second, strings.Repeat("ü", 300), "", "91 0 91 s: " + strings.Repeat("ü", maxLastLine) + "…"},
	} {
		out, errs = step.out, step.errs
		if got := look(step.after); got != step.want {
			t.Errorf("after %v:\ngot  %q\nwant %q", step.after, got, step.want)
		}
	}
	for _, end := range []struct {
		info      shell.Info
		out, errs string
		want      string
	}{
		{shell.Info{State: shell.Completed}, "", "", "42 0 exit 0, 42 s, no output"},
		{shell.Info{State: shell.Failed, Exit: 3, Printed: shell.Printed{Out: 9}}, "a", "b", "42 0 exit 3, 42 s: a | stderr: b"},
		{shell.Info{State: shell.Failed, Signal: "SIGSEGV", Printed: shell.Printed{Out: 1}}, "", "", "42 0 signal SIGSEGV, 42 s"},
		{shell.Info{State: shell.TimedOut}, "", "", "42 0 timed out, 42 s, no output"},
		{shell.Info{State: shell.Killed}, "", "", "42 0 killed, 42 s, no output"},
		{shell.Info{State: shell.Overflow, Printed: shell.Printed{Err: 1}}, "", "e", "42 0 too much output, 42 s: stderr: e"},
	} {
		notes, out, errs = nil, end.out, end.errs
		end.info.Start = i.Start
		end.info.End = i.Start.Add(41901 * time.Millisecond)
		if w.end(end.info); len(notes) != 1 || notes[0] != end.want {
			t.Errorf("at the end: %q, want %q", notes, end.want)
		}
	}
}
