package running

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"codehand/filestate"
	"codehand/filestate/journal"
	"codehand/tools/bash"
	"codehand/tools/git/changes"
	"codehand/tools/keeping"
	"codehand/tools/tool"
	"codehand/tools/wording"
)

// watchTime is how long a look at the session's files may take before a command: one of them can be very large.
const watchTime = 2 * time.Second

// A FileWatch tells what one command does to the files that the session has seen, and to those of the git work tree in
// which it runs. What only commands of the session have changed may still be edited where they left it alone.
type FileWatch struct {
	stale map[string]*filestate.StaleError // by path, what was not as seen before the command
	whole bool                             // all files were looked at
	late  bool                             // span is being compared in the background, and ends there
	span  *changes.Span                    // nil: there is no work tree, or no watch
	trees *changes.Trees                   // of span
	held  *keeping.Held                    // what was kept of what the command may discard
	// where the journal ended before span: the id of its newest change, and a time that no older one is behind
	newest string
	began  time.Time
}

// newFileWatch looks at the files before a command runs; nil: the command changes none. trees nil: it looks at no work
// tree. held is what was kept before.
func newFileWatch(ctx context.Context, env tool.Env, trees *changes.Trees, held *keeping.Held) *FileWatch {
	if env.Analysis.Class == bash.ReadOnly {
		return nil
	}
	whole := ctx
	ctx, cancel := context.WithTimeout(ctx, watchTime)
	defer cancel()
	stale, err := env.Files.Changed(ctx)
	w := &FileWatch{stale: make(map[string]*filestate.StaleError), whole: err == nil,
		began: time.Now(), held: held}
	for _, e := range stale {
		w.stale[e.Path] = e
	}
	if trees != nil {
		if last, err := env.Files.History(ctx, journal.Query{Kept: true, Limit: 1}); err == nil && len(last) > 0 {
			w.newest = last[0].ID
		}
		w.trees, w.span = trees, trees.Begin(whole, env.Space.Cwd())
	}
	return w
}

// Drop ends the watch if nothing else did: the command did not start, or its answer failed. The nil FileWatch has
// nothing to end.
func (w *FileWatch) Drop() {
	if w != nil && w.span != nil && !w.late {
		w.span.Drop()
	}
}

// changed returns the files that are not as seen after the command, but for those that are as an earlier command left
// them: that was told then.
func (w *FileWatch) changed(ctx context.Context, files *filestate.Ledger) (told []*filestate.StaleError) {
	now, _ := files.Changed(ctx) // a hint only: every change looks for itself
	for _, e := range now {
		was := w.stale[e.Path]
		if was != nil && was.Left && e.Left {
			continue
		}
		if w.whole && (was == nil || was.Left) {
			files.Left(ctx, e)
		}
		told = append(told, e)
	}
	return told
}

// maxHinted is how many changed files one hint names, and maxHintedLines how many ranges of lines of each.
const (
	maxHinted      = 10
	maxHintedLines = 5
)

// unseen is what State.Told calls the word that nothing is known of a work tree: each command would say it again.
const unseen = "changes are not known"

// hint names the files that a command has changed, and of those that the session has seen the lines; "": none. found is
// about those of the work tree.
func (w *FileWatch) hint(ctx context.Context, env tool.Env, command string) (line string, found finding) {
	var names []string
	listed := make(map[string]bool)
	found = w.findSoon(ctx, env, command, changes.Patience)
	inTree, more := found.Changes, found.All // more: that are not named
	for _, c := range inTree {
		listed[c.Path] = true
	}
	seen := make(map[string]bool)
	for _, e := range w.changed(ctx, env.Files) {
		seen[e.Path] = true
		if listed[e.Path] || e.Now == "" || env.Rules.Hidden(e.Path) {
			continue // told below, or gone, so there is nothing to read
		}
		names = append(names, wording.ShownName(env, e.Path)+rewritten(ctx, env, e.Path))
	}
	outside := len(names) > 0
	var trees []string
	for _, t := range found.Trees {
		if len(names) >= maxHinted {
			break // the count of the rest has them
		}
		trees = append(trees, t.Path)
		more -= t.Files
		name := "D " + wording.ShownName(env, t.Path) + "/ " + wording.Plural(t.Files, "file", "files")
		if t.Op == changes.Created {
			name = "A " + wording.NewFiles(wording.ShownName(env, t.Path), t.Files)
		}
		names = append(names, name)
	}
	for _, c := range inTree {
		if slices.ContainsFunc(trees, func(t string) bool { return wording.Below(t, c.Path) }) {
			continue
		}
		if len(names) >= maxHinted {
			break
		}
		more -= max(c.Files, 1)
		name := string(c.Op) + " " + wording.ShownName(env, c.Path)
		if seen[c.Path] && c.Op != changes.Deleted {
			name += rewritten(ctx, env, c.Path)
		}
		names = append(names, name)
	}
	if len(names) > maxHinted {
		names = append(names[:maxHinted], "…")
	}
	known := found.Known || w.span.Blind() && !w.span.Missed() && !first(ctx, env, unseen, "yes")
	switch {
	case len(names) == 0 && known:
		return "", found
	case len(names) == 0 && found.late:
		return "[" + stillCompared + "]", found
	case len(names) == 0:
		return "[which files of the git work tree it changed is not known, so look with git status]", found
	}
	line = "[changed on disk: " + strings.Join(names, ", ")
	if more > 0 {
		line += fmt.Sprintf(" and %d more", more)
	}
	switch {
	case found.late:
		line += "; " + stillCompared
	case !known:
		line += "; what else it changed in the git work tree is not known, so look with git status"
	}
	return line + found.undo(outside) + "]", found
}

// stillCompared is the word for a late finding.
const stillCompared = "which files of the git work tree it changed is not known yet: they are still being compared, " +
	"and file_history will list them"

// rewritten names the lines of a file that are not as the session has seen them: `:3,17-20`; "": they are unknown.
func rewritten(ctx context.Context, env tool.Env, path string) string {
	stale, err := env.Files.Changed(ctx, path)
	if err != nil || len(stale) == 0 {
		return ""
	}
	var ranges []string
	for _, l := range stale[0].Rewritten() {
		if len(ranges) == maxHintedLines {
			ranges = append(ranges, "…")
			break
		}
		if l.From == l.To {
			ranges = append(ranges, strconv.Itoa(l.From))
		} else {
			ranges = append(ranges, fmt.Sprintf("%d-%d", l.From, l.To))
		}
	}
	if len(ranges) == 0 {
		return ""
	}
	return ":" + strings.Join(ranges, ",")
}
