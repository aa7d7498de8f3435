package editing

import (
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
// id of the change in the journal.
func Meta(fields any, changes ...filestate.Change) tool.Meta {
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
