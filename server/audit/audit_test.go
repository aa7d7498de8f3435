package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"codehand/server/pipeline"
	"codehand/server/replaytest"
	"codehand/tools/session"
	"codehand/tools/tool"
)

// The record of one call, with every field set.
func testRecord() pipeline.Record {
	exit := 3
	return pipeline.Record{
		Announced: true,
		Call:      "9c41", Ref: "ABCDEFGH",
		Key: session.Key{Principal: "corp/1234", Session: "h:build-42"}, Client: "claude-code", ClientVersion: "2.1.329",
		From: pipeline.From{Auth: "token:k3v7", Transport: "http", Era: "modern", IP: "10.0.0.7", Trace: "4bf9"},
		Tool: "edit_file", Via: "call_tool", Digest: strings.Repeat("a", 64),
		Summary: pipeline.Summary{Text: "file_path=/w/a.go", Brief: "brief"},
		Mode:    "acceptEdits", Verdict: "allow", Rule: "edit_file(src/**)", Origin: "config.toml:12", Decision: "allow", By: "config",
		Code: "ok", Stages: pipeline.Stages{Gate: 120 * time.Microsecond, Run: 3240 * time.Microsecond}, Took: 3800 * time.Microsecond,
		Runes: 655, Kept: "/k/1", Exit: &exit, Job: "j1", Sandbox: &tool.Confinement{Level: 1},
		Files: []tool.FileChange{
			{Path: "/w/a.go", Op: "change", SumBefore: "0123456789ab", SumAfter: "ba9876543210"},
			{Path: "/w/b.go", Op: "create", SumAfter: "ba9876543210"},
		},
	}
}

func TestLine(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 20, 11, 11, 12, 123456789, time.FixedZone("", 3600))
	bare := pipeline.Record{Code: "INPUT_INVALID", Cancelled: true, FilesCut: true}
	r := testRecord()
	plain := r
	plain.Origin, plain.Ref, plain.Job = "", "", ""
	failed := testRecord()
	failed.Code, failed.Announced, failed.Files = "PERMISSION_DENIED", false, nil
	const head = `,"t":"2026-11-20T10:11:12.123456Z","ev":"call.`
	for _, c := range []struct {
		name string
		line logLine
		want string
	}{
		{
			"start", startLine(at, maker{replica: "r4k2"}, plain, false),
			head + `start","rep":"r4k2","p":"corp/1234","auth":"token:k3v7","sk":"h:build-42","client":"claude-code/2.1.329","era":"modern","tr":"http",` +
				`"ip":"10.0.0.7","call":"9c41","try":1,"tool":"edit_file","via":"call_tool","args":"sha256:` + strings.Repeat("a", 64) +
				`","sum":"file_path=/w/a.go","dec":"allow","rule":"edit_file(src/**)","by":"config","mode":"acceptEdits","trace":"4bf9"`,
		},
		{
			"done", doneLine(at, maker{replica: "r4k2"}, plain, false),
			head + `done","rep":"r4k2","p":"corp/1234","sk":"h:build-42","call":"9c41","try":1,"tool":"edit_file","ok":true,"code":"",` +
				`"ms":{"gate":0.1,"run":3.2,"all":3.8},"runes":655,"kept":"/k/1","files":[{"path":"/w/a.go","op":"change","before":"sha256:0123456789ab","after":"sha256:ba9876543210"},` +
				`{"path":"/w/b.go","op":"create","before":"","after":"sha256:ba9876543210"}],"exit":3,"sandbox":"1","cancelled":false,"replay":false,"recovered":false`,
		},
		{
			"refused", doneLine(at, maker{replica: "r4k2"}, failed, true),
			head + `done","rep":"r4k2","p":"corp/1234","sk":"h:build-42","call":"9c41","try":1,"tool":"edit_file","ok":false,"code":"PERMISSION_DENIED",` +
				`"ms":{"gate":0.1,"run":3.2,"all":3.8},"runes":655,"kept":"/k/1","files":[],"exit":3,"sandbox":"1","job":"j1","ref":"ABCDEFGH","cancelled":false,"replay":false,"recovered":false,` +
				`"auth":"token:k3v7","client":"claude-code/2.1.329","era":"modern","tr":"http","ip":"10.0.0.7","via":"call_tool","args":"sha256:` + strings.Repeat("a", 64) +
				`","sum":"brief","dec":"allow","rule":"edit_file(src/**)","origin":"config.toml:12","by":"config","mode":"acceptEdits","trace":"4bf9"`,
		},
		{
			"node", eventLine(at, "rotate", maker{"r4k2", "tools-1"}, nil),
			`,"t":"2026-11-20T10:11:12.123456Z","ev":"rotate","rep":"r4k2","node":"tools-1"`,
		},
		{
			"bare", doneLine(at, maker{replica: "r"}, bare, false),
			head + `done","rep":"r","p":"","sk":"","call":"","try":1,"tool":"","ok":false,"code":"INPUT_INVALID","ms":{"gate":0.0,"run":0.0,"all":0.0},"runes":0,"kept":"","files":[],` +
				`"exit":null,"sandbox":null,"cancelled":true,"replay":false,"recovered":false,"auth":"","client":"","era":"","tr":"","ip":"","via":"","args":"","sum":"","dec":"","rule":"","by":"","mode":"","trace":"","cut":true`,
		},
		{
			"event", eventLine(at, "auth.fail", maker{replica: "r"}, map[string]any{"n": 3, "ip": "10.0.0.7", "list": []string{"a", "b\n"}, "ok": false, "took": time.Second, "big": int64(1) << 40}),
			`,"t":"2026-11-20T10:11:12.123456Z","ev":"auth.fail","rep":"r","big":1099511627776,"ip":"10.0.0.7","list":["a","b\n"],"n":3,"ok":false,"took":"1s"`,
		},
	} {
		fields := c.line[maxHead:]
		if string(fields) != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, fields, c.want)
		}
		if !json.Valid(fmt.Appendf(nil, `{"v":1%s}`, fields)) {
			t.Errorf("%s is not JSON", c.name)
		}
	}
}

