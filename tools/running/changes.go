package running

import (
	"context"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"codehand/filestate"
	"codehand/filestate/disk"
	"codehand/filestate/journal"
	"codehand/tools/git/changes"
	"codehand/tools/keeping"
	"codehand/tools/results"
	"codehand/tools/sandbox"
	"codehand/tools/secrets"
	"codehand/tools/tool"
	"codehand/tools/wording"
)

const (
	// maxChanges is how many files that a command changed are told of and noted in the journal.
	maxChanges = 200
	// heldPatience is how long the answer about a command waits that may have discarded much, so that it says how to
	// get that back.
	heldPatience = 5 * time.Second
	// maxLost is how many files that cannot be taken back are named.
	maxLost = 3
	// maxCommand is how many characters of a command its note has.
	maxCommand = 200
)

// A changedFile is what programs learn of a file that changed while a command ran.
type changedFile struct {
	Path string `json:"path"`
	Op   string `json:"op"`            // A, M or D
	Why  string `json:"why,omitempty"` // why it cannot be taken back
	// how many new files a new directory has that is told of as one; 0: this is one file
	Files int `json:"files,omitempty"`
}

// A finding is what is known of the git work tree after a command.
type finding struct {
	changes.Finding
	id    string   // of the change in the journal; "": nothing can be taken back
	more  []string // ids of further changes, where one would be too large
	back  []string // names of the files that it takes back
	links []string // of those in whose place the command left a link
	lost  []string // of those that it cannot, each with the reason
	late  bool     // the files are still being compared, and the journal will have what is found
	fault any      // what the look panicked with; nil: it did not
	wrong bool     // the journal cannot be written
}

// findSoon is find, for which it waits only so long; 0: not at all. What is found later is noted in the journal alone.
func (w *FileWatch) findSoon(ctx context.Context, env tool.Env, command string, patience time.Duration) finding {
	if w.span == nil || w.span.Blind() {
		return w.find(ctx, env, command)
	}
	done := make(chan finding, 1)
	sure := w.held.Sure() // before the look, which changes what is held
	ctx = context.WithoutCancel(ctx)
	if !w.trees.Go(func() {
		f := finding{}
		defer func() { // a fault is one of the call while that waits, and never ends the process
			f.fault = recover()
			done <- f
		}()
		f = w.find(ctx, env, command)
	}) {
		return finding{}
	}
	if patience > 0 && sure {
		patience = heldPatience
	}
	if patience > 0 {
		timer := time.NewTimer(patience)
		defer timer.Stop()
		select {
		case f := <-done:
			if f.fault != nil {
				panic(f.fault)
			}
			return f
		case <-timer.C:
		}
	}
	w.late = true
	return finding{late: true}
}

// find looks at what changed in the work tree while a command ran, and notes it in the journal.
func (w *FileWatch) find(ctx context.Context, env tool.Env, command string) finding {
	others := sync.OnceValues(func() (map[string]bool, error) { return w.others(ctx, env.Files) })
	f := finding{Finding: changes.Finding{Known: true}}
	if w.span != nil {
		f.Finding = w.span.End(maxChanges, w.asker(ctx, env, others))
	}
	by := commandBy(env, command)
	held := w.held.Compare(ctx, func(path string) bool {
		all, err := others()
		return err != nil || all[path]
	})
	var back, kept []journal.Part // a change is taken back whole, so what cannot be is one of its own
	known := make(map[string]bool, len(f.Changes))
	for i := range f.Changes {
		c := &f.Changes[i]
		known[c.Path] = true
		if _, is := held[c.Path]; is {
			c.Why = ""
			continue
		}
		p := journal.Part{Path: c.Path, Old: c.Old, New: c.New, Mode: c.OldMode, NewMode: c.NewMode, Why: c.Why,
			Files: c.Files}
		if c.Why == "" {
			back = append(back, p)
			f.comesBack(env, c.Path)
			continue
		}
		p.Old, p.New = nil, nil
		if c.Op != changes.Created {
			f.lost = append(f.lost, wording.ShownName(env, c.Path)+" ("+c.Why+")")
			p.Old = []byte{}
		}
		if c.Op != changes.Deleted {
			p.New = []byte{}
		}
		kept = append(kept, p)
	}
	f.addHeld(env, held, known)
	f.note(ctx, env, by, back, w.held)
	_, err := filestate.Record(ctx, env.Files, by, kept)
	f.wrong = f.wrong || err != nil
	return f
}

