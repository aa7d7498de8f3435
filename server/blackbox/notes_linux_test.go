package blackbox

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
)

var update = flag.Bool("update", false, "rewrite the progress notes of testdata/notes.txt")

// notedCalls are real calls. While the file held is there, the commands that look for it run; it is removed when a note has
// come that holds until, if that says something.
var notedCalls = []struct{ tool, args, until string }{
	{"write_file", `{"file_path":"sub/b.txt","content":"one\n"}`, ""},
	{"read_file", `{"file_path":"sub/b.txt"}`, ""},
	{"edit_file", `{"file_path":"sub/b.txt","old_string":"one","new_string":"two"}`, ""},
	{"multi_edit", `{"edits":[{"file_path":"sub/b.txt","old_string":"two","new_string":"three"}]}`, ""},
	{"list_files", `{"pattern":"**/*.txt"}`, ""},
	{"grep_search", `{"pattern":"thr.e"}`, ""},
	{"file_history", `{}`, ""},
	{"undo_change", `{"file_path":"sub/b.txt"}`, ""},
	{"run_readonly", `{"command":"wc -l sub/b.txt"}`, ""},
	{"run_shell", `{"command":"printf 'one\\ntwo\\n'; echo bad >&2; exit 3","description":"Fail loudly"}`, ""},
	{"run_shell", `{"command":"true"}`, ""},
	{"run_shell", `{"command":"while [ -e held ]; do sleep 0.02; done"}`, "no output yet"},
	{"run_shell", `{"command":"printf 'begun\\n\\n'; while [ -e held ]; do sleep 0.02; done; printf 'the end'; printf 'and more\\n' >&2"}`, "no output for"},
	{"run_shell", `{"command":"while [ -e held ]; do sleep 0.02; done","run_in_background":true}`, ""},
	{"job_list", `{}`, ""},
	{"job_output", `{"job_id":"$JOB","block":true}`, "no output yet"},
	{"job_stop", `{"job_id":"$JOB"}`, ""},
	{"skill", `{"skill":"greet"}`, ""},
	{"tool_search", `{"query":"keep a todo list"}`, ""},
	{"call_tool", `{"name":"todo_write","arguments":{"todos":[]}}`, ""},
	{"read_file", `{"file_path":"missing\u001b[31m\u202e.txt"}`, ""},
}

// TestNotes: the first note of each call says what it does, with its pattern, file or command; what follows is words and
// whole numbers, and the last one has the last lines that a command printed. It is the same in both eras and on every
// transport. Heartbeats have their forms; how many come depends on the machine.
func TestNotes(t *testing.T) {
	t.Parallel()
	golden := filepath.Join(replaytest.Root(t), "testdata", "notes.txt")
	want, err := os.ReadFile(golden)
	if err != nil && !*update {
		t.Fatal(err)
	}
	for i, k := range leaktest.Some(3, []wireKind{{"stdio", "legacy"}, {"stdio", "modern"}, {"http", "legacy"}, {"http", "modern"}, {"sse", "legacy"}}) {
		t.Run(k.transport+"/"+k.era, func(t *testing.T) {
			t.Parallel()
			got := notesOf(t, k)
			if *update && i == 0 {
				must(t, os.WriteFile(golden, []byte(got), 0o644))
				return
			}
			if !*update && got != string(want) {
				t.Errorf("got:\n%s\nwant:\n%s\nIf the new notes are right: go test ./server/blackbox -run TestNotes -update, and read the diff.", got, want)
			}
		})
	}
}

// A heartbeat begins with a time. beatForms has what it shows: the last lines so far, or the note before.
var (
	isBeat    = regexp.MustCompile(`^(N s\b|still running\b)`)
	beatForms = regexp.MustCompile(`^(?:N s, no output yet|N s(?:, no output for N s)?: (.+)|still running, N s: (.+))$`)
)

