package tools

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"codehand/filestate"
	"codehand/filestate/journal"
	"codehand/tools/permission"
	"codehand/tools/tool"
)

func TestFileHistory(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.ok("write_file", `{"file_path":"src/a","content":"one\n"}`)
	made := r.lastChange("src/a")
	r.ok("edit_file", `{"file_path":"src/a","old_string":"one","new_string":"two"}`)
	edited := r.lastChange("src/a")
	r.ok("write_file", `{"file_path":"b","content":"b\n"}`)
	r.ok("undo_change", `{"file_path":"src/a"}`)
	undone := r.lastChange("src/a")
	want := strings.Join([]string{
		undone + " " + r.clock(undone) + " undo_change src/a +1 -1 [takes back " + edited + "]",
		edited + " " + r.clock(edited) + " edit_file src/a +1 -1 [undone]",
		made + " " + r.clock(made) + " write_file src/a +1 -0 (new file)",
	}, "\n")
	same(t, r.ok("file_history", `{"file_path":"src/a"}`), want)
	same(t, r.ok("file_history", `{"file_path":"src"}`), want)
	lines := strings.Split(want, "\n")
	same(t, r.ok("file_history", `{"file_path":"src","limit":1}`), lines[0]+"\n(Showing the newest 1. For older ones raise limit.)")
	same(t, r.ok("file_history", `{"change_id":"`+edited+`"}`), lines[1]+"\n@@ -1 +1 @@\n-one\n+two")
	same(t, r.ok("file_history", `{"file_path":"none"}`), "No changes by these tools are recorded for $WORK/none.")
	// What is refused is no advice: limit ends at 200.
	for i := range 201 {
		r.ok("write_file", fmt.Sprintf(`{"file_path":"many","content":"%d\n"}`, i))
	}
	for input, want := range map[string]string{`{"limit":200}`: "give a path.)", `{"file_path":"many","limit":200}`: "run codehand history --json.)"} {
		if text := r.ok("file_history", input); !strings.HasSuffix(text, "\n(Showing the newest 200. For older ones "+want) {
			t.Errorf("%s ends with %s", input, text[max(0, len(text)-100):])
		}
	}
	// A page behind a change that was tidied away is not the end of the list.
	r.fails(tool.ChangeUnknown, "file_history", `{"format":"json","before":"zzzzzzzzzzzzzzzz"}`)
	same(t, r.ok("file_history", `{"file_path":"none","format":"json","among":1}`), `{"changes":[],"more":true}`)
	same(t, r.ok("file_history", `{"file_path":"none","format":"json","among":1000}`), `{"changes":[],"more":false}`)
}

// A journal that cannot be read says nothing of what is in it: no change is unknown then, and nothing was never changed.
func TestJournalUnreadable(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.ok("write_file", `{"file_path":"a","content":"one\n"}`)
	id := r.lastChange("a")
	days, err := filepath.Glob(filepath.Join(r.Journal, "????????"))
	if err != nil || len(days) != 1 {
		t.Fatalf("days %q, %v", days, err)
	}
	away := filepath.Join(filepath.Dir(r.Journal), "away")
	if err := os.Rename(days[0], away); err != nil {
		t.Fatal(err)
	}
	r.fails(tool.ChangeUnknown, "undo_change", `{"change_id":"`+id+`"}`) // it is gone, as far as a caller can see
	// a link to itself, which even root cannot open
	if err := os.Symlink(filepath.Base(days[0]), days[0]); err != nil {
		t.Fatal(err)
	}
	for _, c := range [][2]string{
		{"undo_change", `{"change_id":"` + id + `"}`},
		{"undo_change", `{"file_path":"a"}`},
		{"undo_change", `{"file_path":"a","dry_run":true}`},
		{"file_history", `{"change_id":"` + id + `"}`},
		{"file_history", `{"file_path":"a"}`},
		{"file_history", `{}`},
		{"file_history", `{"format":"json","before":"` + id + `"}`},
	} {
		text := r.fails(tool.StateUnavailable, c[0], c[1])
		if !strings.HasSuffix(text, " cannot be read from the journal: too many levels of symbolic links. Nothing was written. Try again, or tell the user.") {
			t.Errorf("%s %s: %s", c[0], c[1], text)
		}
	}
	if err := errors.Join(os.Remove(days[0]), os.Rename(away, days[0])); err != nil {
		t.Fatal(err)
	}
	r.ok("undo_change", `{"change_id":"`+id+`"}`)
}

