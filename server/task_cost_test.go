package server

import (
	"path/filepath"
	"testing"

	"codehand/server/replaytest"
)

// taskTokens is what a task of an agent may cost: 34 calls and their answers, at four characters a token. The goal of the
// design is 23,000. It cost 26,980 when answers repeated what the model had sent.
const taskTokens = 17_500

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
	t.Logf("%d calls, %d tokens", calls, characters/4)
	if calls != 34 || characters/4 > taskTokens {
		t.Errorf("%d calls cost %d tokens, want 34 and at most %d", calls, characters/4, taskTokens)
	}
}
