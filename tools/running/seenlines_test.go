package running

import (
	"errors"
	"strings"
	"testing"

	"codehand/filestate"
	"codehand/filestate/journal"
	"codehand/tools/shell"
	"codehand/tools/tool"
	"codehand/tools/tooltest"
	"codehand/tools/workspace"
)

// The disk is asked what the file holds: a cat that printed something else, or a file that changed since, shows nothing. Nor
// does a command whose text the model does not get.
func TestCommandViewsOfOtherBytes(t *testing.T) {
	t.Parallel()
	printed := shell.Info{Command: "cat f", State: shell.Completed}
	for name, c := range map[string]struct {
		info            shell.Info
		head, dir, text string
		silent, counts  bool
	}{
		"as it is":               {info: printed, head: "one\n", dir: "DIR", text: "one", counts: true},
		"nobody got it":          {info: printed, head: "one\n", dir: "DIR", text: "one", silent: true},
		"other bytes":            {info: printed, head: "two\n", dir: "DIR", text: "two"},
		"more":                   {info: printed, head: "one\none\n", dir: "DIR", text: "one\none"},
		"shown in other words":   {info: printed, head: "one\n", dir: "DIR", text: "on"},
		"nobody knows where":     {info: printed, head: "one\n", text: "one"},
		"it took too long":       {info: shell.Info{Command: "cat f", State: shell.TimedOut}, head: "one\n", dir: "DIR", text: "one"},
		"an error beside":        {info: shell.Info{Command: "cat f", State: shell.Completed, Printed: shell.Printed{Err: 1}}, head: "one\n", dir: "DIR", text: "one"},
		"another directory":      {info: printed, head: "one\n", dir: "/", text: "one"},
		"a directory":            {info: shell.Info{Command: "cat .", State: shell.Completed}, head: "one\n", dir: "DIR", text: "one"},
		"longer than the file":   {info: shell.Info{Command: "tail f", State: shell.Completed}, head: "0\none\n", dir: "DIR", text: "0\none"},
		"behind the last line":   {info: shell.Info{Command: "sed -n 3,4p f", State: shell.Completed}, head: "one\n", dir: "DIR", text: "one"},
		"another line than that": {info: shell.Info{Command: "sed -n 2,4p f", State: shell.Completed}, head: "one\n", dir: "DIR", text: "one"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := tooltest.New(t, nil)
			r.Write("f", "one\n")
			o := Outcome{Env: r.Env(tool.Call{})}
			saw := o.sight(shell.Chunk{Info: c.info, Head: c.head}, strings.ReplaceAll(c.dir, "DIR", r.Dir), c.text)
			if saw != nil && !c.silent {
				saw(t.Context())
			}
			f, err := r.Open("f", workspace.Write)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			_, err = r.Files.Update(t.Context(), journal.By{}, filestate.Edit{File: f, Whole: true, Change: func([]byte) ([]byte, error) { return []byte("new\n"), nil }})
			if counts := !errors.Is(err, filestate.ErrNotRead); counts != c.counts || counts && err != nil {
				t.Errorf("whether all of the file has been seen: %v", err)
			}
		})
	}
}
