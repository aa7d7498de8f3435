package tools

import (
	"encoding/json"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"codehand/filestate"
	"codehand/filestate/fault"
	"codehand/filestate/journal"
	"codehand/tools/settings"
	"codehand/tools/workspace"
)

// A call with edits that takes its time says at each stage what it is at. Here each stage waits until that was told.
func TestEditsTellWhatTheyDo(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ args, opening, trying, writing string }{
		"edit_file":  {`{"file_path":"f","old_string":"one","new_string":"two"}`, "", "Validating edit", "Applying edit"},
		"multi_edit": {`{"file_path":"f","edits":[{"old_string":"one","new_string":"two"}]}`, "Planning 1 edit...", "Validating edit 1/1", "Applying all edits"},
		"apply_patch": {`{"patch":"*** Begin Patch\n*** Update File: f\n@@\n-one\n+two\n*** End Patch"}`,
			"", "Checking f", "Applying the patch"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			told := make(chan string, 9)
			wait := func(want string) func() {
				return sync.OnceFunc(func() {
					if want == "" {
						return
					}
					select {
					case got := <-told:
						if got != want {
							t.Errorf("told %q, want %q", got, want)
						}
					case <-time.After(time.Minute):
						t.Errorf("%q is not told", want)
					}
				})
			}
			opening, trying, writing := wait(c.opening), wait(c.trying), wait(c.writing)
			kept, err := journal.Open(filepath.Join(t.TempDir(), "journal"), journal.Options{Fast: true, Check: func(at fault.Step) error {
				if at == fault.Note {
					writing()
				}
				return nil
			}})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = kept.Close() })
			r.Options.Journal = kept
			r.Files = filestate.New(r.Options)
			r.write("f", "one\n")
			r.ok("read_file", `{"file_path":"f"}`)
			r.Settings = settings.New(func(string, []byte) (bool, error) { trying(); return false, nil })
			r.Space = r.Space.Guarded(func(workspace.Opened) error { opening(); return nil })
			call, err := r.tool(name).Bind(r.State, json.RawMessage(c.args))
			if err != nil {
				t.Fatal(err)
			}
			env := r.Env(call)
			env.Progress = func(_, _ float64, note string) { told <- note }
			if _, err := call.Run(t.Context(), env); err != nil {
				t.Error(err)
			}
			r.holds("f", "two\n")
		})
	}
}
