package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
	"codehand/tools/tool"
)

// A word is the input of fixture tools.
type word struct {
	Text string `json:"text,omitempty" jsonschema:"anything"`
}

// fixtureTool makes a tool that only tests have.
func fixtureTool(name string, traits tool.Traits, run func(context.Context, tool.Env, word) (tool.Result, error)) tool.Tool {
	return tool.Define(tool.Def[word]{
		Spec: tool.Spec{Name: name, Title: name, Description: "A tool of the tests.", Hint: "a tool of tests", Traits: traits},
		Run:  run,
	})
}

// window is how many calls a test keeps in flight, below the limit of a connection.
const window = 500

var reader = tool.Traits{ReadOnly: true, Parallel: true, Local: true, Idempotent: true}

// collect reads n answers and returns them by raw id, and every line in order.
func (f *fixture) collect(t testing.TB, n int) (map[string]replaytest.Reply, []replaytest.Reply) {
	t.Helper()
	byID, all := map[string]replaytest.Reply{}, []replaytest.Reply(nil)
	for len(byID) < n {
		l, err := f.Receive()
		if err != nil {
			t.Fatalf("after %d of %d answers: %v", len(byID), n, err)
		}
		var r replaytest.Reply
		if err := json.Unmarshal(l, &r); err != nil {
			t.Fatalf("not JSON on the wire: %q", l)
		}
		all = append(all, r)
		if r.Method == "" {
			if _, twice := byID[string(r.ID)]; twice {
				t.Fatalf("id %s was answered twice", r.ID)
			}
			byID[string(r.ID)] = r
		}
	}
	return byID, all
}

// TestProgressBeforeAnswers: every progress note comes before the answer of its call, and in order.
func TestProgressBeforeAnswers(t *testing.T) {
	t.Parallel()
	calls := window * leaktest.Rounds(1, 5)
	f := start(t, setup{tools: []tool.Tool{fixtureTool("two_notes", reader, func(_ context.Context, env tool.Env, _ word) (tool.Result, error) {
		env.Progress(1, 2, "first")
		env.Progress(2, 2, "second")
		return tool.Result{Text: "done"}, nil
	})}})
	var all []replaytest.Reply
	for from := 0; from < calls; from += window {
		go func() {
			for i := range window {
				_ = f.Send(replaytest.CallLine(from+i+10, "two_notes", "{}", `"progressToken":`+strconv.Itoa(from+i+10)))
			}
		}()
		_, some := f.collect(t, window)
		all = append(all, some...)
	}
	notes := map[string][]float64{}
	answered := map[string]bool{}
	for _, r := range all {
		if r.Method == "" {
			answered[string(r.ID)] = true
			continue
		}
		var p struct {
			ProgressToken json.RawMessage `json:"progressToken"`
			Progress      float64         `json:"progress"`
		}
		if err := json.Unmarshal(r.Params, &p); err != nil {
			t.Fatal(err)
		}
		token := string(p.ProgressToken)
		if answered[token] {
			t.Fatalf("a note of call %s came after its answer", token)
		}
		if before := notes[token]; len(before) > 0 && before[len(before)-1] >= p.Progress {
			t.Fatalf("progress of call %s does not grow: %v then %v", token, before, p.Progress)
		}
		notes[token] = append(notes[token], p.Progress)
	}
	total := 0
	for i := range calls {
		total += len(notes[strconv.Itoa(i+10)])
	}
	if total != 2*calls {
		t.Errorf("%d of %d notes arrived", total, 2*calls)
	}
}

