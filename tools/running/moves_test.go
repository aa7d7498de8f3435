package running

import (
	"testing"

	"codehand/tools/bash"
)

func TestQuoted(t *testing.T) {
	t.Parallel()
	if got := Quoted(`/a b/it's`); got != `'/a b/it'\''s'` {
		t.Error(got)
	}
}

// Only a command that fetched, and that changes files, may go on with what is there now.
func TestHalfWay(t *testing.T) {
	t.Parallel()
	const line = "[sandbox level 3: /w/.husky is protected: it changes only by a command that names it]"
	for command, want := range map[string]bool{
		"git pull": true, "git fetch && git merge origin/main": true, "git merge main": false, "git fetch": false,
	} {
		a := bash.Analyze(command, nil)
		if got := halfWay(&a, line); (got != "") != want {
			t.Errorf("%s: %q", command, got)
		}
		if got := halfWay(&a, "[sandbox level 3: no network]"); got != "" {
			t.Errorf("%s failed otherwise: %q", command, got)
		}
	}
	if got := halfWay(nil, line); got != "" {
		t.Error(got)
	}
}
