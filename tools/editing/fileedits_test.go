package editing

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"codehand/tools/tool"
)

// A call that takes its time says what it is at; a fast one says nothing.
func TestEditNotes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var told []string
		notes := &stages{env: tool.Env{Progress: func(_, _ float64, what string) { told = append(told, what) }}}
		planned := TellPlanning(notes.env, 4)
		time.Sleep(time.Second)
		planned()
		TellPlanning(notes.env, 1)() // it took no time
		for i, wait := range []time.Duration{time.Second, time.Millisecond, 0, time.Second} {
			f := &FileEdits{Which: []int{i + 1}, Total: 4}
			trying, writing := f.stages()
			notes.say(trying)
			time.Sleep(wait)
			notes.say(writing)
		}
		time.Sleep(time.Second)
		notes.end()
		notes.end()
		if got := strings.Join(told, "; "); got != "Planning 4 edits...; Validating edit 1/4; Validating edit 4/4; Applying all edits" {
			t.Errorf("told: %s", got)
		}
	})
	if trying, writing := (&FileEdits{}).stages(); trying != "Validating edit" || writing != "Applying edit" {
		t.Error(trying, writing)
	}
	var none *stages
	none.say("x")
	none.end()
}