// An undo by path once took back an older change when the newest could not be read, and the list lacked that without a word.
func TestJournalReadInPart(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.ok("write_file", `{"file_path":"a","content":"one\n"}`)
	id := r.lastChange("a")
	stray := filepath.Join(r.Journal, "20990101")
	if err := os.WriteFile(stray, nil, 0o600); err != nil { // which holds no change
		t.Fatal(err)
	}
	whole := r.ok("file_history", `{"file_path":"a"}`)
	r.fails(tool.ChangeUnknown, "file_history", `{"change_id":"zzzzzzzzzzzzzzzz"}`)
	if err := os.Remove(stray); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("20990101", stray); err != nil { // a link to itself, which even root cannot open
		t.Fatal(err)
	}
	same(t, r.ok("file_history", `{"file_path":"a"}`),
		whole+"\n(There may be other changes: a part of the journal cannot be read: too many levels of symbolic links.)")
	r.fails(tool.StateUnavailable, "file_history", `{"file_path":"a","format":"json"}`)
	r.fails(tool.StateUnavailable, "undo_change", `{"file_path":"a"}`)
	r.ok("file_history", `{"change_id":"`+id+`"}`)
	r.ok("undo_change", `{"change_id":"`+id+`"}`)
}

func TestFileHistoryOfAll(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, name := range []string{"a", "b", "c", "d"} {
		r.ok("write_file", `{"file_path":"`+name+`","content":"one\n"}`)
	}
	if text := r.ok("file_history", `{}`); strings.Count(text, "\n") != 3 {
		t.Errorf("all changes are:\n%s", text)
	}
	r.fails(tool.ChangeUnknown, "file_history", `{"change_id":"zzzzzzzzzzzzzzzz"}`)
}

// Paths that the session may not read are left out, and a change of nothing else is as unknown as none.
func TestFileHistoryLeavesOut(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.ok("multi_edit", `{"edits":[{"file_path":"a","old_string":"","new_string":"a\n"},{"file_path":"secret/b","old_string":"","new_string":"hidden\n"},{"file_path":".env","old_string":"","new_string":"KEY=1\n"}]}`)
	both := r.lastChange("a")
	r.ok("write_file", `{"file_path":"secret/c","content":"hidden\n"}`)
	only := r.lastChange("secret/c")
	policy, err := permission.New(permission.Options{Deny: []permission.Rule{{Text: "Read(secret/**)", Origin: "test", Dir: r.dir}}})
	if err != nil {
		t.Fatal(err)
	}
	r.Rules = policy.At([]string{r.dir}, r.dir)
	for _, text := range []string{r.ok("file_history", `{}`), r.ok("file_history", `{"change_id":"`+both+`"}`), r.ok("file_history", `{"format":"json"}`)} {
		for _, word := range []string{"secret", "hidden", ".env", "KEY", only} {
			if strings.Contains(text, word) {
				t.Errorf("%q is in:\n%s", word, text)
			}
		}
		if !strings.Contains(text, both) {
			t.Errorf("the change itself is not in:\n%s", text)
		}
	}
	r.fails(tool.ChangeUnknown, "file_history", `{"change_id":"`+only+`"}`)
	// What a person was asked about is shown: the pipeline asks for the file that is named.
	if text := r.ok("file_history", `{"file_path":".env"}`); !strings.Contains(text, ".env +1 -0 (new file)") {
		t.Errorf("the history of the file is:\n%s", text)
	}
}

// What another program saved in the moment of a change is in no file: it is listed and shown whole, and can be written
// back byte for byte, whatever its encoding. What was written over is a change like any other.
func TestFileHistoryKept(t *testing.T) {
	t.Parallel()
	const back = "To write it to the file, byte for byte, use undo_change with change_id $ID."
	for name, c := range map[string]struct{ saved, shown string }{
		"ASCII":   {"of an editor\n", "This content (UTF-8) was kept because no file held it. " + back + "\nof an editor"},
		"Latin-1": {"gr\xfc\xdf dich\r\n", "This content (UTF-8, 2 bytes are not text, CRLF) was kept because no file held it. " + back + "\ngr\ufffd\ufffd dich"},
		"UTF-16":  {"\xff\xfeo\x00f\x00\n\x00", "This content (UTF-16 LE) was kept because no file held it. " + back + "\nof"},
		"binary":  {"\x00\x01\x02\x03", "(not text: 4 bytes)\n" + back},
		"empty":   {"", "This content (UTF-8) was kept because no file held it. " + back},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			line, id := r.keep("a", c.saved)
			same(t, r.ok("file_history", `{"change_id":"`+id+`"}`), line+"\n"+strings.ReplaceAll(c.shown, "$ID", id))
			r.ok("undo_change", `{"change_id":"`+id+`","dry_run":true}`)
			r.holds("a", "two\n")
			r.write("a", "of a third\n") // whatever is there: a caller that names the id means it
			if text := r.ok("undo_change", `{"change_id":"`+id+`"}`); !strings.HasPrefix(text, "Wrote this content:\n"+line+"\n$WORK/a: restored\n") {
				t.Errorf("the answer is:\n%s", text)
			}
			r.holds("a", c.saved)
			r.ok("undo_change", `{"file_path":"a"}`)
			r.holds("a", "of a third\n")
			r.remove("a")
			r.ok("undo_change", `{"change_id":"`+id+`"}`)
			r.holds("a", c.saved)
			if text := r.ok("undo_change", `{"change_id":"`+id+`"}`); !strings.Contains(text, "$WORK/a: already has that content") {
				t.Errorf("the answer is:\n%s", text)
			}
		})
	}
}