// comesBack notes that a file can be taken back. A link in its place is the command's, and no undo removes it.
func (f *finding) comesBack(env tool.Env, path string) {
	name := wording.ShownName(env, path)
	f.back = append(f.back, name)
	if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSymlink != 0 {
		f.links = append(f.links, name)
	}
}

// addHeld adds the files that were kept before the command and are not what they were to those that changed.
func (f *finding) addHeld(env tool.Env, held map[string]bool, known map[string]bool) {
	for _, path := range slices.Sorted(maps.Keys(held)) {
		f.comesBack(env, path)
		if known[path] {
			continue
		}
		if len(f.Changes) < maxChanges {
			c := changes.Change{Path: path, Op: changes.Changed}
			if held[path] {
				c.Op = changes.Deleted
			}
			f.Changes = append(f.Changes, c)
		}
		f.All = max(f.All, len(f.Changes), len(f.back))
	}
	slices.SortStableFunc(f.Changes, func(a, b changes.Change) int { return strings.Compare(a.Path, b.Path) })
}

// note notes in the journal what can be taken back: as one change, where that is not too large.
func (f *finding) note(ctx context.Context, env tool.Env, by journal.By, back []journal.Part, held *keeping.Held) {
	record := func(parts []journal.Part) bool {
		parts, back = append(back, parts...), nil
		id, err := filestate.Record(ctx, env.Files, by, parts)
		switch {
		case err != nil:
			f.wrong = true
		case f.id == "":
			f.id = id
		default:
			f.more = append(f.more, id)
		}
		return err == nil
	}
	if held.Take(ctx, env.Files, record) != nil {
		f.wrong = true
	}
	if len(back) > 0 {
		record(nil)
	}
}

// commandBy is on whose behalf a command changes files.
func commandBy(env tool.Env, command string) journal.By {
	return journal.By{Principal: env.Key.Principal, Session: env.Key.Session, Call: env.CallID, Tool: "run_shell",
		Command: wording.LineOf(secrets.Redact(results.Clean(command)), maxCommand)}
}

// asker answers what the work tree cannot know.
func (w *FileWatch) asker(ctx context.Context, env tool.Env,
	others func() (map[string]bool, error)) changes.Asker {
	return changes.Asker{
		Inside: env.Space.Inside, Hidden: env.Rules.Hidden,
		Content: func(path string, sum disk.Digest) []byte {
			last, err := env.Files.History(ctx, journal.Query{Path: path, Limit: 1})
			if err != nil || len(last) == 0 {
				return nil
			}
			_, after, err := env.Files.Contents(ctx, last[0].ID, path)
			if err != nil || after == nil || disk.DigestOf(after) != sum {
				return nil
			}
			return after
		},
		Keep: func(path string) string {
			switch changed, err := others(); {
			case err != nil:
				return "the journal cannot be read"
			case changed[path]:
				return "another call changed it while the command ran"
			case renamed().MatchString(path):
				return "it appeared under a protected name and was renamed, and may not be the command's"
			}
			return ""
		},
	}
}

// renamed fits a path with a name that the sandbox gives what appears under a protected one.
var renamed = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(regexp.QuoteMeta(sandbox.Aside) + `[A-Z2-7]{6}(?:[/\\]|$)`)
})

// others returns the files that the journal has changes of since the command began: no change of its own is there yet.
func (w *FileWatch) others(ctx context.Context, files *filestate.Ledger) (map[string]bool, error) {
	all := make(map[string]bool)
	_, err := files.History(ctx, journal.Query{Kept: true, Limit: 1, Fits: func(e journal.Entry) bool {
		if e.ID == w.newest || e.Time.Before(w.began) {
			return true // all that follow are older
		}
		for _, f := range e.Files {
			all[f.Path] = true
		}
		return false
	}})
	return all, err
}

