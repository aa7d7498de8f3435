package blackbox

import (
	"path/filepath"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
)

// TestSessionsBinary replays session files against the built program, over its standard input and output.
func TestSessionsBinary(t *testing.T) {
	path := replaytest.Program(t)
	for _, script := range leaktest.Some(3, replaytest.Again(t)) {
		t.Run(replaytest.ScriptName(script), func(t *testing.T) {
			t.Parallel()
			file, err := replaytest.ReadScript(script)
			if err != nil {
				t.Fatal(err)
			}
			if !file.Written {
				t.Skip("the file has no answers yet: TestSessions writes them")
			}
			if file.Fixed {
				return // the program has all tools
			}
			work := leaktest.Dir(t)
			settings := file.Settings(t)
			settings["console.approvals"] = "off" // refusals name no page, which is not there in the house's own replays
			p := replaytest.Spawn(t, path, work, file.Client, file.Modern, settings)
			replaytest.Play(t, file, p.Wire, work, p.State, filepath.Dir(p.State), false)
		})
	}
}
