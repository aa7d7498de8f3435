package skills

import "context"

// A ManifestEntry is one file of a skill.
type ManifestEntry struct {
	Path   string // below the skill's directory, with slashes
	Size   int64  // bytes
	SHA256 string // hex
}

// Files returns the first limit files below the directory of s by path, SKILL.md among them, with slashes. more says that
// there are others, or that the walk met a bound: 10 levels, 5,000 entries, 2,000 in one directory. Directories of
// version control are left out, and so is what cannot be listed; a link that leads back to a directory above itself is not
// followed. A flat skill has no files.
func (x *Index) Files(ctx context.Context, f Files, s Skill, limit int) (files []string, more bool, err error) {
	return nil, false, ctx.Err()
}

// Manifest returns every file of s with its digest, by path: what Files returns, and for a flat skill its one file.
// complete is false when there is more than 512 files or 16 MiB, or when a file could not be read; the entries then are
// those of a part. Digests are remembered like what Scan parses.
func (x *Index) Manifest(ctx context.Context, f Files, s Skill) (entries []ManifestEntry, complete bool, err error) {
	return nil, false, ctx.Err()
}
