package resources

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"io/fs"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"

	"codehand/server/sessions"
	"codehand/tools/results"
	"codehand/tools/skills"
)

const (
	skillScheme   = "skill://"
	skillFile     = "SKILL.md"
	skillTemplate = skillScheme + "{name}/{+path}"
	// maxSkillFiles is how many files of a skill are looked at, for completions and directories: those of a manifest.
	maxSkillFiles = 512
	// maxSkillText is how many bytes a text may have that is shown by lines: all of it is read, to count them.
	maxSkillText = 256 << 20
	// maxSkillTitle is how many characters of the name that a skill gives itself a list shows.
	maxSkillTitle = 200
)

// skillURI names a file of a skill, or with "" its directory. Everything that is not unreserved in RFC 3986 is escaped,
// so that the name is one authority, and a template's variable.
func skillURI(name, file string) string {
	uri := skillScheme + escapeURI(name)
	if file != "" {
		for part := range strings.SplitSeq(file, "/") {
			uri += "/" + escapeURI(part)
		}
	}
	return uri
}

// escapeURI escapes one segment of a URI. QueryEscape leaves what is unreserved, but for spaces.
func escapeURI(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }

// parseSkill takes the URI of a skill's file apart, or that of a directory of it. The file is slash-separated and has
// no part that leads elsewhere; "": the skill's directory itself. ErrNone: it cannot name one.
func parseSkill(uri string) (name, file string, err error) {
	rest, ok := strings.CutPrefix(uri, skillScheme)
	if !ok || strings.ContainsAny(rest, "?#") {
		return "", "", ErrNone
	}
	var parts []string
	for part := range strings.SplitSeq(strings.TrimSuffix(rest, "/"), "/") {
		text, err := url.PathUnescape(part)
		if err != nil || !nameable(text) {
			return "", "", ErrNone
		}
		parts = append(parts, text)
	}
	return parts[0], strings.Join(parts[1:], "/"), nil
}

// Skills finds those of the caller's session, as they are now. Who may not read has none.
func (l *Library) Skills(ctx context.Context, v View) (skills.Set, error) {
	if !v.Reads() {
		return skills.Set{}, nil
	}
	if _, err := sessions.Locate(ctx, v.State); err != nil {
		return skills.Set{}, err
	}
	return v.State.FindSkills(ctx)
}

// skill finds one of the caller's session. ErrNone: it has none of this name.
func (l *Library) skill(ctx context.Context, v View, name string) (skills.Skill, error) {
	set, err := l.Skills(ctx, v)
	if err != nil {
		return skills.Skill{}, err
	}
	k, ok := set.Find(name)
	if !ok {
		return k, ErrNone
	}
	return k, nil
}

// openSkill opens a file of a skill. A flat skill is its own only file, under the name that all others have. ErrNone:
// there is no regular file of this name that the session may see.
func (v View) openSkill(k skills.Skill, file string) (fs.File, error) {
	at := filepath.Join(k.Dir, filepath.FromSlash(file))
	if k.Flat {
		if file != skillFile {
			return nil, ErrNone
		}
		at = k.File
	}
	f, err := v.reach(k).Open(at)
	if err != nil {
		return nil, ErrNone
	}
	return f, nil
}

// readSkill returns a file of a skill, byte for byte: who compares its digest must get what the digest was made of.
// Text is shown by lines if it is longer than an answer, or if lines are asked for.
func (l *Library) readSkill(ctx context.Context, v View, uri string) (mcp.ResourceContents, error) {
	base, query, asked := strings.Cut(uri, "?")
	name, file, err := parseSkill(base)
	if err != nil || file == "" || strings.HasSuffix(base, "/") {
		return nil, ErrNone
	}
	at := resourceAt{name: base, first: 1, lines: pageLines}
	if err := at.window(query); err != nil {
		return nil, err
	}
	k, err := l.skill(ctx, v, name)
	if err != nil {
		return nil, err
	}
	f, err := v.openSkill(k, file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	if info, err := f.Stat(); err != nil || info.Size() > maxSkillText {
		return nil, ErrTooLarge
	}
	head, err := io.ReadAll(io.LimitReader(f, maxPage+1))
	if err != nil {
		return nil, ErrNone
	}
	kind, long := mediaType(file), len(head) > maxPage
	text := isText(head, long)
	if text && kind == unknownType {
		kind = textPlain // such as LICENSE: clients treat the other type as unreadable
	}
	switch {
	case !text && long:
		return nil, ErrTooLarge
	case !text:
		return mcp.BlobResourceContents{URI: uri, MIMEType: kind, Blob: base64.StdEncoding.EncodeToString(head)}, nil
	case !asked && !long:
		return mcp.TextResourceContents{URI: uri, MIMEType: kind, Text: string(head)}, nil
	}
	var p results.Page
	if err := at.into(&p)(io.MultiReader(bytes.NewReader(head), io.LimitReader(f, maxSkillText))); err != nil {
		return nil, err
	}
	return shownAs(uri, kind, at.shown(p, "")), nil
}

// isText says whether the beginning of a file is text; cut: more follows, so its end may lie within a character.
func isText(b []byte, cut bool) bool {
	if cut {
		for range utf8.UTFMax - 1 {
			if r, n := utf8.DecodeLastRune(b); r == utf8.RuneError && n == 1 {
				b = b[:len(b)-1]
			}
		}
	}
	return utf8.Valid(b) && !slices.Contains(b, 0)
}

// mediaType is the type of a file by its name. It is a table of our own, so that it is the same on every machine.
func mediaType(file string) string {
	if kind, ok := mediaTypes[strings.ToLower(path.Ext(file))]; ok {
		return kind
	}
	return unknownType
}

// unknownType is the media type of what has no known one.
const unknownType = "application/octet-stream"

var mediaTypes = map[string]string{
	".md": "text/markdown", ".txt": "text/plain", ".html": "text/html", ".css": "text/css", ".csv": "text/csv",
	".xml": "text/xml", ".js": "text/javascript", ".ts": "text/plain", ".py": "text/x-python",
	".sh": "text/x-shellscript", ".go": "text/plain", ".rb": "text/plain", ".json": "application/json",
	".yaml": "application/yaml", ".yml": "application/yaml", ".toml": "application/toml", ".png": "image/png",
	".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp", ".svg": "image/svg+xml",
	".pdf": "application/pdf", ".zip": "application/zip",
}

// frontName is the name that a skill gives itself, else that of its directory.
func frontName(k skills.Skill) string {
	var front struct {
		Name any `json:"name"`
	}
	_ = json.Unmarshal(k.Front, &front) // the engine made it; without a name there is another
	if name, ok := front.Name.(string); ok && name != "" {
		return results.Line(results.Clean(name), maxSkillTitle)
	}
	return k.Name
}

// skillResources lists the main file of each skill, for models and persons alike.
func skillResources(set skills.Set) []mcp.Resource {
	list := make([]mcp.Resource, 0, len(set.Skills))
	for _, k := range set.Skills {
		list = append(list, mcp.Resource{
			URI: skillURI(k.Name, skillFile), Name: frontName(k),
			Description: results.Line(results.Clean(k.Description), skills.MaxLine), MIMEType: mediaType(skillFile),
		})
	}
	return list
}