// Whatever a client, a path or a file name holds, a line is one line of JSON, shows what is invisible, and is not long.
func TestLineHostile(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"a\"b\\c\n\td\x00\x1b[31m\u202ee\u2028f\xff", strings.Repeat("\U000e0041", 5000), strings.Repeat("\"", 20_000), strings.Repeat("\x01", 20_000),
		strings.Repeat("é", 200), strings.Repeat("é", 201),
	} {
		r := testRecord()
		r.Announced = false
		r.Key.Session, r.Client, r.ClientVersion, r.From.Trace, r.From.Auth, r.Tool, r.Via = text, text, text, text, text, text, text
		r.Files = nil
		for i := range 200 {
			r.Files = append(r.Files, tool.FileChange{Path: fmt.Sprintf("/w/%d/%s", i, text), Op: "shell", SumAfter: "ba9876543210"})
		}
		fields := map[string]any{}
		for i := range 400 {
			fields[fmt.Sprint("field", i)] = []string{text, text}
		}
		for i, l := range []logLine{startLine(time.Now(), maker{replica: "r"}, r, false), doneLine(time.Now(), maker{replica: "r"}, r, false), eventLine(time.Now(), "x", maker{replica: "r"}, fields)} {
			l = l[maxHead:]
			var got map[string]any
			if err := json.Unmarshal(fmt.Appendf(nil, `{"v":1%s}`, l), &got); err != nil {
				t.Fatalf("%.40q, line %d: %v", text, i, err)
			}
			if len(l) > maxLine-maxFrame {
				t.Errorf("%.40q, line %d has %d bytes", text, i, len(l))
			}
			if bytes.ContainsFunc(l, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\u202e' || r == '\u2028' || r >= 0xe0000 }) {
				t.Errorf("%.40q, line %d: an invisible character is left: %.200q", text, i, l)
			}
			if i > 0 && got["cut"] != true {
				t.Errorf("%.40q, line %d does not say that it is cut", text, i)
			}
			for name, v := range got {
				if s, ok := v.(string); ok && name != "kept" && len([]rune(s)) > maxText {
					t.Errorf("%.40q, line %d: %s has %d runes", text, i, name, len([]rune(s)))
				}
			}
		}
	}
	if got := showText(strings.Repeat("é", 200)); len([]rune(got)) != 200 || strings.HasSuffix(got, "…") {
		t.Errorf("a text of 200 runes became %q", got)
	}
}

