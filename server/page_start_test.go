package server

import (
	"strings"
	"testing"

	"codehand/server/live"
)

// TestNamesPageThatAnswers: a refusal on stdio names the command that opens a page where a person could answer, and only
// there: not where nothing serves such a page, nor where commands could answer in that person's place.
func TestNamesPageThatAnswers(t *testing.T) {
	t.Parallel()
	if !live.Available() {
		t.Skip("codehand page reaches no process on this system")
	}
	refused := func(f *fixture) string {
		t.Helper()
		text := f.Must(t, "write_file", `{"file_path":".envrc","content":"x\n"}`)
		if !strings.Contains(text, "ASK_UNAVAILABLE") {
			t.Error(text)
		}
		return text
	}
	const names = "While `codehand page` runs, the user is asked on its page"
	if text := refused(start(t, setup{onPage: true})); !strings.Contains(text, names) {
		t.Errorf("where it answers: %s", text)
	}
	if text := refused(start(t, setup{})); strings.Contains(text, "codehand page") {
		t.Errorf("where nothing serves it: %s", text)
	}
	off := map[string]string{"console.approvals": "off"}
	if text := refused(start(t, setup{onPage: true, settings: off})); strings.Contains(text, "codehand page") {
		t.Errorf("where it never answers: %s", text)
	}
	f := start(t, setup{}) // its commands do not count as confined
	end := f.server.Reachable(t.Context())
	defer end()
	if text := refused(f); strings.Contains(text, "codehand page") {
		t.Errorf("where commands could answer: %s", text)
	}
}
