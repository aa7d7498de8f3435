package tools

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"codehand/tools/running"
)

// Other results tell of the events that were not read, and of none twice.
func TestMonitorIsAnnounced(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	text := r.ok("monitor", `{"description":"two lines","command":"echo a; until [ -e go ]; do :; done; echo b; echo c; sleep 600"}`)
	id := regexp.MustCompile(`job_[a-z2-7]{12}`).FindString(text)
	if text := r.ok("job_output", `{"job_id":"`+id+`","block":true,"timeout_ms":60000}`); !strings.HasSuffix(text, "1 new event\na") {
		t.Fatalf("the first event:\n%s", text)
	}
	if lines, _ := running.News(t.Context(), r.State, ""); len(lines) > 0 {
		t.Errorf("told of what was read: %q", lines)
	}
	r.write("go", "")
	after := int64(len("a\n"))
	for until := after + int64(len("b\nc\n")); after < until; {
		i, err := r.Shell.AwaitNew(t.Context(), id, after, time.Now().Add(time.Minute))
		c, err2 := r.Shell.Output(t.Context(), id, after, 100)
		if err != nil || err2 != nil || c.Size == 0 {
			t.Fatalf("%+v, %v, %v", i, err, err2)
		}
		after = c.Next
	}
	if lines, _ := running.News(t.Context(), r.State, id); len(lines) > 0 {
		t.Errorf("a call about the monitor itself: %q", lines)
	}
	lines, claim := running.News(t.Context(), r.State, "")
	want := "[monitor " + id + ": 2 new events]"
	if len(lines) != 1 || lines[0] != want {
		t.Fatalf("%q, want %q", lines, want)
	}
	if told := claim(0); len(told) > 0 {
		t.Errorf("told without room: %q", told)
	}
	if told := claim(1); len(told) != 1 || told[0] != want {
		t.Errorf("told %q", told)
	}
	if told := claim(1); len(told) > 0 {
		t.Errorf("told twice: %q", told)
	}
	if lines, _ := running.News(t.Context(), r.State, ""); len(lines) > 0 {
		t.Errorf("told again: %q", lines)
	}
	r.ok("job_stop", `{"job_id":"`+id+`"}`)
}