// openTest opens a log in dir that is closed with the test.
func openTest(t testing.TB, dir string, change func(*Options)) *Log {
	t.Helper()
	o := Options{Dir: dir, Replica: "r4k2", Sync: -1}
	if change != nil {
		change(&o)
	}
	a, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return a
}

// logDir is a directory for a log.
func logDir(t testing.TB) string { return filepath.Join(t.TempDir(), "audit") }

func mustCheck(t *testing.T, dir string, lines int) {
	t.Helper()
	if n, err := Check(dir); err != nil || n != lines {
		t.Errorf("Check: %d lines, %v; want %d", n, err, lines)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// The chain goes on over restarts, and over files.
func TestGoesOn(t *testing.T) {
	t.Parallel()
	dir := logDir(t)
	for range 2 {
		a := openTest(t, dir, func(o *Options) { o.Start = map[string]any{"version": "1.2"} })
		must(t, a.Event("login", map[string]any{"p": "x"}))
		must(t, a.Close())
		must(t, a.Close())
		if err := a.Event("login", nil); !errors.Is(err, errClosed) {
			t.Errorf("a line after the end: %v", err)
		}
	}
	if got := replaytest.AuditEvents(t, dir); got != "serve.start login serve.stop serve.start login serve.stop" {
		t.Error(got)
	}
	mustCheck(t, dir, 6)
	path := filepath.Join(dir, "audit-r4k2.jsonl")
	for name, want := range map[string]os.FileMode{dir: 0o700, path: 0o600} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != want && noFollow != 0 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	// The process ended in the middle of a line, and then between two files.
	whole, err := os.ReadFile(path)
	must(t, err)
	must(t, os.WriteFile(path, append(whole, `{"v":1,"seq":7,"t":"2026`...), 0o600))
	must(t, openTest(t, dir, nil).Close())
	mustCheck(t, dir, 8)
	must(t, os.Rename(path, filepath.Join(dir, fileName("r4k2", time.Now()))))
	must(t, openTest(t, dir, nil).Close())
	mustCheck(t, dir, 10)
	must(t, os.Rename(path, filepath.Join(dir, fileName("r4k2", time.Now().Add(time.Second)))))
	must(t, os.WriteFile(path, []byte(`{"v":1,`), 0o600))
	must(t, openTest(t, dir, nil).Close())
	mustCheck(t, dir, 12)
	// Another replica has a chain of its own, whatever its name.
	must(t, openTest(t, dir, func(o *Options) { o.Replica = "r4k2-b" }).Close())
	mustCheck(t, dir, 14)
}

func TestRotates(t *testing.T) {
	t.Parallel()
	dir := logDir(t)
	a := openTest(t, dir, func(o *Options) { o.Rotate = 3000 })
	for range 50 {
		must(t, a.Call(testRecord()))
	}
	must(t, a.Close())
	files, err := listFiles(dir)
	if err != nil || len(files) < 10 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, f := range files {
		if f.size > 3000 {
			t.Errorf("%s has %d bytes", f.name, f.size)
		}
	}
	mustCheck(t, dir, 50+2+len(files)-1)
	if got := strings.Count(replaytest.AuditEvents(t, dir), "rotate"); got != len(files)-1 {
		t.Errorf("%d lines rotate in %d files", got, len(files))
	}
}

// A day has its file, also one in which nothing happened, and old ones go.
func TestMidnight(t *testing.T) {
	t.Parallel()
	dir := logDir(t)
	synctest.Test(t, func(t *testing.T) {
		// It is 2000-01-01 00:00 UTC, and the files have the real time.
		a, err := Open(Options{Dir: dir, Replica: "r", Sync: time.Second})
		must(t, err)
		time.Sleep(24*time.Hour - time.Second)
		must(t, a.Event("login", nil))
		time.Sleep(2 * time.Second)
		synctest.Wait()
		must(t, a.Event("logout", nil))
		time.Sleep(48 * time.Hour)
		synctest.Wait()
		must(t, a.Close())
	})
	if got := replaytest.AuditEvents(t, dir); got != "serve.start login rotate logout rotate rotate serve.stop" {
		t.Error(got)
	}
	mustCheck(t, dir, 7)
	for _, day := range []string{"01T000000.000000", "02T000000.000000", "03T000000.000000"} {
		if name := filepath.Join(dir, "audit-r-200001"+day+"Z.jsonl"); !exists(name) {
			t.Errorf("%s is missing", name)
		}
	}
	old := time.Now().Add(-100 * 24 * time.Hour)
	other := filepath.Join(dir, "notes.jsonl")
	must(t, os.WriteFile(other, nil, 0o600))
	dead := filepath.Join(dir, "audit-dead.jsonl")
	must(t, os.WriteFile(dead, nil, 0o600))
	for _, name := range []string{filepath.Join(dir, "audit-r-20000101T000000.000000Z.jsonl"), dead, other} {
		must(t, os.Chtimes(name, old, old))
	}
	a := openTest(t, dir, func(o *Options) { o.Replica, o.Keep = "r", 90*24*time.Hour })
	must(t, a.Close())
	files, err := listFiles(dir)
	if err != nil || len(files) != 4 || exists(dead) || !exists(other) { // of days 2 to 4, and today's
		t.Errorf("%+v, %v", files, err)
	}
	mustCheck(t, dir, 7)
}

// A fakeFile is a file on a disk that is full, slow, or broken.
type fakeFile struct {
	output
	mu    sync.Mutex
	room  int   // bytes that can still be written
	cut   error // of Truncate
	bad   error // of Sync
	syncs int
}

func (f *fakeFile) Write(b []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := min(len(b), f.room)
	f.room -= n
	n, err := f.output.Write(b[:n])
	if err == nil && n < len(b) {
		err = &os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}
	}
	return n, err
}

func (f *fakeFile) Truncate(n int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cut != nil {
		return f.cut
	}
	return f.output.Truncate(n)
}

func (f *fakeFile) Sync() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.syncs++
	return f.bad
}

