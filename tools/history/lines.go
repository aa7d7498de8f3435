package history

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"codehand/filestate/journal"
	"codehand/tools/tool"
	"codehand/tools/wording"
)

// maxNamed is how many files of a change its line names.
const maxNamed = 50

// Line is a change in one line: `k3x9q2mh5t7a2b4c 14:02:11 edit_file src/a.go +3 -1`. Of what changed while a command
// ran it names the command.
func Line(env tool.Env, e journal.Entry, files []journal.EntryFile, now time.Time) string {
	line := Brief(env, e, files, now, maxNamed)
	if e.By.Command != "" {
		line += " [while this ran: " + e.By.Command + "]"
	}
	for _, mark := range changeMarks(env, e, files) {
		line += " [" + mark + "]"
	}
	return line
}

// Brief is a change in one line without its command and its marks, which names most files at most.
func Brief(env tool.Env, e journal.Entry, files []journal.EntryFile, now time.Time, most int) string {
	by := e.By.Tool
	if e.Kept != "" {
		by = "kept"
	}
	trees, files := newTrees(env, e, files)
	var names []string
	for _, t := range trees[:min(len(trees), most)] {
		names = append(names, wording.NewFiles(t.name, t.files))
	}
	for _, f := range files[:min(len(files), most)] {
		names = append(names, changedFile(env, e, f))
	}
	if rest := len(files) - most; rest > 0 {
		names = append(names, "and "+wording.Plural(rest, "more file", "more files"))
	}
	return e.ID + " " + Clock(e.Time, now) + " " + by + " " + strings.Join(names, ", ")
}

// minTree is how many new files of one change below a directory are told as one.
const minTree = 20

// A newTree is a directory below the root with many files that a change made.
type newTree struct {
	name  string
	files int
}

// newTrees takes out of the files of a change those that are told as one: what a command unpacked or installed.
func newTrees(env tool.Env, e journal.Entry, files []journal.EntryFile) (trees []newTree, rest []journal.EntryFile) {
	top := func(f journal.EntryFile) string {
		dir, _, below := strings.Cut(filepath.ToSlash(wording.ShownName(env, f.Path)), "/")
		if !below || dir == "" || f.Op != "create" || f.Files > 0 || f.Why != "" || f.NoCopy || e.Kept != "" {
			return ""
		}
		return dir
	}
	counts := map[string]int{}
	for _, f := range files {
		counts[top(f)]++
	}
	for _, f := range files {
		dir := top(f)
		switch n := counts[dir]; {
		case dir == "" || n > 0 && n < minTree:
			rest = append(rest, f)
		case n > 0:
			trees, counts[dir] = append(trees, newTree{dir, n}), 0
		}
	}
	return trees, rest
}

// Clock is the time of day, in front of it the day unless that is today.
func Clock(at, now time.Time) string {
	at, now = at.Local(), now.Local()
	if at.Format(time.DateOnly) == now.Format(time.DateOnly) {
		return at.Format(time.TimeOnly)
	}
	return at.Format(time.DateTime)
}

func changedFile(env tool.Env, e journal.Entry, f journal.EntryFile) string {
	name := wording.ShownName(env, f.Path)
	if e.Kept != "" {
		return name
	}
	if f.Files > 0 {
		return wording.NewFiles(name, f.Files) + " (cannot be undone: " + f.Why + ")"
	}
	if f.Why == "" {
		name += fmt.Sprintf(" +%d -%d", f.Added, f.Removed)
	}
	if f.Mode != "" {
		name += " mode " + f.Mode
	}
	switch f.Op {
	case "create":
		name += " (new file)"
	case "delete":
		name += " (removed)"
	}
	switch {
	case f.Why != "":
		name += " (cannot be undone: " + f.Why + ")"
	case f.NoCopy:
		name += " (no copy: over 32 MiB)"
	}
	return name
}

// undoneIn names the files in which a change was taken back, among those that are shown.
func undoneIn(env tool.Env, e journal.Entry, files []journal.EntryFile) string {
	const most = 3
	var names []string
	for _, f := range files {
		if e.Back(f.Path) {
			names = append(names, wording.ShownName(env, f.Path))
		}
	}
	if rest := len(names) - most; rest > 0 {
		return strings.Join(names[:most], ", ") + " and " + wording.Plural(rest, "more file", "more files")
	}
	return strings.Join(names, ", ")
}

func changeMarks(env tool.Env, e journal.Entry, files []journal.EntryFile) []string {
	var marks []string
	switch e.Kept {
	case "":
	case "external":
		marks = append(marks, "another program saved this while a tool changed the file")
	case "recovered":
		marks = append(marks, "found in a temporary file of a server that was killed")
	case "held":
		marks = append(marks, "kept before a command that may discard it; undo_change writes it back")
	default:
		marks = append(marks, e.Kept)
	}
	if len(e.Undoes) > 0 {
		marks = append(marks, "takes back "+strings.Join(e.Undoes, ", "))
	}
	switch {
	case e.Portion.Whole():
		marks = append(marks, "takes back "+e.Portion.ID+" in these files")
	case e.Portion != nil:
		marks = append(marks, "takes back hunk "+e.Portion.Hunk+" of "+e.Portion.ID)
	}
	if e.Undone {
		marks = append(marks, "undone")
	} else if names := undoneIn(env, e, files); names != "" {
		marks = append(marks, "undone in "+names)
	}
	if e.Open {
		marks = append(marks, "not finished")
	}
	if e.Unsure {
		marks = append(marks, "stopped half way")
	}
	return marks
}

// OlderWords says how to see changes that a list of limit has no room for.
func OlderWords(limit int, path string) string {
	const most = 200 // of limit
	switch {
	case limit < most && path == "":
		return "raise limit, or give a path"
	case limit < most:
		return "raise limit"
	case path == "":
		return "give a path"
	}
	return "run codehand history --json"
}

// ShortSession tells sessions apart for people and programs: the name itself may be what a client proves itself with.
func ShortSession(name string) string {
	if name == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:4])
}

// JSON is as many changes as an answer holds, and whether there are more.
func JSON(env tool.Env, view *View, entries []journal.Entry, more bool) (tool.Result, error) {
	list, text, room := []json.RawMessage{}, "", wording.Form(env, 100, 0)
	for _, e := range entries {
		e.Files = view.Files(e)
		raw := wording.Data(struct {
			journal.Entry
			Tool    string `json:"tool,omitempty"`
			Command string `json:"command,omitempty"`
			Session string `json:"session,omitempty"`
		}{e, e.By.Tool, e.By.Command, ShortSession(e.By.Session)})
		if text += string(raw) + ","; len(list) > 0 && !room.Fits(text) {
			more = true
			break
		}
		list = append(list, raw)
	}
	return tool.Result{Text: string(wording.Data(struct {
		Changes []json.RawMessage `json:"changes"`
		More    bool              `json:"more"`
	}{list, more}))}, nil
}
