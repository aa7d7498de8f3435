package resources

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"codehand/tools/skills"
)

// The skills extension of MCP (SEP-2640): what it is called in the capabilities, and its methods.
const (
	skillsExtension     = "io.modelcontextprotocol/skills"
	MethodSkillsList    = "skills/list"
	MethodSkillsGet     = "skills/get"
	MethodDirectoryRead = "resources/directory/read"
)

// directoryType is the media type of a directory.
const directoryType = "inode/directory"

const (
	// maxEntries is how many entries of a directory are looked at, and pageEntries how many of them one page lists.
	maxEntries  = 10_000
	pageEntries = 2_000
	// maxPageFiles and maxPageBytes are what one page of skills has at most: files that are looked at for it, and about
	// how many bytes of JSON. One skill alone may have more bytes, never more than the wire allows.
	maxPageFiles = 2_000
	maxPageBytes = 1 << 20
	// cursorAfter begins a cursor; the name of what the page before ended with follows.
	cursorAfter = "after "
)

// Extensions is what the capabilities say. Earlier protocols have no such field, but let servers add some.
func Extensions() map[string]any {
	return map[string]any{skillsExtension: map[string]any{"directoryRead": true}}
}

// Extends says whether a method is one that mcp-go does not know and we do.
func Extends(method string) bool {
	return method == MethodSkillsList || method == MethodSkillsGet || method == MethodDirectoryRead
}

// A skillEntry is a skill as the extension publishes it.
type skillEntry struct {
	URI         string          `json:"uri"`
	FrontMatter json.RawMessage `json:"frontmatter"`
	Resources   any             `json:"resources"` // []skillPart, or dynamicParts
}

// A skillPart is one file of a published skill.
type skillPart struct {
	URI    string `json:"uri"`
	Digest string `json:"digest"`
	Size   int64  `json:"size"`
}

// dynamicParts stands for the files of a skill that cannot all be published with their digests: there are too many, or
// one is longer than an answer, so that a client could not compare it.
const dynamicParts = "dynamic"

type listSkillsResult struct {
	mcp.CacheableResult
	Skills     []skillEntry `json:"skills"`
	NextCursor string       `json:"nextCursor,omitempty"`
}

type getSkillResult struct {
	mcp.CacheableResult
	Skill skillEntry `json:"skill"`
}

type readDirectoryResult struct {
	mcp.CacheableResult
	Resources  []mcp.Resource `json:"resources"`
	NextCursor string         `json:"nextCursor,omitempty"`
}

// A Cacheable is a result that says how long it holds.
type Cacheable interface {
	mcp.ResultMetadata
	mcp.CacheHintSetter
}

// The reasons why a method of the extension is not answered, besides ErrNone.
var (
	ErrNoDirectory = errors.New("the URI names no directory of a skill")
	ErrCursor      = errors.New("the cursor is none of this list; leave it out to begin")
)

// Asked is what a request of the extension asks for.
type Asked struct {
	Method    string
	URI       string
	Cursor    string
	HasCursor bool // one that says something, or is no text
}

// Extend answers a method of the extension: Extends says which those are. Errors: ErrNone, ErrNoDirectory, ErrCursor,
// or a fault of ours.
func (l *Library) Extend(ctx context.Context, v View, a Asked) (Cacheable, error) {
	switch a.Method {
	case MethodSkillsList:
		return l.listSkills(ctx, v, a)
	case MethodSkillsGet:
		return l.getSkill(ctx, v, a.URI)
	}
	return l.readDirectory(ctx, v, a)
}

// listSkills returns the skills of the caller's session that meet the public format, by name: those of one page, which
// begins behind the cursor. ErrCursor: it is none of ours.
func (l *Library) listSkills(ctx context.Context, v View, a Asked) (Cacheable, error) {
	last, err := a.after()
	if err != nil {
		return nil, err
	}
	set, err := l.Skills(ctx, v)
	if err != nil {
		return nil, err
	}
	list := &listSkillsResult{Skills: []skillEntry{}}
	files, bytes := 0, 0
	for _, k := range set.Skills {
		if !k.Public() || k.Name <= last {
			continue
		}
		if files+maxSkillFiles > maxPageFiles || bytes > maxPageBytes {
			list.NextCursor = cursorAfter + last
			break
		}
		entry, err := v.publish(ctx, k)
		if err != nil {
			return nil, err
		}
		more, size := entry.costs()
		files, bytes, last = files+more, bytes+size, k.Name
		list.Skills = append(list.Skills, entry)
	}
	return list, nil
}

