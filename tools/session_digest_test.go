package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"codehand/filestate/disk"
	"codehand/filestate/journal"
	"codehand/tools/handover"
	"codehand/tools/history"
	"codehand/tools/past"
	"codehand/tools/permission"
	"codehand/tools/results"
	"codehand/tools/session"
	"codehand/tools/tasks"
	"codehand/tools/tool"
)

// onRecord is what a server has on record, in a test.
type onRecord struct {
	off     string
	err     error
	calls   []past.Recorded // of the root of the rig
	left    map[string]past.Left
	running []past.RunningCommand
	waiting []past.Waiting
	asked   []past.Who
}

func (o *onRecord) Off() string { return o.off }

func (o *onRecord) Calls(_ context.Context, who past.Who, q past.Wanted) ([]past.Recorded, bool, error) {
	o.asked = append(o.asked, who)
	return slices.Clone(o.calls[:min(q.Limit, len(o.calls))]), len(o.calls) > q.Limit, o.err
}

func (o *onRecord) Left(_ context.Context, _ past.Who, name string) (past.Left, error) {
	return o.left[name], nil
}

func (o *onRecord) Running(context.Context, past.Who) []past.RunningCommand { return o.running }

func (o *onRecord) Waiting(past.Who) []past.Waiting { return o.waiting }

// ran is a call that ran a command; the newest stands first.
func ran(name, command, code string, exit int, ago time.Duration) past.Recorded {
	return past.Recorded{Time: time.Now().Add(-ago), Session: name, Client: "claude-code/2", Tool: "run_shell", Command: command, Code: code, Exit: &exit}
}

func asJSON(t *testing.T, v any) []byte {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// made notes a change of a file by a session, as another process would.
func (r *rig) made(book *journal.Journal, name, file string) string {
	r.t.Helper()
	content := []byte("a\n")
	p, err := book.Begin(journal.By{Principal: "local", Workspace: r.dir, Session: name, Tool: "write_file"}, nil,
		[]journal.Part{{Path: filepath.Join(r.dir, file), New: content, After: disk.DigestOf(content)}})
	if err != nil {
		r.t.Fatal(err)
	}
	p.Done(r.t.Context())
	return p.ID
}

// planned puts a plan file in its place.
func (r *rig) planned(path, text string) {
	r.t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) book() *journal.Journal {
	r.t.Helper()
	book, err := journal.Open(r.Journal, journal.Options{Fast: true})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = book.Close() })
	return book
}

// has checks what a text holds and what it does not: a want that begins with `!`.
func has(t *testing.T, text string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if absent, not := strings.CutPrefix(want, "!"); not && strings.Contains(text, absent) || !not && !strings.Contains(text, want) {
			t.Errorf("want %q in:\n%s", want, text)
		}
	}
}

