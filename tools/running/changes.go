package running

import (
	"context"
	"regexp"
	"strings"
	"sync"
	"time"

	"codehand/filestate"
	"codehand/filestate/disk"
	"codehand/filestate/journal"
	"codehand/tools/git/changes"
	"codehand/tools/results"
	"codehand/tools/sandbox"
	"codehand/tools/secrets"
	"codehand/tools/tool"
	"codehand/tools/wording"
)

const (
	// maxChanges is how many files that a command changed are told of and noted in the journal.
	maxChanges = 200
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
	back  []string // names of the files that it takes back
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
	if w.span == nil {
		return finding{Finding: changes.Finding{Known: true}}
	}
	others := sync.OnceValues(func() (map[string]bool, error) { return w.others(ctx, env.Files) })
	f := finding{Finding: w.span.End(maxChanges, changes.Asker{
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
	})}
	if len(f.Changes) == 0 {
		return f
	}
	by := journal.By{Principal: env.Key.Principal, Session: env.Key.Session, Call: env.CallID, Tool: "run_shell",
		Command: wording.LineOf(secrets.Redact(results.Clean(command)), maxCommand)}
	var back, kept []journal.Part // a change is taken back whole, so what cannot be is one of its own
	for i := range f.Changes {
		c := &f.Changes[i]
		p := journal.Part{Path: c.Path, Old: c.Old, New: c.New, Mode: c.OldMode, NewMode: c.NewMode, Why: c.Why,
			Files: c.Files}
		if c.Why == "" {
			back, f.back = append(back, p), append(f.back, wording.ShownName(env, c.Path))
			continue
		}
		p.Old, p.New = nil, nil
		if c.Op != changes.Created {
			p.Old = []byte{}
		}
		if c.Op != changes.Deleted {
			p.New = []byte{}
		}
		kept = append(kept, p)
	}
	var err error
	f.id, err = filestate.Record(ctx, env.Files, by, back)
	_, keptErr := filestate.Record(ctx, env.Files, by, kept)
	f.wrong = err != nil || keptErr != nil
	return f
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
	}
	if f.wrong {
		text += "; the journal cannot be written, so history does not show all of it"
	}
	return text
}
