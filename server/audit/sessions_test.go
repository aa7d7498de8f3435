package audit

import (
	"path/filepath"
	"testing"

	"codehand/tools/tool"
)

// A call that waited for a person is one call, which has not failed; all files that a command changed count, those that
// a new directory stands for, too.
func TestSessionsCount(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "audit")
	l, err := Open(Options{Dir: dir, Replica: "r", Sync: -1})
	if err != nil {
		t.Fatal(err)
	}
	add := func(session, code string, files ...tool.FileChange) {
		t.Helper()
		r := testRecord()
		r.Key.Session, r.Code, r.Files, r.Announced = session, code, files, false
		if err := l.Call(r); err != nil {
			t.Fatal(err)
		}
	}
	add("h:a", "PENDING")
	add("h:a", "ok", tool.FileChange{Path: "/w/a", Op: "shell", Did: "delete"},
		tool.FileChange{Path: "/w/out", Op: "shell", Did: "create", Files: 40})
	add("h:a", "PENDING")
	add("h:a", "USER_DECLINED")
	add("h:b", "PENDING")
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	all, err := Sessions(dir, "")
	if err != nil || len(all) != 2 {
		t.Fatalf("%+v, %v", all, err)
	}
	b, a := all[0], all[1]
	if a.Session != "h:a" || a.Calls != 2 || a.Failed != 1 || a.Changes != 41 || a.Last.Before(a.First) {
		t.Errorf("got %+v", a)
	}
	if b.Session != "h:b" || b.Calls != 0 || b.Failed != 0 || b.First.IsZero() {
		t.Errorf("a call that waits: %+v", b)
	}
}