func (f *fakeFile) set(change func(*fakeFile)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

// openFake opens a log on a fakeFile.
func openFake(t testing.TB, o Options) (*Log, *fakeFile) {
	t.Helper()
	f := &fakeFile{room: 1 << 30}
	a := newLog(o)
	a.create = func(path string) (output, error) {
		file, err := createFile(path)
		f.output = file
		return f, err
	}
	if err := a.open(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	return a, f
}

// A line that cannot be written whole leaves nothing behind. What has happened is written when there is room again, and
// what was about to happen is not.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	for _, cutFails := range []bool{false, true} {
		t.Run(fmt.Sprint("cut fails: ", cutFails), func(t *testing.T) {
			t.Parallel()
			dir := logDir(t)
			a, f := openFake(t, Options{Dir: dir, Replica: "r", Sync: -1})
			must(t, a.Event("login", nil))
			f.set(func(f *fakeFile) {
				f.room = 100
				if cutFails {
					f.cut = syscall.EIO
				}
			})
			start := testRecord()
			start.Started = true
			if err := a.Call(start); !errors.Is(err, syscall.ENOSPC) || a.Failed() == nil {
				t.Errorf("half a line: %v, failed: %v", err, a.Failed())
			}
			f.set(func(f *fakeFile) { f.room, f.cut = 0, nil })
			for range maxPending + 5 {
				if err := a.Call(testRecord()); !errors.Is(err, syscall.ENOSPC) {
					t.Fatalf("no room: %v", err)
				}
			}
			f.set(func(f *fakeFile) { f.room = 1 << 30 })
			must(t, a.Event("logout", nil))
			if a.Failed() != nil {
				t.Errorf("still failed: %v", a.Failed())
			}
			must(t, a.Close())
			want := "serve.start login" + strings.Repeat(" call.done", maxPending) + " logout serve.stop"
			if got := replaytest.AuditEvents(t, dir); got != want {
				t.Errorf("%.300s", got)
			}
			lost := 0.0
			for _, m := range replaytest.AuditLines(t, dir) {
				if n, ok := m["lost"].(float64); ok {
					lost += n
				}
			}
			if lost != 5 {
				t.Errorf("%v lines are said to be lost, want 5", lost)
			}
			mustCheck(t, dir, 4+maxPending)
		})
	}
}