// after is the name behind which a page begins; "": it is the first. ErrCursor: the cursor is none of ours.
func (a Asked) after() (string, error) {
	last, ok := strings.CutPrefix(a.Cursor, cursorAfter)
	if a.HasCursor && !(ok && nameable(last)) {
		return "", ErrCursor
	}
	return last, nil
}

// costs says how many files were looked at for an entry, and about how many bytes of JSON it has.
func (e skillEntry) costs() (files, bytes int) {
	bytes = len(e.FrontMatter)
	parts, ok := e.Resources.([]skillPart)
	if !ok {
		return maxSkillFiles, bytes // or more
	}
	for _, p := range parts {
		bytes += len(p.URI) + len(p.Digest) + len(`{"uri":"","digest":"","size":000000},`)
	}
	return len(parts), bytes
}

// getSkill returns one of them by its URI. ErrNone: it is none of them.
func (l *Library) getSkill(ctx context.Context, v View, uri string) (Cacheable, error) {
	name, file, err := parseSkill(uri)
	if err != nil || file != skillFile {
		return nil, ErrNone
	}
	k, err := l.skill(ctx, v, name)
	if err != nil {
		return nil, err
	}
	if !k.Public() || uri != skillURI(k.Name, skillFile) {
		return nil, ErrNone
	}
	entry, err := v.publish(ctx, k)
	return &getSkillResult{Skill: entry}, err
}

// publish makes the entry of a skill.
func (v View) publish(ctx context.Context, k skills.Skill) (skillEntry, error) {
	entry := skillEntry{URI: skillURI(k.Name, skillFile), FrontMatter: k.Front, Resources: dynamicParts}
	files, complete, err := v.State.Skills.Manifest(ctx, v.reach(k), k, maxPage)
	if err != nil || !complete {
		return entry, err
	}
	parts := make([]skillPart, 0, len(files))
	for _, f := range files {
		parts = append(parts, skillPart{URI: skillURI(k.Name, f.Path), Digest: "sha256:" + f.SHA256, Size: f.Size})
	}
	entry.Resources = parts
	return entry, nil
}

// readDirectory lists what lies directly in a directory of a skill, by name: one page, which begins behind the cursor.
// ErrNoDirectory: there is none that the session may see; ErrCursor: the cursor is none of ours.
func (l *Library) readDirectory(ctx context.Context, v View, a Asked) (Cacheable, error) {
	last, err := a.after()
	if err != nil {
		return nil, err
	}
	name, below, err := parseSkill(a.URI)
	if err != nil {
		return nil, ErrNoDirectory
	}
	k, err := l.skill(ctx, v, name)
	if errors.Is(err, ErrNone) {
		return nil, ErrNoDirectory
	}
	if err != nil {
		return nil, err
	}
	list := &readDirectoryResult{Resources: []mcp.Resource{}}
	if k.Flat {
		if below != "" {
			return nil, ErrNoDirectory
		}
		list.Resources = append(list.Resources, mcp.Resource{URI: skillURI(k.Name, skillFile), Name: skillFile,
			MIMEType: mediaType(skillFile)})
		return list, nil
	}
	entries, err := v.reach(k).ReadDir(filepath.Join(k.Dir, filepath.FromSlash(below)), maxEntries)
	if err != nil {
		return nil, ErrNoDirectory
	}
	slices.SortFunc(entries, func(a, b fs.FileInfo) int { return strings.Compare(a.Name(), b.Name()) })
	for _, e := range entries {
		if e.Name() <= last {
			continue
		}
		if len(list.Resources) == pageEntries {
			list.NextCursor = cursorAfter + list.Resources[pageEntries-1].Name
			break
		}
		at := mcp.Resource{URI: skillURI(k.Name, path.Join(below, e.Name())), Name: e.Name(), MIMEType: directoryType}
		switch {
		case e.Mode().IsRegular():
			size := e.Size()
			at.MIMEType, at.Size = mediaType(e.Name()), &size
		case !e.IsDir():
			continue
		}
		list.Resources = append(list.Resources, at)
	}
	return list, nil
}
