package tenants

import (
	"path/filepath"

	"codehand/server/auth"
	"codehand/server/config"
	"codehand/tools/session"
	"codehand/tools/skills"
)

// prefs are the settings that tools read.
func prefs(c config.Config) session.Prefs {
	const background = "shell.auto_background_ms"
	p := session.Prefs{
		ReadDedup:         c.Read.Dedup == "once",
		ReadVersion:       c.Read.Version == "always",
		ReadMaxTokens:     c.Read.MaxTokens,
		ReadMaxLine:       c.Read.MaxLine,
		ReadLines:         c.Read.LineFormat,
		ShellFold:         c.Shell.Fold,
		EditRelaxed:       c.Edit.Guard == "relaxed",
		EditMarkers:       c.Edit.Desanitize,
		ListLimit:         c.List.Limit,
		ListGitignore:     c.List.Gitignore,
		ListTimeoutMS:     c.List.TimeoutMS,
		GrepMode:          c.Grep.DefaultMode,
		GrepTimeoutMS:     c.Grep.TimeoutMS,
		ShellDefaultMS:    c.Shell.DefaultTimeoutMS,
		ShellMaxMS:        c.Shell.MaxTimeoutMS,
		ShellBackgroundMS: c.Shell.AutoBackgroundMS,
		NoPDF:             noPDFReason(c),
		SkillShell:        c.Skills.AllowShell,
		ManagedRules:      c.Permissions.ManagedRulesOnly,
	}
	switch {
	case c.OfProject(c.Origin(background)):
		p.ShellBackgroundMost = c.Shell.AutoBackgroundMS
	case c.Said(background):
		p.ShellBackgroundSet = true
	}
	return p
}

// noPDFReason says who switched off that PDF files are read; "": they are read.
func noPDFReason(c config.Config) string {
	switch {
	case c.Read.PDF:
		return ""
	case c.OfProject(c.Origin("read.pdf")):
		return "a project file switched that off (read.pdf)"
	}
	return "the operator switched that off (read.pdf)"
}

// typeDirs are the directories of types of sub-agents, as skillDirs those of skills.
func (m *Maker) typeDirs(who auth.Principal) []skills.Dir {
	var dirs []skills.Dir
	for _, dir := range m.Config.Tools.Agent.Dirs {
		dirs = append(dirs, skills.Dir{Path: dir, Trust: skills.Operator, Flat: true})
	}
	if who.Via != auth.ModeNone {
		return dirs
	}
	if base := m.Config.ConfigHome; filepath.IsAbs(base) {
		dirs = append(dirs, skills.Dir{Path: filepath.Join(base, "codehand", "agents"), Trust: skills.User, Flat: true})
	}
	if home := m.Config.Home; filepath.IsAbs(home) {
		dirs = append(dirs, skills.Dir{Path: filepath.Join(home, ".claude", "agents"), Trust: skills.User, Flat: true})
	}
	return dirs
}

// skillDirs are the directories of skills that are not in the workspace, the one that wins a clash first. Those of the
// home directory belong to the person who started this process, and to no other principal.
func (m *Maker) skillDirs(who auth.Principal) []skills.Dir {
	var dirs []skills.Dir
	for _, dir := range m.Config.Skills.Dirs {
		dirs = append(dirs, skills.Dir{Path: dir, Trust: skills.Operator})
	}
	if who.Via != auth.ModeNone {
		return dirs
	}
	if base := m.Config.ConfigHome; filepath.IsAbs(base) {
		dirs = append(dirs, skills.Dir{Path: filepath.Join(base, "codehand", "skills"), Trust: skills.User})
	}
	if home := m.Config.Home; filepath.IsAbs(home) {
		dirs = append(dirs,
			skills.Dir{Path: filepath.Join(home, ".claude", "skills"), Trust: skills.User},
			skills.Dir{Path: filepath.Join(home, ".claude", "commands"), Trust: skills.User, Flat: true})
	}
	return dirs
}
