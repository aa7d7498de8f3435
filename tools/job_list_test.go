package tools

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"codehand/tools/running"
)

// jobIn finds the id of a job.
var jobIn = regexp.MustCompile(`job_[a-z2-7]{12}`)

// Of many calls at once only the first reports the end of a job; ends without room in its answer come later.
func TestNewsOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var ids []string
	for range 6 {
		text := r.ok("run_shell", `{"command":"seq 1 3","run_in_background":true}`)
		ids = append(ids, jobIn.FindString(text))
	}
	for _, id := range ids {
		if _, err := r.Shell.Await(t.Context(), id, time.Time{}); err != nil {
			t.Fatal(err)
		}
	}
	lines, claim := running.News(t.Context(), r.State, ids[0])
	if len(lines) != 5 || slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, ids[0]) }) {
		t.Fatalf("%q, want five jobs without %s", lines, ids[0])
	}
	told := claim(1)
	if len(told) != 1 || told[0] != lines[0] {
		t.Fatalf("taken: %q of %q", told, lines)
	}
	var mu sync.Mutex
	var calls sync.WaitGroup
	for range 20 {
		calls.Go(func() {
			for range 20 { // one that looks while another one does finds nothing new
				lines, claim := running.News(t.Context(), r.State, "")
				if len(lines) == 0 {
					continue
				}
				mine := claim(len(lines) - len(lines)/2)
				mu.Lock()
				told = append(told, mine...)
				mu.Unlock()
			}
		})
	}
	calls.Wait()
	for lines, claim = running.News(t.Context(), r.State, ""); len(lines) > 0; lines, claim = running.News(t.Context(), r.State, "") {
		told = append(told, claim(len(lines))...)
	}
	for _, id := range ids {
		n := 0
		for _, line := range told {
			if strings.HasPrefix(line, "[job "+id+" finished: exit 0, ") && strings.HasSuffix(line, " s, 3 lines]") {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%s is told %d times in %q", id, n, told)
		}
	}
	if lines, _ := running.News(t.Context(), r.State, ""); len(lines) > 0 {
		t.Errorf("told again: %q", lines)
	}
}

// Of a job that ended long ago only the number is listed.
func TestJobListOld(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	if text := r.ok("job_list", `{}`); text != "No jobs." {
		t.Errorf("got %q", text)
	}
	id := jobIn.FindString(r.ok("run_shell", `{"command":"true","run_in_background":true}`))
	if _, err := r.Shell.Await(t.Context(), id, time.Time{}); err != nil {
		t.Fatal(err)
	}
	if text := r.ok("job_list", `{}`); !strings.HasPrefix(text, id+" finished: exit 0, ") || !strings.HasSuffix(text, " s, 0 lines: true") {
		t.Errorf("got %q", text)
	}
}
