package editing

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"codehand/filestate"
	"codehand/tools/results"
	"codehand/tools/textedit"
	"codehand/tools/tool"
	"codehand/tools/viewing"
	"codehand/tools/wording"
	"codehand/tools/workspace"
)

// unreadRefusal sends the model to read_file, unless reading could not help.
func (g Guard) unreadRefusal(ctx context.Context, env tool.Env, path string) error {
	f, err := env.Open(path, workspace.Read)
	if err == nil {
		defer f.Close()
		err = g.look(ctx, env, f)
	}
	if err == nil {
		how := "Read it first."
		if env.Rules.SecretName(f.Path) {
			// A person is asked before it is read, and may not be there: one refusal must not lead to the next.
			how = "Its name says that it holds secrets, so read_file asks the user. To add a line without reading " +
				"it, append with run_shell (>>)."
		}
		return tool.Numbered(tool.FileNotRead, g.Unread, "File has not been read yet: %s. %s", path, how)
	}
	return wording.PathRefusal(env, path, err)
}

// look opens a file that was not read yet, and returns the error that read_file would give.
func (g Guard) look(ctx context.Context, env tool.Env, f filestate.File) error {
	r, err := env.Files.Open(ctx, f)
	if err != nil {
		return err
	}
	defer r.Close()
	head, err := viewing.ReadHead(r)
	if err == nil && g.inTheWay(head) {
		return existsRefusal(g.patch, g.head)
	}
	if err == nil && viewing.IsNotebook(f.Path) {
		return viewing.ReadableNotebook(ctx, env, f.Path, head, r)
	}
	if e, _ := textedit.Detect(head); err == nil && !e.Editable() && g.Name != "write_file" {
		return textedit.ErrEncoding
	}
	return err
}

func (g Guard) inTheWay(content []byte) bool {
	return g.creates && strings.TrimSpace(textedit.Shown(content)) != ""
}

// seenLines names the lines of a file that a session has seen; nextUnseen returns the first line that it has not.
func seenLines(e *filestate.PartReadError) string {
	if len(e.Seen) == 0 {
		return "parts of lines"
	}
	parts := make([]string, min(len(e.Seen), 10))
	for i := range parts {
		parts[i] = fmt.Sprintf("%d-%d", e.Seen[i].From, e.Seen[i].To)
	}
	return "lines " + strings.Join(parts, ", ") + " of " + results.Count(e.Total)
}

func nextUnseen(seen []filestate.Lines) int {
	if len(seen) == 0 || seen[0].From > 1 {
		return 1
	}
	return seen[0].To + 1
}

// unreadRest says what to do about the lines that were not seen. A line that stands alone between seen ones was most
// likely shown cut, and reading it again and again would not help.
func unreadRest(e *filestate.PartReadError) string {
	next := nextUnseen(e.Seen)
	alone := len(e.Seen) == 0 || next == e.Total ||
		slices.ContainsFunc(e.Seen, func(l filestate.Lines) bool { return l.From == next+1 })
	if alone {
		return fmt.Sprintf("Read the rest (next: offset=%d; truncated lines do not count as read) or use edit_file.",
			next)
	}
	return fmt.Sprintf("Read the rest (next: offset=%d) or use edit_file.", next)
}