// TestPipelinedReadAndEdit: an edit that is sent right behind the read that licenses it never runs before it.
func TestPipelinedReadAndEdit(t *testing.T) {
	t.Parallel()
	tries := window / 2 * leaktest.Rounds(1, 4)
	f := start(t, setup{settings: map[string]string{"write.durability": "fast", "permissions.mode": "acceptEdits"}})
	write := func(from int) {
		for i := from; i < from+window/2; i++ {
			path := filepath.Join(f.work, fmt.Sprintf("f%04d.txt", i))
			if err := os.WriteFile(path, []byte("before\n"), 0o644); err != nil {
				t.Error(err)
				return
			}
			read := replaytest.CallLine(2*i+100, "read_file", fmt.Sprintf(`{"file_path":%q}`, path), "")
			edit := replaytest.CallLine(2*i+101, "edit_file", fmt.Sprintf(`{"file_path":%q,"old_string":"before","new_string":"after"}`, path), "")
			if err := f.Send(read + "\n" + edit); err != nil {
				return
			}
		}
	}
	for from := 0; from < tries; from += window / 2 {
		go write(from)
		answers, _ := f.collect(t, window)
		for i := from; i < from+window/2; i++ {
			r := answers[strconv.Itoa(2*i+101)]
			if bytes.Contains(r.Result, []byte(`"isError":true`)) || r.Error != nil {
				t.Fatalf("edit %d: %s", i, r.Result)
			}
		}
	}
}

// TestCallsRunSideBySide: of 12 calls that each wait for nine others, all end: ten run at the same time.
func TestCallsRunSideBySide(t *testing.T) {
	t.Parallel()
	var inside, most atomic.Int64
	ten := make(chan struct{})
	f := start(t, setup{tools: []tool.Tool{fixtureTool("meet", reader, func(ctx context.Context, _ tool.Env, _ word) (tool.Result, error) {
		n := inside.Add(1)
		defer inside.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		if n == 10 {
			close(ten)
		}
		select {
		case <-ten:
			return tool.Result{Text: "met"}, nil
		case <-ctx.Done():
			return tool.Result{}, ctx.Err()
		}
	})}})
	for i := range 12 {
		if err := f.Send(replaytest.CallLine(i+10, "meet", "{}", "")); err != nil {
			t.Fatal(err)
		}
	}
	f.collect(t, 12)
	if most.Load() != 10 {
		t.Errorf("%d calls ran at the same time, want 10", most.Load())
	}
}