// keep lets a program save a file while it is changed from "one" to "two", and returns its line in the history and its id.
func (r *rig) keep(name, saved string) (line, id string) {
	r.t.Helper()
	path := filepath.Join(r.dir, name)
	r.write(name, "one\n")
	f, err := r.Open(path, 0)
	if err != nil {
		r.t.Fatal(err)
	}
	defer f.Close()
	// A program that opened the file before the change, and writes into it afterwards.
	old, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		r.t.Fatal(err)
	}
	_, err = r.Files.Update(r.t.Context(), journal.By{Tool: "edit_file"}, filestate.Edit{File: f, Unseen: true, Change: func([]byte) ([]byte, error) {
		return []byte("two\n"), nil
	}})
	if err != nil {
		r.t.Fatal(err)
	}
	if err := old.Truncate(0); err != nil {
		r.t.Fatal(err)
	}
	if _, err := old.WriteString(saved); err != nil {
		r.t.Fatal(err)
	}
	if err := old.Close(); err != nil {
		r.t.Fatal(err)
	}
	r.Restart()
	line, _, _ = strings.Cut(r.ok("file_history", `{"file_path":"`+name+`"}`), "\n")
	id, _, _ = strings.Cut(line, " ")
	if !strings.HasSuffix(line, " kept "+name+" [another program saved this while a tool changed the file]") {
		r.t.Fatalf("the newest line is: %s", line)
	}
	return line, id
}

// Programs read pages until there are no more.
func TestFileHistoryJSON(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i := range 7 {
		r.ok("write_file", fmt.Sprintf(`{"file_path":"a","content":"%d\n"}`, i))
	}
	type page struct {
		Changes []struct {
			ID, Tool string
			Time     time.Time
			Files    []struct {
				Path, Op       string
				Added, Removed int
			}
		}
		More bool
	}
	before, seen := "", 0
	for more := true; more; {
		var p page
		text := r.ok("file_history", fmt.Sprintf(`{"format":"json","limit":3,"before":%q}`, before))
		if err := json.Unmarshal([]byte(text), &p); err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		for _, c := range p.Changes {
			seen++
			if before = c.ID; c.Tool != "write_file" || c.Time.IsZero() || len(c.Files) != 1 || c.Files[0].Added != 1 || (c.Files[0].Op == "create") != (seen == 7) {
				t.Errorf("change %d is %+v", seen, c)
			}
		}
		more = p.More
	}
	if seen != 7 {
		t.Errorf("%d changes, want 7", seen)
	}
	same(t, r.ok("file_history", `{"file_path":"b","format":"json"}`), `{"changes":[],"more":false}`)
}

// Every change tells programs its id in the journal.
func TestChangeIDs(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.write("n.ipynb", contractNotebook)
	r.ok("read_file", `{"file_path":"n.ipynb"}`)
	for _, c := range [][2]string{
		{"write_file", `{"file_path":"a","content":"one\n"}`},
		{"edit_file", `{"file_path":"a","old_string":"one","new_string":"two"}`},
		{"multi_edit", `{"file_path":"a","edits":[{"old_string":"two","new_string":"three"}]}`},
		{"notebook_edit", `{"notebook_path":"n.ipynb","cell_id":"cell-0","new_source":"two"}`},
		{"undo_change", `{"file_path":"a"}`},
	} {
		res, text := r.do(c[0], c[1])
		if res.Failed != "" {
			t.Fatal(text)
		}
		var meta struct{ Change string }
		if err := json.Unmarshal(res.Meta.Data, &meta); err != nil {
			t.Fatal(err)
		}
		if found, err := r.Files.History(t.Context(), journal.Query{ID: meta.Change}); err != nil || len(found) != 1 || found[0].By.Tool != c[0] {
			t.Errorf("%s: %s names %+v, %v", c[0], res.Meta.Data, found, err)
		}
	}
	if res, _ := r.do("write_file", `{"file_path":"a","content":"two\n"}`); strings.Contains(string(res.Meta.Data), "change") {
		t.Errorf("no change has the id %s", res.Meta.Data)
	}
}
