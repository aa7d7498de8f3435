package team

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"codehand/filestate/leaktest"
	"codehand/server/audit"
	"codehand/server/config"
	"codehand/server/pipeline"
	"codehand/tools/session"
)

// TestRecorder: calls of a process on stdio are on record for the page of its user, from the first one on; there is no
// record where the settings ask for none or for an audit log, and a disk that cannot be written fails no call.
func TestRecorder(t *testing.T) {
	t.Parallel()
	cfg := config.Config{StateDir: leaktest.Dir(t), Console: config.Console{Record: true}}
	log := slog.New(slog.DiscardHandler)
	r := NewRecorder(cfg, "1", log)
	if _, err := os.Stat(config.CallsDir(cfg)); err == nil {
		t.Error("there is a record before the first call")
	}
	for _, id := range []string{"a", "b"} {
		r.Record(pipeline.Record{Call: id, Key: session.Key{Principal: "local", Session: "s"}, Tool: "x", Code: "ok", Announced: true,
			Summary: pipeline.Summary{Text: "about " + id}, Took: time.Second})
	}
	r.Flush(t.Context())
	if list, _, err := audit.Recent(config.CallsDir(cfg), audit.Query{}); err != nil || len(list) != 2 {
		t.Errorf("after Flush: %+v, %v", list, err)
	}
	r.Close()
	r.Flush(t.Context())
	r.Record(pipeline.Record{Call: "late"})
	list, _, err := audit.Recent(config.CallsDir(cfg), audit.Query{})
	if err != nil || len(list) != 2 || list[0].Summary != "about b" || list[1].ID != "a" {
		t.Errorf("%+v, %v", list, err)
	}
	if info, err := os.Stat(config.CallsDir(cfg)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v %v", info.Mode(), err)
	}

	for _, off := range []config.Config{{StateDir: cfg.StateDir}, {StateDir: cfg.StateDir, Console: cfg.Console, Audit: config.Audit{Dir: "/x"}}} {
		none := NewRecorder(off, "1", log)
		if none != nil {
			t.Errorf("%+v is recorded", off)
		}
		none.Close()
	}
	cfg.StateDir = filepath.Join(cfg.StateDir, "missing")
	broken := NewRecorder(cfg, "1", log)
	for range 2 * mostQueued {
		broken.Record(pipeline.Record{Call: "a"})
	}
	broken.Close()
}
