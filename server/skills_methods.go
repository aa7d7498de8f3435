package server

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

	"codehand/server/jsonrpc"
	"codehand/tools/skills"
)

// The skills extension of MCP (SEP-2640): what it is called in the capabilities, and its methods.
const (
	skillsExtension     = "io.modelcontextprotocol/skills"
	methodSkillsList    = "skills/list"
	methodSkillsGet     = "skills/get"
	methodDirectoryRead = "resources/directory/read"
)

// directoryType is the media type of a directory.
const directoryType = "inode/directory"

const (
	// maxEntries is how many entries of a directory are looked at, and pageEntries how many of them one page lists.
	maxEntries  = 10_000
	pageEntries = 2_000
	// maxPageFiles and maxPageBytes are what one page of skills has at most: files that are looked at for it, and about how
	// many bytes of JSON. One skill alone may have more bytes, never more than the wire allows.
	maxPageFiles = 2_000
	maxPageBytes = 1 << 20
	// cursorAfter begins a cursor; the name of what the page before ended with follows.
	cursorAfter = "after "
)

// extensions is what the capabilities say. Earlier protocols have no such field, but let servers add some.
func extensions() map[string]any {
	return map[string]any{skillsExtension: map[string]any{"directoryRead": true}}
}

// extends says whether a method is one that mcp-go does not know and we do.
func extends(method string) bool {
	return method == methodSkillsList || method == methodSkillsGet || method == methodDirectoryRead
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

// dynamicParts stands for the files of a skill that cannot all be published with their digests: there are too many, or one
// is longer than an answer, so that nobody could compare it.
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

// extended answers a method of the extension in the place of mcp-go, which has made all its checks by then and knows no
// such method. ok is false for any other method, and for any other answer of mcp-go.
func (s *Server) extended(ctx context.Context, rec *record, code int) (answer mcp.JSONRPCMessage, ok bool) {
	if code != mcp.METHOD_NOT_FOUND || !extends(rec.env.Method) {
		return nil, false
	}
	result, err := s.extend(ctx, rec)
	switch {
	case errors.Is(err, errNoResource), errors.Is(err, errNoDirectory):
		return failed(&jsonrpc.Error{Code: mcp.INVALID_PARAMS, Message: err.Error(), Data: map[string]any{"uri": rec.env.URI}}), true
	case errors.Is(err, errCursor):
		return failed(&jsonrpc.Error{Code: mcp.INVALID_PARAMS, Message: err.Error()}), true
	case err != nil:
		return failed(s.internal(ctx, rec.env.Method, err)), true
	}
	if rec.modern {
		result.SetResultType(mcp.ResultTypeComplete)
		result.EnsureResultMeta().SetServerInfo(s.implementation)
		result.SetCacheHints(0, mcp.CacheScopePrivate) // files change at any time, and their digests with them
	}
	return mcp.JSONRPCResponse{JSONRPC: mcp.JSONRPC_VERSION, Result: result}, true
}

// A cacheable is a result that says how long it holds.
type cacheable interface {
	mcp.ResultMetadata
	mcp.CacheHintSetter
}

// The reasons why a method of the extension is not answered, besides errNoResource.
var (
	errNoDirectory = errors.New("the URI names no directory of a skill")
	errCursor      = errors.New("the cursor is none of this list; leave it out to begin")
)

func (s *Server) extend(ctx context.Context, rec *record) (cacheable, error) {
	switch rec.env.Method {
	case methodSkillsList:
		return s.listSkills(ctx, rec)
	case methodSkillsGet:
		return s.getSkill(ctx, rec, rec.env.URI)
	}
	return s.readDirectory(ctx, rec, rec.env.URI)
}

// listSkills returns the skills of the caller's session that meet the public format, by name: those of one page, which
// begins behind the cursor. errCursor: it is none of ours.
func (s *Server) listSkills(ctx context.Context, rec *record) (cacheable, error) {
	last, err := pageStart(rec.env)
	if err != nil {
		return nil, err
	}
	set, err := s.skills(ctx, rec)
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
		entry, err := rec.publish(ctx, k)
		if err != nil {
			return nil, err
		}
		more, size := entry.costs()
		files, bytes, last = files+more, bytes+size, k.Name
		list.Skills = append(list.Skills, entry)
	}
	return list, nil
}

// pageStart is the name behind which a page begins; "": it is the first. errCursor: the cursor is none of ours.
func pageStart(env jsonrpc.Envelope) (string, error) {
	last, ok := strings.CutPrefix(env.Cursor, cursorAfter)
	if env.HasCursor && !(ok && nameable(last)) {
		return "", errCursor
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

// getSkill returns one of them by its URI. errNoResource: it is none of them.
func (s *Server) getSkill(ctx context.Context, rec *record, uri string) (cacheable, error) {
	name, file, err := parseSkill(uri)
	if err != nil || file != skillFile {
		return nil, errNoResource
	}
	k, err := s.skill(ctx, rec, name)
	if err != nil {
		return nil, err
	}
	if !k.Public() || uri != skillURI(k.Name, skillFile) {
		return nil, errNoResource
	}
	entry, err := rec.publish(ctx, k)
	return &getSkillResult{Skill: entry}, err
}

// publish makes the entry of a skill.
func (r *record) publish(ctx context.Context, k skills.Skill) (skillEntry, error) {
	entry := skillEntry{URI: skillURI(k.Name, skillFile), FrontMatter: k.Front, Resources: dynamicParts}
	files, complete, err := r.state.Skills.Manifest(ctx, r.reach(k), k, maxPage)
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
// errNoDirectory: there is none that the session may see; errCursor: the cursor is none of ours.
func (s *Server) readDirectory(ctx context.Context, rec *record, uri string) (cacheable, error) {
	last, err := pageStart(rec.env)
	if err != nil {
		return nil, err
	}
	name, below, err := parseSkill(uri)
	if err != nil {
		return nil, errNoDirectory
	}
	k, err := s.skill(ctx, rec, name)
	if errors.Is(err, errNoResource) {
		return nil, errNoDirectory
	}
	if err != nil {
		return nil, err
	}
	list := &readDirectoryResult{Resources: []mcp.Resource{}}
	if k.Flat {
		if below != "" {
			return nil, errNoDirectory
		}
		list.Resources = append(list.Resources, mcp.Resource{URI: skillURI(k.Name, skillFile), Name: skillFile, MIMEType: mediaType(skillFile)})
		return list, nil
	}
	entries, err := rec.reach(k).ReadDir(filepath.Join(k.Dir, filepath.FromSlash(below)), maxEntries)
	if err != nil {
		return nil, errNoDirectory
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

func failed(e *jsonrpc.Error) mcp.JSONRPCMessage {
	return mcp.JSONRPCError{JSONRPC: mcp.JSONRPC_VERSION, Error: mcp.JSONRPCErrorDetails{Code: e.Code, Message: e.Message, Data: e.Data}}
}