func TestSync(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	syncs := func(f *fakeFile) (n int) {
		f.set(func(f *fakeFile) { n = f.syncs })
		return n
	}
	synctest.Test(t, func(t *testing.T) {
		always, f := openFake(t, Options{Dir: filepath.Join(dir, "a"), Replica: "r", Sync: 0})
		must(t, always.Event("login", nil))
		if n := syncs(f); n != 2 {
			t.Errorf("always: %d syncs after two lines", n)
		}
		f.set(func(f *fakeFile) { f.bad = syscall.EIO })
		if err := always.Event("logout", nil); !errors.Is(err, syscall.EIO) {
			t.Errorf("always: a sync that fails: %v", err)
		}
		f.set(func(f *fakeFile) { f.bad = nil })
		must(t, always.Close())
		if got := replaytest.AuditEvents(t, filepath.Join(dir, "a")); got != "serve.start login logout serve.stop" {
			t.Errorf("a line that was not synced is there once: %s", got)
		}

		late, f := openFake(t, Options{Dir: filepath.Join(dir, "b"), Replica: "r", Sync: time.Second})
		for range 10 {
			must(t, late.Event("login", nil))
			time.Sleep(50 * time.Millisecond)
		}
		if n := syncs(f); n != 0 {
			t.Errorf("1s: %d syncs after half a second", n)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if n := syncs(f); n != 1 {
			t.Errorf("1s: %d syncs after a second and a half", n)
		}
		time.Sleep(10 * time.Second)
		if n := syncs(f); n > 2 {
			t.Errorf("1s: %d syncs although nothing is written", n)
		}
		f.set(func(f *fakeFile) { f.bad = syscall.EIO })
		must(t, late.Event("login", nil))
		time.Sleep(time.Second)
		synctest.Wait()
		if err := late.Failed(); !errors.Is(err, syscall.EIO) {
			t.Errorf("1s: a sync that fails: %v", err)
		}
		f.set(func(f *fakeFile) { f.bad = nil })
		must(t, late.Close())

		never, f := openFake(t, Options{Dir: filepath.Join(dir, "c"), Replica: "r", Sync: -1})
		must(t, never.Event("login", nil))
		time.Sleep(time.Hour)
		must(t, never.Close())
		if n := syncs(f); n != 0 {
			t.Errorf("never: %d syncs", n)
		}
	})
}

// An output that is no file gets whole lines: half of one is ended, and its chain goes on behind it.
func TestStream(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	f := &fakeFile{room: 1 << 30, output: streamFile{&out}}
	a := openTest(t, "-", func(o *Options) { o.Out, o.Rotate = f, 10 })
	f.set(func(f *fakeFile) { f.room = 50 })
	if err := a.Event("login", nil); !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	f.set(func(f *fakeFile) { f.room = 1 << 30 })
	must(t, a.Close())
	lines := strings.SplitAfter(out.String(), "\n")
	if len(lines) != 5 || json.Valid([]byte(lines[1])) {
		t.Fatalf("%q", lines)
	}
	c := chain{replica: "r4k2"}
	if err := c.read(strings.NewReader(lines[0]+lines[2]+lines[3]), logFile{name: "x", active: true}); err != nil || c.lines != 3 {
		t.Errorf("%d lines, %v", c.lines, err)
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, os.Chmod(dir, 0o755))
	closed := logDir(t)
	must(t, os.Mkdir(closed, 0o700))
	damaged := logDir(t)
	must(t, openTest(t, damaged, nil).Close())
	path := filepath.Join(damaged, "audit-r4k2.jsonl")
	b, err := os.ReadFile(path)
	must(t, err)
	must(t, os.WriteFile(path, append(b, "\x00\x00\n"...), 0o600))
	link := logDir(t)
	must(t, os.Mkdir(link, 0o700))
	file := filepath.Join(closed, "f")
	must(t, os.WriteFile(file, nil, 0o600))
	for _, c := range []struct {
		name string
		o    Options
		want string
		unix bool
	}{
		{"replica", Options{Dir: closed, Replica: "../x"}, `replica "../x"`, false},
		{"no replica", Options{Dir: closed}, `replica ""`, false},
		{"open directory", Options{Dir: dir, Replica: "r"}, "has mode 0755; run chmod 700 on it", true},
		{"no directory", Options{Dir: file, Replica: "r"}, "is not a directory", false},
		{"damaged", Options{Dir: damaged, Replica: "r4k2"}, "is not whole JSON; look at it with codehand doctor --audit " + damaged, false},
		{"no output", Options{Dir: "-", Replica: "r"}, "no output", false},
	} {
		if c.unix && noFollow == 0 {
			continue // mode bits say nothing here
		}
		if a, err := Open(c.o); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, %v", c.name, a, err)
		}
	}
	if noFollow == 0 {
		return
	}
	target := filepath.Join(t.TempDir(), "target")
	must(t, os.WriteFile(target, nil, 0o600))
	must(t, os.Symlink(target, filepath.Join(link, "audit-r.jsonl")))
	if _, err := Open(Options{Dir: link, Replica: "r"}); err == nil {
		t.Error("a link at the name of the log is followed")
	}
	if b, err := os.ReadFile(target); err != nil || len(b) > 0 {
		t.Errorf("the target of the link holds %q (%v)", b, err)
	}
}

