package skills

import (
	"context"
	"errors"
	"path"
	"path/filepath"
)

// What a Manifest has at most, and how many digests an Index remembers in all.
const (
	maxManifest      = 512
	maxManifestBytes = 16 << 20
	maxSums          = 20000
)

// A ManifestEntry is one file of a skill.
type ManifestEntry struct {
	Path   string // below the skill's directory, with slashes
	Size   int64  // bytes
	SHA256 string // hex
}

// A hashed is a supporting file whose digest is known.
type hashed struct {
	stamp stamp
	entry ManifestEntry
}

// Manifest returns every file of s with its digest, by path: what Files returns, and for a flat skill its one file.
// complete is false when there are more than 512 files or 16 MiB, a file of more than most bytes, or when a file could
// not be read; the entries then are those of a part. Digests are remembered like what Scan parses. The error is that of
// Files.
func (x *Index) Manifest(ctx context.Context, f Files, s Skill,
	most int64) (entries []ManifestEntry, complete bool, err error) {
	files, more, err := x.Files(ctx, f, s, maxManifest)
	if err != nil {
		return nil, false, err
	}
	if s.Flat {
		files = []string{filepath.Base(s.File)}
	}
	old := x.remembered(s.File)
	now := make(map[string]hashed, len(files))
	complete = !more
	var size int64
	for _, rel := range files {
		if err := ctx.Err(); err != nil {
			return nil, false, err
		}
		h, err := hash(f, s, rel, old, min(most, maxManifestBytes-size))
		if err != nil {
			complete = false
			if errors.Is(err, ErrTooLarge) {
				break
			}
			continue
		}
		now[rel] = h
		size += h.entry.Size
		entries = append(entries, h.entry)
	}
	x.remember(s.File, now)
	return entries, complete, nil
}

// hash returns a file's digest. max is what it may have in bytes.
func hash(f Files, s Skill, rel string, old map[string]hashed, max int64) (hashed, error) {
	var before *stamp
	known, ok := old[rel]
	if ok {
		before = &known.stamp
	}
	c, fresh, err := load(f, filepath.Join(s.Dir, filepath.FromSlash(path.Clean(rel))), max, before)
	switch {
	case err != nil:
		return hashed{}, err
	case !fresh && known.entry.Size > max:
		return hashed{}, ErrTooLarge
	case !fresh:
		return known, nil
	}
	return hashed{c.stamp, ManifestEntry{Path: rel, Size: int64(len(c.data)), SHA256: c.sum}}, nil
}

// remembered returns the digests of a skill. The map is only read.
func (x *Index) remembered(file string) map[string]hashed {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.sums[file]
}

// remember puts digests of a skill in the place of the old ones.
func (x *Index) remember(file string, now map[string]hashed) {
	x.mu.Lock()
	defer x.mu.Unlock()
	count := len(now)
	for other, sums := range x.sums {
		if other != file {
			count += len(sums)
		}
	}
	if x.sums == nil || count > maxSums {
		x.sums = map[string]map[string]hashed{}
	}
	x.sums[file] = now
}
