package editing

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"codehand/filestate"
	"codehand/filestate/journal"
	"codehand/tools/results"
	"codehand/tools/textedit"
	"codehand/tools/tool"
	"codehand/tools/wording"
)

// By says on whose behalf a tool changes files.
func By(env tool.Env, name string) journal.By {
	by := journal.By{Principal: env.Key.Principal, Session: env.Key.Session, Call: env.CallID, Tool: name}
	if roots := env.Space.Whole(); len(roots) > 0 {
		by.Workspace = roots[0] // by it changes of one workspace belong together, whatever a client wants of the roots
	}
	return by
}

// Meta returns what programs learn about changed files: the tool's own fields, which must encode as an object, and the
// id of the change in the journal, and what changed in them.
func Meta(fields any, changes ...filestate.Change) tool.Meta {
	m := meta(fields, changes)
	m.Diff = hunks(changes, nil)
	return m
}

// EditMeta is Meta of changes by edits of files, in the same order.
func EditMeta(fields any, files []*FileEdits, changes []filestate.Change) tool.Meta {
	m := meta(fields, changes)
	m.Diff = hunks(changes, files)
	return m
}

// hunks are the differences of all changes, each under its names, within MaxDiff bytes. files says where the edits
// were; nil: all of both contents is compared.
func hunks(changes []filestate.Change, files []*FileEdits) string {
	var b strings.Builder
	for i, c := range changes {
		if bytes.Equal(c.Old, c.New) && (c.Old == nil) == (c.New == nil) {
			continue
		}
		was, is := results.Line(results.Clean(c.Path), 500), results.Line(results.Clean(c.Path), 500)
		if c.Old == nil {
			was = "/dev/null"
		}
		if c.New == nil {
			is = "/dev/null"
		}
		head := "--- " + was + "\n+++ " + is + "\n"
		room := MaxDiff - b.Len() - len(head) - 1
		if room < leastDiff {
			break
		}
		var diff string
		if files != nil && c.Old != nil {
			diff, _ = diffAt(c, files[i].Report.Places, room)
		} else {
			diff, _ = ChangeDiff(c, room)
		}
		if diff != "" {
			b.WriteString(head + diff + "\n")
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// leastDiff is with how many bytes a difference says anything.
const leastDiff = 200

func meta(fields any, changes []filestate.Change) tool.Meta {
	m := tool.Meta{Data: wording.Data(fields)}
	if i := slices.IndexFunc(changes, func(c filestate.Change) bool { return c.ID != "" }); i >= 0 {
		own := strings.TrimPrefix(string(m.Data), "{")
		if own != "}" {
			own = "," + own
		}
		m.Data = json.RawMessage(`{"change":` + string(wording.Data(changes[i].ID)) + own)
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
			Path: c.Path, Op: op, Before: string(c.Before), After: string(c.After), SumBefore: c.Sums.Before,
			SumAfter: c.Sums.After,
		})
	}
	if len(changes) > 1 {
		m.Version = "" // it would not say of which file
	}
	return m
}

// MaxDiff is the most bytes of a diff, or of a whole file in its place, that one answer shows.
const MaxDiff = 8192

// ChangeDiff returns the diff of a change, at most maxBytes long. whole reports that nothing was left out or altered by
// escaping.
func ChangeDiff(c filestate.Change, maxBytes int) (diff string, whole bool) {
	if c.Splices != nil {
		return SplicesDiff(c.Splices, maxBytes)
	}
	return ContentDiff(c.Old, c.New, maxBytes)
}

// SplicesDiff is ContentDiff for a large file, of which only the places are known that differ.
func SplicesDiff(l filestate.Splices, maxBytes int) (diff string, whole bool) {
	binary := func(s filestate.Splice) bool { return bytes.IndexByte(s.Old, 0) >= 0 || bytes.IndexByte(s.New, 0) >= 0 }
	if slices.ContainsFunc(l, binary) {
		return fmt.Sprintf("(not text: %s differ)", wording.Plural(len(l), "place", "places")), false
	}
	diff, whole = textedit.DiffSplices(l, maxBytes)
	diff, exact := results.ShowDiff(diff)
	return strings.TrimSuffix(diff, "\n"), whole && exact
}

// ContentDiff returns the diff of two contents of a file; nil: there is no file. whole reports that nothing was left
// out or altered by escaping.
func ContentDiff(before, after []byte, maxBytes int) (diff string, whole bool) {
	for _, content := range [][]byte{before, after} {
		if _, err := textedit.Detect(content[:min(len(content), 64<<10)]); err != nil {
			return fmt.Sprintf("(not text: %s before, %s after)", results.Size(int64(len(before))),
				results.Size(int64(len(after)))), false
		}
	}
	return diffAt(filestate.Change{Old: before, New: after}, nil, maxBytes)
}
