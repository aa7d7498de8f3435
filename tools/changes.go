package tools

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"codehand/filestate"
	"codehand/filestate/journal"
	"codehand/tools/media"
	"codehand/tools/results"
	"codehand/tools/textedit"
	"codehand/tools/tool"
	"codehand/tools/workspace"
)

// tornRefusal says what every file of a change that could not be taken back holds now.
func tornRefusal(e *filestate.RollbackError) error {
	text := "The change stopped half way and could not be taken back. Read these files before going on."
	for _, f := range e.Files {
		if f.Changed {
			text += fmt.Sprintf("\n%s: the new content, or what another program made of it (%v)", f.Path, f.Err)
		} else {
			text += "\n" + f.Path + ": as before"
		}
	}
	if e.ID != "" {
		text += "\nTo restore what was before, once no file holds what another program made of it: undo_change with change_id " + e.ID + "."
	}
	r := numbered(tool.RollbackFailed, 15, e)
	r.Text = text
	return r
}

// seenLines names the lines that a session has seen of a file, and nextUnseen the first one that it has not.
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
	alone := len(e.Seen) == 0 || next == e.Total || slices.ContainsFunc(e.Seen, func(l filestate.Lines) bool { return l.From == next+1 })
	if alone {
		return fmt.Sprintf("Read the rest (next: offset=%d; a line that is shown cut counts as not read) or use edit_file.", next)
	}
	return fmt.Sprintf("Read the rest (next: offset=%d) or use edit_file.", next)
}

// numbered is a refusal with a number, a cause for the log, and no text yet.
func numbered(code tool.Code, number int, cause error) *tool.Refusal {
	r, _ := errors.AsType[*tool.Refusal](tool.Numbered(code, number, ""))
	r.Cause = cause
	return r
}

// sizeOf is the size of a file, for the answer that it is too large.
func sizeOf(env tool.Env, path string) string {
	f, err := env.Open(path, workspace.Read)
	if err != nil {
		return path
	}
	defer f.Close()
	info, err := f.Dir.Stat(f.Name)
	if err != nil {
		return path
	}
	return results.Size(info.Size())
}

// by says on whose behalf a tool changes files.
func by(env tool.Env, name string) journal.By {
	return journal.By{Principal: env.Key.Principal, Session: env.Key.Session, Call: env.CallID, Tool: name, Workspace: env.Space.First()}
}

// diffAt is what a change did at these places, nil: anywhere, at most maxBytes long and safe to read. whole: nothing is missing.
func diffAt(c filestate.Change, places []textedit.Place, maxBytes int) (diff string, whole bool) {
	diff, whole = textedit.DiffAt(c.Old, c.New, places, maxBytes)
	diff, exact := results.ShowDiff(diff)
	return strings.TrimSuffix(diff, "\n"), whole && exact
}

// changeMeta is what programs learn of changed files: beside the tool's own fields, which are an object, the id that the
// change has in the journal.
func changeMeta(fields any, changes ...filestate.Change) tool.Meta {
	m := tool.Meta{Data: data(fields)}
	if i := slices.IndexFunc(changes, func(c filestate.Change) bool { return c.ID != "" }); i >= 0 {
		own := strings.TrimPrefix(string(m.Data), "{")
		if own != "}" {
			own = "," + own
		}
		m.Data = json.RawMessage(`{"change":` + string(data(changes[i].ID)) + own)
	}
	for _, c := range changes {
		m.Version = string(c.After)
		if c.Before == c.After {
			continue // it had this content already
		}
		op := "change"
		if c.Before == "" {
			op = "create"
		}
		if c.After == "" {
			op = "delete"
		}
		m.Files = append(m.Files, tool.FileChange{
			Path: c.Path, Op: op, Before: string(c.Before), After: string(c.After), SumBefore: c.Sums.Before, SumAfter: c.Sums.After,
		})
	}
	if len(changes) > 1 {
		m.Version = "" // it would not say of which file
	}
	return m
}

// sniff returns the first headSize bytes of a file, or refuses what they show to be no text.
func sniff(r io.ReaderAt) ([]byte, error) {
	head := make([]byte, headSize)
	n, err := r.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	head = head[:n]
	if media.Sniff(head) != media.None {
		return nil, textedit.ErrBinary
	}
	_, err = textedit.Detect(head)
	return head, err
}
