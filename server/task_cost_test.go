package server

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"codehand/server/replaytest"
)

// taskTokens is what a task of an agent may cost: 34 calls and their answers, at four characters a token. The goal of the
// design is 23,000. It cost 26,980 when answers repeated what the model had sent, 16,962 when each line that was read
// had its number, and 15,951 when all that a test run says of success was shown.
const taskTokens = 14_600

// coreTokens is what the list may cost that most clients are shown: of each tool what they hand to their model, which is
// its name, description and schema.
const coreTokens = 1_700

func listTokens(t *testing.T, f *fixture) int {
	t.Helper()
	raw, _, _ := replaytest.ToldTools(t, f.Wire)
	var list struct {
		Tools []struct {
			Name, Description string
			InputSchema       json.RawMessage
		}
	}
	must(t, json.Unmarshal(raw, &list))
	characters := 0
	for _, x := range list.Tools {
		characters += len(x.Name) + len(x.Description) + len(x.InputSchema)
	}
	if len(list.Tools) < 10 {
		t.Fatalf("%d tools are listed", len(list.Tools))
	}
	return characters / 4
}

// TestTaskCost replays a task and holds its cost. What may change the cost is visible in the file's difference.
func TestTaskCost(t *testing.T) {
	t.Parallel()
	path := filepath.Join(replaytest.Root(t), "testdata", "bench", "task", "task.txtar")
	file, err := replaytest.ReadScript(path)
	if err != nil {
		t.Fatal(err)
	}
	f := start(t, setup{settings: file.Config, client: file.Client, modern: file.Modern})
	replaytest.Play(t, file, f.Wire, f.work, f.server.engines.Dir, f.server.cfg.Home, *update)
	if file, err = replaytest.ReadScript(path); err != nil { // with the answers, if they were just written
		t.Fatal(err)
	}
	calls, characters := file.Cost()
	list := listTokens(t, f)
	t.Logf("%d calls, %d tokens; the list %d more", calls, characters/4, list)
	if list > coreTokens {
		t.Errorf("the list costs %d tokens, want at most %d", list, coreTokens)
	}
	if calls != 34 || characters/4 > taskTokens {
		t.Errorf("%d calls cost %d tokens, want 34 and at most %d", calls, characters/4, taskTokens)
	}
}