// TestEndOfInput: calls in flight when the input ends are answered, also one on a last line without a newline.
func TestEndOfInput(t *testing.T) {
	t.Parallel()
	const calls = 50
	closed := make(chan struct{})
	f := start(t, setup{tools: []tool.Tool{fixtureTool("slow", reader, func(context.Context, tool.Env, word) (tool.Result, error) {
		<-closed // every call ends only after the end of the input
		return tool.Result{Text: "done"}, nil
	})}})
	for i := range calls - 1 {
		if err := f.Send(replaytest.CallLine(i+10, "slow", "{}", "")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := io.WriteString(f.In, replaytest.CallLine(calls+9, "slow", "{}", "")); err != nil {
		t.Fatal(err)
	}
	_ = f.In.Close()
	close(closed)
	answers, _ := f.collect(t, calls)
	for id, r := range answers {
		if r.Error != nil || bytes.Contains(r.Result, []byte("isError")) {
			t.Errorf("id %s: %s", id, r.Result)
		}
	}
	if _, err := f.Receive(); err != io.EOF {
		t.Errorf("after the last answer: %v, want the end", err)
	}
}

// TestRepliesBeforeTheEnd: a bad line is answered also when the input ends right behind it.
func TestRepliesBeforeTheEnd(t *testing.T) {
	t.Parallel()
	for range leaktest.Rounds(20, 200) {
		f := start(t, setup{silent: true})
		if err := f.Send("garbage\n{\"jsonrpc\":\"2.0\",\"id\":1}"); err != nil {
			t.Fatal(err)
		}
		_ = f.In.Close()
		for _, want := range []string{"-32700", `"id":1,`} {
			if l, err := f.Receive(); err != nil || !bytes.Contains(l, []byte(want)) {
				t.Fatalf("got %s (%v), want %s", l, err, want)
			}
		}
	}
}

// TestCancel: a running and a queued call are cancelled: the running one's context ends, the queued one never runs,
// and neither is answered. Their ids are free at once.
func TestCancel(t *testing.T) {
	t.Parallel()
	started, ended := make(chan struct{}), make(chan struct{})
	var ran atomic.Int64
	f := start(t, setup{tools: []tool.Tool{
		fixtureTool("hold", tool.Traits{Private: true, Local: true}, func(ctx context.Context, _ tool.Env, in word) (tool.Result, error) {
			if in.Text == "queued" {
				ran.Add(1)
				return tool.Result{Text: "ran"}, nil
			}
			close(started)
			<-ctx.Done()
			close(ended)
			return tool.Result{}, ctx.Err()
		}),
		fixtureTool("echo", tool.Traits{ReadOnly: true, Ungated: true, Local: true}, func(_ context.Context, _ tool.Env, in word) (tool.Result, error) {
			return tool.Result{Text: in.Text}, nil
		}),
	}})
	send := func(l string) {
		t.Helper()
		if err := f.Send(l); err != nil {
			t.Fatal(err)
		}
	}
	send(replaytest.CallLine(10, "hold", "{}", ""))
	<-started
	send(replaytest.CallLine(11, "hold", `{"text":"queued"}`, ""))
	send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":11}}`)
	send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":10,"reason":"enough"}}`)
	<-ended
	send(replaytest.CallLine(10, "echo", `{"text":"again"}`, ""))
	send(replaytest.CallLine(12, "hold", `{"text":"queued"}`, "")) // the gate is free again
	answers, all := f.collect(t, 2)
	_ = f.In.Close()
	if late, err := f.Receive(); err != io.EOF {
		t.Errorf("a late answer: %s", late)
	}
	if len(all) != 2 || !strings.Contains(string(answers["10"].Result), "again") || answers["12"].Result == nil {
		t.Errorf("got %d lines: %v", len(all), answers)
	}
	if ran.Load() != 1 {
		t.Errorf("the queued call ran %d times, want only the last one", ran.Load())
	}
}

// TestCancelUnread: a client that does not read its answers can still cancel, and the connection still ends.
func TestCancelUnread(t *testing.T) {
	t.Parallel()
	begun, ended := make(chan struct{}), make(chan struct{})
	inR, inW := io.Pipe()
	outR, outW := io.Pipe() // without a reader
	f := start(t, setup{tools: []tool.Tool{fixtureTool("hold", reader, func(ctx context.Context, _ tool.Env, _ word) (tool.Result, error) {
		close(begun)
		<-ctx.Done()
		close(ended)
		return tool.Result{}, ctx.Err()
	})}})
	done := make(chan error, 1)
	go func() { done <- f.server.Stdio(context.Background(), inR, outW) }()
	write := func(l string) {
		t.Helper()
		if _, err := io.WriteString(inW, l+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	write("garbage")
	write(replaytest.CallLine(2, "hold", "{}", ""))
	<-begun
	for range 100 {
		write("more garbage")
	}
	write(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
	<-ended
	_ = inW.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
	_ = outR.Close()
}

// TestLargeArgument: a write of 20 MB works, and a line over the limit is refused while the connection goes on.
func TestLargeArgument(t *testing.T) {
	t.Parallel()
	f := start(t, setup{settings: map[string]string{"permissions.mode": "acceptEdits"}})
	content := strings.Repeat("0123456789abcde\n", 20_000_000/16)
	path := filepath.Join(f.work, "large.txt")
	go func() {
		_ = f.Send(replaytest.CallLine(10, "write_file", fmt.Sprintf(`{"file_path":%q,"content":%q}`, path, content), ""))
		_ = f.Send(replaytest.CallLine(11, "write_file", fmt.Sprintf(`{"file_path":%q,"content":%q}`, path, strings.Repeat("x", 40<<20)), ""))
		_ = f.Send(`{"jsonrpc":"2.0","id":12,"method":"ping"}`)
	}()
	answers, _ := f.collect(t, 3)
	if r := answers["10"]; r.Error != nil || bytes.Contains(r.Result, []byte("isError")) {
		t.Errorf("20 MB: %.300s", r.Result)
	}
	if e := answers["11"].Error; e == nil || e.Code != -32600 || e.Message != "message exceeds 33554432 bytes" {
		t.Errorf("40 MiB: %+v", e)
	}
	if answers["12"].Result == nil {
		t.Error("the connection did not go on")
	}
	b, err := os.ReadFile(path)
	if err != nil || string(b) != content {
		t.Errorf("the file has %d bytes (%v), want %d", len(b), err, len(content))
	}
}

// TestPanic: a tool that panics is answered with a reference, its text stays inside, and the server lives.
func TestPanic(t *testing.T) {
	t.Parallel()
	f := start(t, setup{tools: []tool.Tool{fixtureTool("boom", tool.Traits{Private: true}, func(_ context.Context, _ tool.Env, in word) (tool.Result, error) {
		if in.Text == "boom" {
			panic("secret words")
		}
		return tool.Result{Text: "fine"}, nil
	})}})
	if err := f.Send(replaytest.CallLine(10, "boom", `{"text":"boom"}`, "") + "\n" + replaytest.CallLine(11, "boom", "{}", "")); err != nil {
		t.Fatal(err)
	}
	answers, _ := f.collect(t, 2)
	e := answers["10"].Error
	if e == nil || e.Code != -32603 || !strings.HasPrefix(e.Message, "internal error (ref ") || strings.Contains(e.Message, "secret") {
		t.Errorf("got %+v", e)
	}
	if !bytes.Contains(answers["11"].Result, []byte("fine")) {
		t.Errorf("the next call: %s", answers["11"].Result)
	}
}

// TestDuplicateID: a request whose id is in flight is refused, and the first one goes on.
func TestDuplicateID(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	f := start(t, setup{tools: []tool.Tool{fixtureTool("wait", reader, func(context.Context, tool.Env, word) (tool.Result, error) {
		<-release
		return tool.Result{Text: "done"}, nil
	})}})
	if err := f.Send(replaytest.CallLine(10, "wait", "{}", "") + "\n" + replaytest.CallLine(10, "wait", "{}", "")); err != nil {
		t.Fatal(err)
	}
	l, err := f.Receive()
	if err != nil || !bytes.Contains(l, []byte("request id already in use")) {
		t.Fatalf("got %s %v", l, err)
	}
	close(release)
	if l, err = f.Receive(); err != nil || !bytes.Contains(l, []byte("done")) {
		t.Fatalf("got %s %v", l, err)
	}
}

// TestWriter: large results of parallel calls and notifications between them never mix. Each call has a session of its
// own, since those of one share a limit.
func TestWriter(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("<&>", 50_000)
	f := start(t, setup{tools: []tool.Tool{tool.Define(tool.Def[word]{
		Spec: tool.Spec{Name: "big", Title: "big", Description: "A tool of the tests.", Hint: "a tool of tests", MaxRunes: tool.Unbounded, Traits: reader},
		Run: func(_ context.Context, env tool.Env, _ word) (tool.Result, error) {
			env.Progress(1, 0, "half")
			return tool.Result{Text: big}, nil
		},
	})}})
	go func() {
		for i := range 20 {
			_ = f.Send(replaytest.CallLine(i+10, "big", "{}", fmt.Sprintf(`"progressToken":"t%d","codehand/session":"writer-%03d"`, i, i)))
		}
	}()
	answers, _ := f.collect(t, 20)
	for id, r := range answers {
		if len(r.Result) < len(big) || len(r.Result) > len(big)+1000 {
			t.Errorf("id %s has %d bytes: escaped or cut", id, len(r.Result))
		}
	}
}

// TestResultTooLarge: an answer that does not fit the wire is an error result, not a broken connection.
func TestResultTooLarge(t *testing.T) {
	t.Parallel()
	f := start(t, setup{tools: []tool.Tool{tool.Define(tool.Def[word]{
		Spec: tool.Spec{Name: "huge", Title: "huge", Description: "A tool of the tests.", Hint: "a tool of tests", MaxRunes: tool.Unbounded, Traits: reader},
		Run: func(context.Context, tool.Env, word) (tool.Result, error) {
			return tool.Result{Media: []tool.Media{{MIME: "image/png", Data: make([]byte, 7<<20)}}}, nil // texts are cut long before
		},
	})}})
	if err := f.Send(replaytest.CallLine(10, "huge", "{}", "")); err != nil {
		t.Fatal(err)
	}
	answers, _ := f.collect(t, 1)
	if !bytes.Contains(answers["10"].Result, []byte("RESULT_TOO_LARGE")) {
		t.Errorf("got %.200s", answers["10"].Result)
	}
}

// TestTwoSessionsEditOneFile: 40 parallel edits of one file from two sessions: what was acknowledged is there, once.
func TestTwoSessionsEditOneFile(t *testing.T) {
	t.Parallel()
	f := start(t, setup{settings: map[string]string{"permissions.mode": "acceptEdits"}})
	path := filepath.Join(f.work, "shared.txt")
	var text strings.Builder
	for i := range 40 {
		fmt.Fprintf(&text, "line %02d\n", i)
	}
	if err := os.WriteFile(path, []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	session := func(i int) string { return fmt.Sprintf(`"codehand/session":"conversation-%d"`, i%2) }
	pending := map[string]int{} // raw id to line
	var mu sync.Mutex
	id := 100
	edit := func(i int) string {
		mu.Lock()
		defer mu.Unlock()
		id++
		pending[strconv.Itoa(id)] = i
		return replaytest.CallLine(id, "edit_file", fmt.Sprintf(`{"file_path":%q,"old_string":"line %02d","new_string":"done %02d"}`, path, i, i), session(i))
	}
	var lines []string
	for i := range 2 {
		lines = append(lines, replaytest.CallLine(10+i, "read_file", fmt.Sprintf(`{"file_path":%q}`, path), session(i)))
	}
	if err := f.Send(strings.Join(lines, "\n")); err != nil {
		t.Fatal(err)
	}
	f.collect(t, 2)
	go func() {
		for i := range 40 {
			_ = f.Send(edit(i))
		}
	}()
	acknowledged, refused := 0, 0
	for acknowledged < 40 {
		l, err := f.Receive()
		if err != nil {
			t.Fatal(err)
		}
		var r replaytest.Reply
		if err := json.Unmarshal(l, &r); err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		i := pending[string(r.ID)]
		mu.Unlock()
		if !bytes.Contains(r.Result, []byte(`"isError":true`)) {
			acknowledged++
			continue
		}
		if !bytes.Contains(r.Result, []byte("FILE_CHANGED")) {
			t.Fatalf("edit %d: %s", i, r.Result)
		}
		// The refusal showed what changed, so the same call can be made again at once.
		if refused++; refused > 2000 {
			t.Fatal("the edits do not come to an end")
		}
		again := edit(i)
		go func() { _ = f.Send(again) }()
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(b), "done "); n != 40 || strings.Count(string(b), "\n") != 40 {
		t.Errorf("%d of 40 acknowledged edits are in the file:\n%s", n, b)
	}
	t.Logf("%d edits were refused as stale and repeated", refused)
}

// TestListIsConstant: the tools of tools/list have the same bytes in every process and in both eras.
func TestListIsConstant(t *testing.T) {
	t.Parallel()
	var lists []string
	for _, modern := range []bool{false, true, false, true} {
		f := start(t, setup{modern: modern})
		for range 2 {
			r, err := f.Request("tools/list", nil)
			if err != nil {
				t.Fatal(err)
			}
			var result struct {
				Tools json.RawMessage `json:"tools"`
			}
			if err := json.Unmarshal(r.Result, &result); err != nil || len(result.Tools) < 1000 {
				t.Fatalf("%v: %s", err, r.Result)
			}
			lists = append(lists, string(result.Tools))
		}
	}
	for _, l := range lists[1:] {
		if l != lists[0] {
			t.Fatalf("two lists differ:\n%s\n%s", lists[0], l)
		}
	}
}
