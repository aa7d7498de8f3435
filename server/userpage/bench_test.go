package userpage

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"codehand/filestate/disk"
	"codehand/filestate/journal"
	"codehand/server/asking"
	"codehand/server/audit"
	"codehand/server/pipeline"
	"codehand/server/sessions"
	"codehand/tools/session"
)

// BenchmarkPage is how long a page takes, and what it weighs, of a user with 1,000 sessions that made 100,000 changes in
// 50 workspaces by 100,000 calls: 300 ms and 80 kB are promised.
func BenchmarkPage(b *testing.B) {
	const changes, many = 100_000, 1_000
	state, calls := b.TempDir(), filepath.Join(b.TempDir(), "calls")
	book, err := journal.Open(sessions.JournalDir(state, "local"), journal.Options{Fast: true, MaxBytes: 8 << 30})
	if err != nil {
		b.Fatal(err)
	}
	log, err := audit.Open(audit.Options{Dir: calls, Replica: "bench", Sync: -1})
	if err != nil {
		b.Fatal(err)
	}
	old, content := []byte("one\n"), []byte("two\n")
	for i := range changes {
		// seven work at a time, as sub-agents and several windows do
		key := session.Key{Principal: "local", Session: fmt.Sprintf("p:%d", (i/100+i%7)%many)}
		root := fmt.Sprintf("/home/somebody/src/project%d", i%50)
		path := fmt.Sprintf("%s/internal/package/file%d.go", root, i%500)
		p, err := book.Begin(journal.By{Principal: "local", Workspace: root, Session: key.Session, Tool: "edit_file"}, nil,
			[]journal.Part{{Path: path, Old: old, Before: disk.DigestOf(old), New: content, After: disk.DigestOf(content)}})
		if err != nil {
			b.Fatal(err)
		}
		p.Done(b.Context())
		err = log.Call(pipeline.Record{Call: fmt.Sprint(i), Key: key, Time: time.Now(), Client: "claude-code", Tool: "edit_file",
			Summary: pipeline.Summary{Text: path}, Decision: "allow", By: "mode", Code: "ok", Took: time.Millisecond})
		if err != nil {
			b.Fatal(err)
		}
	}
	if err := log.Close(); err != nil {
		b.Fatal(err)
	}
	defer book.Close()
	p, err := newPage("127.0.0.1:1234", Options{StateDir: state, Calls: calls})
	if err != nil {
		b.Fatal(err)
	}
	p.callers = nil // requests of this benchmark come over no connection
	defer p.history.close()
	defer p.hub.Close()
	one := asking.ShortName(session.Key{Session: "p:7"})
	for _, path := range []string{"/", "/activity", "/activity?session=" + one, "/activity?failed=1", "/changes", "/changes?session=" + one} {
		b.Run(path, func(b *testing.B) {
			bytes := 0
			for b.Loop() {
				r := httptest.NewRequest(http.MethodGet, path, http.NoBody)
				r.Host = "127.0.0.1:1234"
				r.AddCookie(&http.Cookie{Name: p.cookie, Value: p.secret})
				w := httptest.NewRecorder()
				p.ServeHTTP(w, r)
				if w.Code != http.StatusOK {
					b.Fatalf("%d %s", w.Code, w.Body)
				}
				bytes = w.Body.Len()
			}
			b.ReportMetric(float64(bytes)/1000, "kB")
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms/op")
		})
	}
}