// TestClosed: no call may be made that cannot be recorded any more.
func TestClosed(t *testing.T) {
	t.Parallel()
	a, err := Open(Options{Dir: logDir(t), Replica: "r"})
	must(t, err)
	must(t, a.Close())
	if err := a.Failed(); !errors.Is(err, errClosed) {
		t.Errorf("the record that is closed: %v", err)
	}
}

// Many calls at the same time make one chain.
func TestAtTheSameTime(t *testing.T) {
	t.Parallel()
	dir := logDir(t)
	a := openTest(t, dir, func(o *Options) { o.Rotate, o.Sync = 20_000, time.Millisecond })
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				if err := errors.Join(a.Call(testRecord()), a.Failed()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	written := make(chan struct{})
	go func() { all.Wait(); close(written) }()
	for open := true; open; {
		select {
		case <-written:
			open = false
		default:
		}
		if _, err := Check(dir); err != nil {
			t.Errorf("a check while lines are written: %v", err)
		}
	}
	must(t, a.Close())
	files, err := listFiles(dir)
	must(t, err)
	mustCheck(t, dir, 400+2+len(files)-1)
}

// BenchmarkLine is what a call pays for one of its lines.
func BenchmarkLine(b *testing.B) {
	a := openTest(b, logDir(b), func(o *Options) { o.Sync = time.Second })
	r := testRecord()
	b.ReportAllocs()
	for b.Loop() {
		if err := a.Call(r); err != nil {
			b.Fatal(err)
		}
	}
}

// A check of the settings finds what would keep the log from being written, and leaves no line.
func TestCheckOnly(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "audit")
	l, err := Open(Options{Dir: dir, Replica: "r", Check: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(l.Event("login", nil), l.Failed(), l.Close()); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("it left %v, %v", left, err)
	}
	if _, err := Open(Options{Dir: filepath.Join(dir, "no", "where"), Replica: "r", Check: true}); err == nil {
		t.Error("a directory that cannot be made is good")
	}
}
