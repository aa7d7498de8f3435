package doctor

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"codehand/server/clients/install"
)

// This file looks at what only Claude Code has: entries for one directory in the user's file (local scope, what `claude
// mcp add` writes without -s), and settings that deny its own tools.

const claudeCode = "claude-code"

// claudeFile is a file of the user's, below the directory that a variable names, or else the home directory.
func (m clientChecks) claudeFile(moved, usual string) string {
	if dir := m.getenv("CLAUDE_CONFIG_DIR"); filepath.IsAbs(dir) {
		return filepath.Join(dir, moved)
	}
	return filepath.Join(m.Config.Home, usual)
}

// maxClaudeFile is how much of a file of Claude Code is read, in bytes: it keeps its history in the same file.
const maxClaudeFile = 32 << 20

// readJSON reads a file into v. What cannot be read says nothing: the check of the clients names a broken file.
func readJSON(file string, v any) {
	if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() { // to open a FIFO would wait
		return
	}
	f, err := os.Open(file)
	if err != nil {
		return
	}
	defer func() { _ = f.Close() }() // it was only read
	_ = json.NewDecoder(io.LimitReader(f, maxClaudeFile)).Decode(v)
}

// localScope are the directories for which the user's file names codehand, each sorted behind the one before.
func (m clientChecks) localScope() (file string, dirs []string) {
	file = m.claudeFile(".claude.json", ".claude.json")
	var all struct {
		Projects map[string]json.RawMessage `json:"projects"`
	}
	readJSON(file, &all)
	for _, dir := range slices.Sorted(maps.Keys(all.Projects)) {
		var project struct {
			Servers map[string]json.RawMessage `json:"mcpServers"`
		}
		if json.Unmarshal(all.Projects[dir], &project) != nil {
			continue
		}
		for name, text := range project.Servers {
			var e struct {
				Command  string `json:"command"`
				URL      string `json:"url"`
				Disabled bool   `json:"disabled"`
			}
			named := json.Unmarshal(text, &e) == nil && !e.Disabled && (name == "codehand" && e.Command+e.URL != "" ||
				install.Entry{Command: e.Command}.Ours())
			if named && !slices.Contains(dirs, dir) {
				dirs = append(dirs, dir)
			}
		}
	}
	return file, dirs
}

// here says whether one of these directories is a project that is looked at, or the top of its git work tree.
func (m clientChecks) here(dirs []string) bool {
	return slices.ContainsFunc(append(m.project(""), m.projects()...), func(dir string) bool {
		return slices.ContainsFunc(dirs, func(other string) bool { return same(dir, other) })
	})
}

// deniedTools are those without which Claude Code can do nothing with files. install --exclusive denies them, and more.
var deniedTools = []string{"Read", "Edit", "Write", "Bash"}

// claude says what is to be known of Claude Code besides its entries, which stand in found. local: an entry counts for
// some directory.
func (m clientChecks) claude(found []install.Found) (out []Finding, local bool) {
	if m.Client != "" && m.Client != claudeCode {
		return nil, false
	}
	entries, used := false, false
	for _, f := range found {
		if f.Client == claudeCode {
			entries = entries || f.Entry != nil
			used = used || f.Err != nil || f.Entry != nil && !f.Entry.Disabled // a broken file is a finding of its own
		}
	}
	file, dirs := m.localScope()
	s := &series{id: "clients"}
	if len(dirs) > 0 && !entries {
		s.add(Note, fmt.Sprintf("claude-code: configured in %s for these directories alone (local scope): %s", file,
			strings.Join(dirs, ", ")), "to have it in all of them, run: codehand install claude-code")
	}
	if !used && !m.here(dirs) {
		s.found = append(s.found, m.withoutTools()...)
	}
	return s.found, len(dirs) > 0
}

// withoutTools looks for settings that deny Claude Code its own tools.
func (m clientChecks) withoutTools() []Finding {
	files := []string{m.claudeFile("settings.json", filepath.Join(".claude", "settings.json"))}
	for _, project := range m.projects() {
		files = append(files, filepath.Join(project, ".claude", "settings.json"))
	}
	s := &series{id: "clients"}
	for i, file := range files {
		var settings struct {
			Permissions struct {
				Deny, Allow []string
			} `json:"permissions"`
		}
		readJSON(file, &settings)
		denied := settings.Permissions.Deny
		if slices.ContainsFunc(deniedTools, func(tool string) bool { return !slices.Contains(denied, tool) }) {
			continue
		}
		back := "codehand uninstall claude-code"
		if i > 0 {
			back = "codehand uninstall --project claude-code"
		}
		text := fmt.Sprintf("claude-code: %s denies Claude Code its own %s, and no file names codehand here: it "+
			"has no tools for files", file, strings.Join(deniedTools, ", "))
		if slices.ContainsFunc(settings.Permissions.Allow, func(rule string) bool {
			return strings.HasPrefix(rule, "mcp__codehand__")
		}) {
			s.add(Fail, text, "to use codehand, run: codehand install claude-code; to have its own tools back, run: "+
				back)
		} else { // then a person wrote it
			s.add(Note, text, "if you did not mean it, take them out of permissions.deny, or run: codehand install "+
				claudeCode)
		}
	}
	return s.found
}
