package blackbox

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"codehand/tools"
)

// A foreignCall is an entry of testdata/clients/calls.json, as far as it is looked at here.
type foreignCall struct {
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
	Either    bool            `json:"either"` // a result or a refusal: only that it is answered counts
}

// foreignCalls is the file of the calls that foreign clients make: those of testdata/clients/calls.json, and the example of
// every tool that has none there.
func foreignCalls(t *testing.T) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "..", "testdata", "clients", "calls.json"))
	must(t, err)
	var calls []json.RawMessage
	var known []foreignCall
	must(t, json.Unmarshal(raw, &calls))
	must(t, json.Unmarshal(raw, &known))
	for _, x := range tools.All(tools.Engines{}) {
		called := func(c foreignCall) bool { return c.Tool == x.Spec.Name }
		if slices.ContainsFunc(known, called) {
			continue
		}
		call, err := json.Marshal(foreignCall{Tool: x.Spec.Name, Arguments: json.RawMessage(x.Spec.Example), Either: true})
		must(t, err)
		calls = append(calls, call)
	}
	raw, err = json.Marshal(calls)
	must(t, err)
	path := filepath.Join(t.TempDir(), "calls.json")
	must(t, os.WriteFile(path, raw, 0o644))
	return path
}
