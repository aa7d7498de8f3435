package audit

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"codehand/filestate/leaktest"
	"codehand/server/pipeline"
	"codehand/tools/session"
)

// TestRecent: what a person asks about last night's calls is answered from the files of all replicas, the newest first, in
// pages, with what stands in the line of a call's beginning; a call without an end shows, and damaged lines do not matter.
func TestRecent(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(leaktest.Dir(t), "audit")
	for r, replica := range []string{"r1", "r2"} {
		log, err := Open(Options{Dir: dir, Replica: replica, Sync: -1})
		must(t, err)
		for i := range 30 {
			exit := i / 2 // of the calls 0 and 1, whose lines differ in kind, it is 0
			c := pipeline.Record{Call: fmt.Sprintf("%s-%02d", replica, i), Key: session.Key{Principal: []string{"ann", "bob"}[r], Session: "s"},
				Client: "claude", Dir: fmt.Sprintf("/w/%d", i%3), Job: "job_a", Tool: "run_shell", Summary: pipeline.Summary{Text: fmt.Sprintf("make %d", i)}, Decision: "allow", By: "mode", Code: "ok", Exit: &exit,
				Took: 1500 * time.Millisecond}
			if i%2 == 0 {
				begun := c
				begun.Started = true
				must(t, log.Call(begun))
				c.Announced = true
			}
			if i == 29 {
				c.Code = "PERMISSION_DENIED"
			}
			if i != 28 { // it was killed
				must(t, log.Call(c))
			}
		}
		must(t, log.Close())
	}
	files, err := listFiles(dir)
	must(t, err)
	f, err := os.OpenFile(filepath.Join(dir, files[0].name), os.O_APPEND|os.O_WRONLY, 0)
	must(t, err)
	_, err = f.WriteString("{\"ev\":\"call.done\",\"t\":17}\nhalf a li")
	must(t, err)
	must(t, f.Close())

	seen, pages, before := "", 0, time.Time{}
	for more := true; more; pages++ {
		var list []PastCall
		list, more, err = Recent(dir, Query{Principal: "ann", Before: before, Limit: 7})
		must(t, err)
		for _, c := range list {
			seen += c.ID + " "
			if c.Client != "claude" || !strings.HasPrefix(c.Summary, "make ") || c.Decision != "allow" || c.Principal != "ann" {
				t.Errorf("%+v", c)
			}
			if !c.Open && (c.Exit == nil || c.Took != 1500*time.Millisecond) {
				t.Errorf("%+v", c)
			}
		}
		if len(list) > 0 {
			before = list[len(list)-1].Time
		}
	}
	want := ""
	for i := 29; i >= 0; i-- {
		want += fmt.Sprintf("r1-%02d ", i)
	}
	if seen != want || pages != 5 {
		t.Errorf("%d pages: %s, want %s", pages, seen, want)
	}
	failed, _, err := Recent(dir, Query{Fits: func(c PastCall) bool { return c.Code != "" || c.Open }})
	must(t, err)
	got := ""
	for _, c := range failed {
		got += fmt.Sprintf("%s %s %t;", c.ID, c.Code, c.Open)
	}
	if got != "r2-29 PERMISSION_DENIED false;r2-28  true;r1-29 PERMISSION_DENIED false;r1-28  true;" {
		t.Error(got)
	}
	fails := func(c PastCall) bool { return c.Code != "" || c.Open || c.Exit != nil && *c.Exit != 0 }
	parsed, _, err := Recent(dir, Query{Fits: fails})
	must(t, err)
	passed, _, err := Recent(dir, Query{Fits: fails, Failed: true})
	if err != nil || len(parsed) != 56 || !reflect.DeepEqual(parsed, passed) { // all but those of exit 0
		t.Errorf("what failed is %d calls, and %d where the others are passed over: %v", len(parsed), len(passed), err)
	}
	in, more, err := Recent(dir, Query{Principal: "ann", Limit: 3, Fits: func(c PastCall) bool { return c.Dir == "/w/0" && c.Summary != "" }})
	if err != nil || !more || len(in) != 3 || in[0].ID+in[1].ID+in[2].ID != "r1-27r1-24r1-21" || in[1].Job != "job_a" {
		t.Errorf("of one directory: %+v %t %v", in, more, err)
	}
	for name, want := range map[string]int{"s": 60, "x": 0} {
		list, _, err := Recent(dir, Query{Session: func(key string) bool { return key == name }})
		if err != nil || len(list) != want {
			t.Errorf("of session %s: %d, %v", name, len(list), err)
		}
	}
	if list, more, err := Recent(filepath.Join(dir, "none"), Query{}); len(list) != 0 || more || err != nil {
		t.Errorf("%v %t %v", list, more, err)
	}
	stamp := Stamp(dir)
	must(t, os.Remove(filepath.Join(dir, files[0].name)))
	if stamp == Stamp(dir) || stamp == "" {
		t.Errorf("stamps %q and %q", stamp, Stamp(dir))
	}
}

// TestRecentBounded: one question about a long log reads a part of it, and says that there is more.
func TestRecentBounded(t *testing.T) {
	t.Parallel()
	dir := leaktest.Dir(t)
	must(t, os.WriteFile(filepath.Join(dir, "audit-r1.jsonl"), []byte(strings.Repeat(`{"ev":"rotate","t":"2026-11-28T10:00:00Z"}`+"\n", 50_000)), 0o600))
	budget := int64(2 * chunk)
	n := 0
	must(t, backwards(filepath.Join(dir, "audit-r1.jsonl"), &budget, func([]byte) bool { n++; return true }))
	if budget > 0 || n == 0 || n > 13_000 {
		t.Errorf("%d lines, %d bytes left", n, budget)
	}
	must(t, os.WriteFile(filepath.Join(dir, "audit-r2.jsonl"), []byte(strings.Repeat("x", 1<<20)), 0o600))
	if list, _, err := Recent(dir, Query{}); len(list) != 0 || err != nil {
		t.Errorf("%v %v", list, err)
	}
}