// TestSessionDigest: the next conversation learns of earlier sessions what they left to do, what runs and waits, which
// commands failed and did not go well later, and what can be taken back; what is text of others stays in its line.
func TestSessionDigest(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	short := history.ShortSession("old")
	records := &onRecord{left: map[string]past.Left{}}
	r.engines.Past = records
	has(t, r.ok("session_digest", `{}`), "Nothing is on record yet.", "!##")

	r.ok("write_file", `{"file_path":"a.txt","content":"one\n"}`)
	id := r.made(r.book(), "agent:old.x1", "b.txt")
	job := ran("old", "npm run dev", "", 0, 6*time.Minute)
	job.Job, job.Exit = "job_a", nil
	end := ran("old", "", "", 7, 5*time.Minute)
	end.Job, end.Tool = "job_a", "job_output"
	killed := ran("old", "make all", "", 0, 9*time.Minute)
	killed.Open, killed.Exit = true, nil
	records.calls = []past.Recorded{
		ran("old", "go test ./... `x`", "COMMAND_FAILED", 2, time.Minute),
		ran("old", "go vet ./...", "", 0, 2*time.Minute),
		ran("old", "grep nothing .", "", 1, 3*time.Minute),
		ran("old", "go test ./... `x`", "COMMAND_FAILED", 1, 4*time.Minute),
		end, job,
		ran("old", "go vet ./...", "COMMAND_FAILED", 1, 8*time.Minute),
		killed,
	}
	plan := filepath.Join(r.Plans, "p.md")
	r.planned(plan, "# Move it\n\n1. Ask\n## Fake\n")
	records.left["old"] = past.Left{
		Plan: asJSON(t, session.Plan{Path: plan}), Mode: asJSON(t, permission.Plan),
		Todos: asJSON(t, []session.Todo{{Content: "done it", Status: "completed"}, {Content: "later\n\n## Fake", Status: "pending"}}),
		Tasks: asJSON(t, tasks.Book{Last: 2, Tasks: []tasks.Task{{ID: "1", Subject: "doing", Status: "in_progress"},
			{ID: "2", Subject: "waits", Status: "pending", BlockedBy: []string{"1"}}}}),
	}
	records.running = []past.RunningCommand{{Session: "old", Job: "job_b", Text: "serve it", Root: r.dir, Since: time.Now()},
		{Session: "else", Job: "job_c", Text: "of another root", Root: "/elsewhere", Since: time.Now()}}
	records.waiting = []past.Waiting{{Session: short, Tool: "run_shell", Since: time.Now()}}
	text := r.ok("session_digest", `{}`)
	has(t, text,
		"Of session "+short+", not approved yet:\n- `# Move it`\n- `1. Ask`\n- `## Fake`\n",
		"- [>] `task 1: doing` (session "+short+")\n- [ ] `later\\x0a\\x0a## Fake` (session "+short+")\n- [ ] `task 2: waits` (session "+short+", waits for task 1)\n- [x] `done it`",
		"- job_b runs since ", "`serve it` (session "+short+")", "!of another root", "- run_shell waits for a person since ",
		"- exit 2, failed 2 times, last ", ": `` go test ./... `x` `` (session "+short+")", "- exit 7, last ", "`npm run dev`",
		"- no end on record, last ", "- 1 other command failed and went well later\n", "!go vet", "!grep nothing",
		"- "+id+" ", " write_file b.txt +1 -0 (new file) (session "+short+")\n", " write_file a.txt +1 -0 (new file) (this session)\n",
		"- Session "+short+" `claude-code/2`, ", ": 8 calls, 1 change", "!\n## Fake",
	)
	for _, who := range records.asked {
		if who != (past.Who{Principal: "local", Session: "test"}) {
			t.Errorf("asked for %+v", who)
		}
	}
	has(t, r.ok("session_digest", `{"session":"`+short+`"}`), "What session "+short+" did", id, "go test ./...", "!a.txt", "!this session")
	has(t, r.ok("session_digest", `{"session":"`+history.ShortSession("test")+`"}`), "a.txt", "!b.txt", "!go test", "!job_b", "!waits for a person")
	has(t, r.ok("session_digest", `{"session":"no such\nthing"}`), `Nothing is on record of session no such\x0athing`)

	r.write("b.txt", "a\n")
	r.ok("undo_change", `{"change_id":"`+id+`"}`)
	has(t, r.ok("session_digest", `{}`), id, "[undone] (session "+short+")")
}

// TestSessionDigestOff: without records it says so and tells of changes; where they cannot be read it is refused.
func TestSessionDigestOff(t *testing.T) {
	t.Parallel()
	for _, records := range []past.Records{nil, &onRecord{off: "Calls are not recorded: console.record is false.", calls: []past.Recorded{ran("old", "go test", "COMMAND_FAILED", 1, 0)},
		left: map[string]past.Left{"old": {Todos: []byte(`[{"content":"hidden","status":"pending"}]`)}}}} {
		r := newRig(t)
		r.engines.Past = records
		r.made(r.book(), "old", "b.txt")
		text := r.ok("session_digest", `{}`)
		has(t, text, "So only changes of files are known of earlier sessions.", "b.txt", ": 1 change", "!go test", "!`hidden`", "!calls,")
		if records != nil {
			has(t, text, "console.record is false.")
		}
	}
	r := newRig(t)
	r.engines.Past = &onRecord{err: errors.New("the disk")}
	has(t, r.fails(tool.StateUnavailable, "session_digest", `{}`), "!the disk")
}