// record is what the record of the call says of it; cut: there is more, or it is not known.
func (f *finding) record() (all []tool.FileChange, cut bool) {
	told := 0
	for _, c := range f.Changes {
		r := tool.FileChange{Path: c.Path, Op: "change", Files: c.Files}
		switch c.Op {
		case changes.Created:
			r.Op = "create"
		case changes.Deleted:
			r.Op = "delete"
		}
		if c.Why == "" {
			r.SumBefore, r.SumAfter = sumOf(c.Old), sumOf(c.New)
		}
		all = append(all, r)
		told += max(c.Files, 1)
	}
	return all, f.late || !f.Known || f.All > told
}

// sumOf is the hash of a content, in hex; "": there is none.
func sumOf(content []byte) string {
	if content == nil {
		return ""
	}
	return disk.DigestOf(content).Hex()
}

// undo is the clause that says what can be taken back. outside: the list has files that are not of the work tree.
func (f *finding) undo(outside bool) (text string) {
	if f.id != "" {
		back := "takes back " + wording.Plural(len(f.back), "file", "files") + " of the work tree"
		switch {
		case len(f.back) == f.All && !outside && f.Recorded:
			back = "takes the files back"
		case len(f.back) == f.All && !outside:
			back = "takes it back"
		case len(f.back) <= maxHinted:
			back = "takes back " + strings.Join(f.back, ", ")
		}
		text = "; undo_change " + f.id + " " + back
		if f.Recorded {
			text += ", but not what git recorded (index, commits, branches)"
		}
		if n := len(f.links); n > 0 {
			text += ", once the links in their place are removed (" + strings.Join(f.links[:min(n, maxLost)], ", ")
			if n > maxLost {
				text += fmt.Sprintf(" and %d more", n-maxLost)
			}
			text += ")"
		}
		if len(f.more) > 0 {
			text = "; undo_change takes back " + wording.Plural(len(f.back), "file", "files") +
				", one part at a time: " + someIDs(append([]string{f.id}, f.more...))
		}
	}
	if n := len(f.lost); n > 0 {
		text += "; no undo of " + strings.Join(f.lost[:min(n, maxLost)], ", ")
		if n > maxLost {
			text += fmt.Sprintf(" and %d more", n-maxLost)
		}
	}
	if f.wrong {
		text += "; the journal cannot be written, so history does not show all of it"
	}
	return text
}

// keepDiscarded keeps what a command may discard, before it starts. Nothing is kept of a command that only reads.
func keepDiscarded(ctx context.Context, env tool.Env, trees *changes.Trees, command string, job bool) (*keeping.Held,
	error) {
	return keeping.Hold(ctx, env, trees, commandBy(env, command), job)
}

// keptNotes say how to get back what was kept before a command whose changes are not followed.
func keptNotes(held *keeping.Held) []string {
	ids := held.IDs()
	if len(ids) == 0 {
		return nil
	}
	return []string{"[files that it may discard were kept before it started; to write them back as they were: " +
		"undo_change " + someIDs(ids) + "]"}
}

// droppedNote says how to get back what was in a stash; "": nothing was dropped.
func droppedNote(held *keeping.Held) string {
	commits := held.Dropped()
	if len(commits) == 0 {
		return ""
	}
	list := strings.Join(commits[:min(len(commits), maxHinted)], ", ")
	if len(commits) > maxHinted {
		list += ", …"
	}
	return "[git keeps what was dropped for a week at least: git stash apply " + list + "]"
}

// lostNote names what git ignores and the command took away without naming it; "": nothing.
func lostNote(env tool.Env, held *keeping.Held) string {
	lost := held.Lost()
	if len(lost) == 0 {
		return ""
	}
	names := make([]string, 0, maxHinted)
	for _, path := range lost[:min(len(lost), maxHinted)] {
		names = append(names, wording.Clip(wording.OneLine(wording.ShownName(env, path)), 100))
	}
	list := strings.Join(names, ", ")
	if more := len(lost) - maxHinted; more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	return "[git ignores these, so they were not kept, and are gone: " + list + "]"
}

// someIDs lists ids of changes, the first ones of many.
func someIDs(ids []string) string {
	const most = 20
	text := strings.Join(ids[:min(len(ids), most)], ", ")
	if rest := len(ids) - most; rest > 0 {
		text += fmt.Sprintf(" and %d more in file_history", rest)
	}
	return text
}