// badBeat says what is wrong with a heartbeat; "": nothing. args are those of its call, which have what a command
// prints, and notes the other notes of the call.
func badBeat(beat, args string, notes []string) string {
	m := beatForms.FindStringSubmatch(beat)
	if m == nil {
		return "no known form"
	}
	if m[2] != "" && !slices.Contains(notes, m[2]) {
		return "repeats what was not said"
	}
	for line := range strings.SplitSeq(m[1], " | ") {
		line = strings.TrimPrefix(line, "stderr: ")
		if !strings.Contains(args, line) && !strings.Contains(strings.Join(notes, "\n"), line) {
			return "shows what was not printed"
		}
	}
	return ""
}

// notesOf makes the calls and returns what their clients are told, without heartbeats.
func notesOf(t *testing.T, k wireKind) string {
	work, c, begin := noting(t, k)
	replaytest.Lay(t, work, map[string]string{".claude/skills/greet/SKILL.md": "---\nname: greet\ndescription: Says hello.\n---\nSay hello.\n"})
	held := filepath.Join(work, "held")
	t.Cleanup(func() { _ = os.Remove(held) }) // it may be gone
	job := ""
	var all strings.Builder
	for _, call := range notedCalls {
		if _, err := os.Stat(held); err != nil {
			replaytest.WriteFile(t, held, nil)
		}
		fmt.Fprintf(&all, "> %s %s\n", call.tool, call.args)
		next := begin(c.CallBody("7", call.tool, strings.ReplaceAll(call.args, "$JOB", job), noted))
		last := -1.0
		var told, beats []string
		for {
			message := next()
			var m struct {
				Method string
				ID     any
				Params struct {
					ProgressToken   string
					Progress, Total float64
					Message         string
				}
			}
			must(t, json.Unmarshal([]byte(message), &m))
			if m.Method == "" {
				if id := replaytest.JobID.FindString(message); job == "" {
					job = id
				}
				break
			}
			if m.Method != "notifications/progress" {
				continue // the end of a job, for clients that listen
			}
			p := m.Params
			if p.Progress <= last || p.Progress != math.Trunc(p.Progress) || p.Total != math.Trunc(p.Total) || p.ProgressToken != "p" {
				t.Errorf("%s: a note after %v: %s", call.tool, last, message)
			}
			last = p.Progress
			note := secondsIn.ReplaceAllString(p.Message, "N s")
			if job != "" {
				note = strings.ReplaceAll(note, job, "$JOB")
			}
			if strings.HasPrefix(note, "Validating ") || strings.HasPrefix(note, "Applying ") {
				continue // on a slow machine
			}
			if !isBeat.MatchString(note) {
				all.WriteString(note + "\n")
				told = append(told, note)
				continue
			}
			beats = append(beats, note)
			if call.until != "" && strings.Contains(note, call.until) {
				_ = os.Remove(held) // the first such note has done it
			}
		}
		for i, beat := range beats {
			others := slices.Concat(told, beats[:i], beats[i+1:])
			if why := badBeat(beat, call.args, others); why != "" {
				t.Errorf("%s %s: the heartbeat %q, besides %q: %s", call.tool, call.args, beat, others, why)
			}
		}
		all.WriteByte('\n')
	}
	return all.String()
}

// secondsIn finds times.
var secondsIn = regexp.MustCompile(`\b[0-9,]+ s\b`)

// noting begins a conversation in a workspace. begin makes a call, and next returns what comes then.
func noting(t *testing.T, k wireKind) (work string, c *replaytest.HTTPClient, begin func(body string) (next func() string)) {
	t.Helper()
	if k.transport != "stdio" {
		d := deploy(t)
		x := d.talk(d.serve().url, over(t, d.address, nil), k)
		return d.work, x.HTTPClient, func(body string) func() string {
			a := x.start(body)
			return func() string {
				message := a.must()
				if replaytest.MethodOf(message) == "" && x.to == "" {
					_, _ = a.next() // the end, so that the connection is used again
				}
				return message
			}
		}
	}
	work = leaktest.Dir(t)
	modern := k.era == "modern"
	p := replaytest.Spawn(t, replaytest.Program(t), work, "notes", modern, nil)
	return work, &replaytest.HTTPClient{T: t, Modern: modern}, func(body string) func() string {
		must(t, p.Send(body))
		return func() string {
			line, err := p.Receive()
			must(t, err)
			return string(line)
		}
	}
}