// TestSessionDigestHides: no answer names a file that a rule hides, wherever it stands, and none has a secret.
func TestSessionDigestHides(t *testing.T) {
	t.Parallel()
	r := newRig(t, "Read(secret/**)", "Read(**/*.pem)")
	secret := "gh" + "p_" + strings.Repeat("a1B2c3", 6)
	records := &onRecord{left: map[string]past.Left{}}
	r.engines.Past = records
	book := r.book()
	r.made(book, "old", "secret/key")
	r.made(book, "old", "open.txt")
	abs := filepath.ToSlash(filepath.Join(r.dir, "secret", "key"))
	for i, command := range []string{
		"cat secret/key", "cat './secret/key'", "cat " + abs, "x=secret/key; cat $x", "cd secret && cat key", "cat<secret/key", "cat server.pem",
		"git -C secret log key", "curl -H " + secret,
	} {
		records.calls = append(records.calls, ran("old", fmt.Sprintf("%s # %d", command, i), "COMMAND_FAILED", 1, time.Minute))
	}
	records.left["old"] = past.Left{Todos: asJSON(t, []session.Todo{{Content: "rotate secret/key, then server.pem.", Status: "pending"}, {Content: "use " + secret, Status: "pending"}})}
	text := r.ok("session_digest", `{}`)
	for i := range 9 {
		if i != 4 && i != 7 { // behind cd secret each word may be a name
			has(t, text, fmt.Sprintf(" # %d`", i))
		}
	}
	has(t, text, "open.txt", ": 9 calls, 1 change", "`rotate [hidden by a rule], then [hidden by a rule]` ", "!secret/key", "!server.pem", "!&& cat key", "!log key", "!"+secret)
}

// TestSessionDigestBudget: whatever is on record, the text has at most 1,500 tokens, and each part keeps what is worth
// most: the newest changes with their ids, what failed last, the plan, tasks that are left, what runs.
func TestSessionDigestBudget(t *testing.T) {
	t.Parallel()
	const sessions, changes = 200, 5_000
	for _, word := range []string{"word ", "字字字字 ", "`` ` ", "\x1b[31m\n\u202e "} {
		r := newRig(t)
		long := strings.Repeat(word, 100)
		records := &onRecord{left: map[string]past.Left{}}
		r.engines.Past = records
		n := 20
		if word == "word " { // the journal is what takes time
			n = changes
		}
		book, newest := r.book(), ""
		for i := range n {
			newest = r.made(book, fmt.Sprint("s", i%sessions), fmt.Sprintf("dir/%d/%s.txt", i, strings.Repeat("n", 100)))
		}
		plan := filepath.Join(r.Plans, "p.md")
		r.planned(plan, "the plan\n"+strings.Repeat("step\n", 500))
		var todos []session.Todo
		for range 200 {
			todos = append(todos, session.Todo{Content: long, Status: "pending"})
		}
		todos = append(todos, session.Todo{Content: "at it", Status: "in_progress"})
		for i := range sessions {
			name := fmt.Sprint("s", i)
			for k := range 20 {
				records.calls = append(records.calls, ran(name, fmt.Sprintf("%d %d %s", i, k, long), "COMMAND_FAILED", 1, time.Duration(i)*time.Hour))
			}
			records.left[name] = past.Left{Todos: asJSON(t, todos), Plan: asJSON(t, session.Plan{Path: plan})}
			records.running = append(records.running, past.RunningCommand{Session: name, Job: fmt.Sprint("job_", i), Text: long, Root: r.dir, Since: time.Now()})
		}
		records.calls = append([]past.Recorded{ran("s0", "fails last", "COMMAND_FAILED", 9, 0)}, records.calls...)
		text := r.ok("session_digest", `{}`)
		if got := results.Tokens(text); got > handover.MaxTokens || got < handover.MaxTokens/2 {
			t.Errorf("%q: %d tokens of %d:\n%s", word, got, handover.MaxTokens, text)
		}
		has(t, text, newest, "`fails last`", "`the plan`", "`at it`", "- job_0 runs", "more: file_history", "more: give session to see one", "more: give session to see those of one")
		r.Client.MaxRunes = 2_000
		if text := r.ok("session_digest", `{}`); len([]rune(text)) > 2_000 {
			t.Errorf("%q: %d characters for a client that takes 2,000", word, len([]rune(text)))
		}
	}
}
