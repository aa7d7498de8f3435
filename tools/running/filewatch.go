package running

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"codehand/filestate"
	"codehand/tools/bash"
	"codehand/tools/tool"
	"codehand/tools/wording"
)

// watchTime is how long a look at the session's files may take before a command: one of them can be very large.
const watchTime = 2 * time.Second

// A FileWatch tells what one command does to the files that the session has seen. What only commands of the session
// have changed may still be edited where they left it alone.
type FileWatch struct {
	stale map[string]*filestate.StaleError // by path, what was not as seen before the command
	whole bool                             // all files were looked at
}

// NewFileWatch looks at the files before a command runs; nil: the command changes none.
func NewFileWatch(ctx context.Context, env tool.Env) *FileWatch {
	if env.Analysis.Class == bash.ReadOnly {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, watchTime)
	defer cancel()
	stale, err := env.Files.Changed(ctx)
	w := &FileWatch{stale: make(map[string]*filestate.StaleError), whole: err == nil}
	for _, e := range stale {
		w.stale[e.Path] = e
	}
	return w
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

// hint names the files that a command has changed, and the lines; "": none.
func (w *FileWatch) hint(ctx context.Context, env tool.Env) string {
	var names []string
	for _, e := range w.changed(ctx, env.Files) {
		if e.Now == "" || env.Rules.Hidden(e.Path) {
			continue // gone, so there is nothing to read
		}
		if len(names) == maxHinted {
			names = append(names, "…")
			break
		}
		names = append(names, wording.ShownName(env, e.Path)+rewritten(ctx, env, e.Path))
	}
	if len(names) == 0 {
		return ""
	}
	return "[changed on disk: " + strings.Join(names, ", ") + "]"
}

// rewritten names the lines of a file that are not as the session has seen them: `:3,17-20`; "": nobody knows which.
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
