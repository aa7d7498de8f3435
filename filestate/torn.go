package filestate

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"time"

	"codehand/filestate/disk"
	"codehand/filestate/journal"
	"codehand/filestate/lines"
	"codehand/filestate/owner"
)

// clockSlack is by how much the clock of a file system can be behind that of a process.
const clockSlack = time.Second

// isTorn says whether content is what is left when next is written over old in place, or when that is being taken back,
// and the process dies: old[:j] + next[j:k] + old[k:], and not yet cut to its length.
func isTorn(content, old, next []byte) bool {
	if len(content) < min(len(old), len(next)) || len(content) > max(len(old), len(next)) {
		return false
	}
	at := lines.Prefix(content, old) // if any j will do, the largest does
	if at < len(next) {
		at += lines.Prefix(content[at:], next[at:])
	}
	return at == len(content) || len(content) == len(old) && bytes.Equal(content[at:], old[at:])
}

// tornContent returns what stands at the name of a file of a change that stopped half way, if it can be what its
// writing in place left at that time; nil if not. now is the digest of what was there just before. A later save can
// look the same, so the time must fit, too.
func (l *Ledger) tornContent(ctx context.Context, f journal.File, c journal.Sides, now *disk.Digest,
	at time.Time) ([]byte, error) {
	if f.Before == nil || f.After == nil || !f.Kept {
		return nil, nil // such a file is never written in place
	}
	if now == nil || now.Equal(f.Before) || now.Equal(f.After) {
		return nil, nil
	}
	dir, err := disk.Reopen(filepath.Dir(f.Path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }() // a directory handle holds no data
	w := &work{path: f.Path, name: filepath.Base(f.Path), dir: dir}
	content, stamp, err := w.look(ctx, w.name)
	if err != nil {
		return nil, context.Cause(ctx) // what cannot be read is not known to be ours
	}
	after := time.Unix(0, stamp.Mtime).Sub(at)
	if stamp.Nlink > 1 || after < -clockSlack || after > owner.LeftAfter || !isTorn(content, c.Before, c.After) {
		return nil, nil
	}
	return content, nil
}
