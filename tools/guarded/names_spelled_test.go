package guarded

import (
	"path"
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"
)

// guardedNames is the list of security.md 2.6 with a path for each entry, written from there and not from our table.
var guardedNames = []string{
	".git/config", ".git/config.worktree", ".git/hooks/pre-commit", ".git/hooks/deep/er", ".git/info/attributes", ".git/modules/lib/config", ".git/modules/a/b/config", ".git/modules/lib/hooks/x",
	".git/modules/a/b/hooks/x/y", ".git/worktrees/w/config.worktree", ".git", ".gitmodules", ".gitconfig",
	// not in the document: an attack found that git reads its configuration where commondir says
	".git/commondir", ".git/gitdir", ".git/modules/a/b/commondir", ".git/worktrees/w/commondir", ".git/worktrees/w/gitdir", ".git/objects/info/alternates",
	".git/rebase-merge/git-rebase-todo", ".git/rebase-apply/next", ".git/sequencer/todo", ".git/config.lock",
	".mcp.json", ".claude/settings.json", ".claude/skills/x/SKILL.md", ".claude.json", ".cursor/mcp.json", ".codex/config.toml", ".gemini/settings.json", ".windsurf/rules/x", ".codehand/config.toml",
	".vscode/tasks.json", ".idea/workspace.xml", ".zed/settings.json", ".devcontainer/devcontainer.json", ".devcontainer.json",
	".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".kshrc", ".inputrc", ".envrc",
	".config/fish/config.fish", ".config/git/config", ".config/autostart/x.desktop", ".config/systemd/user/x.service", "Library/LaunchAgents/x.plist",
	".hg/hgrc", ".hg/hgrc-not-shared", ".hg/sharedpath", ".sl/config", ".jj/repo/config.toml", ".jj/workspace-config.toml",
	".husky/pre-commit", ".pre-commit-config.yaml", "lefthook.yml", "lefthook-local.yml", ".cargo/config.toml", ".npmrc", ".yarnrc", ".yarnrc.yml", ".yarn/releases/x.cjs", ".yarn/plugins/x.cjs",
	"pyrightconfig.json", "bunfig.toml", ".bazelrc", ".ripgreprc", "gradle/wrapper/gradle-wrapper.properties", ".mvn/wrapper/maven-wrapper.properties",
	// not in the document: an adversary found that they run as well
	"opencode.json", ".opencode/plugin/x.js", ".kiro/settings/mcp.json", ".kiro/hooks/x", ".continue/mcpServers/x.yaml", ".junie/mcp/mcp.json", ".github/mcp.json", "crush.json",
	".config/environment.d/x.conf", ".bash_aliases", ".xprofile", ".pam_environment", ".ssh/rc", ".ssh/authorized_keys",
	".Rprofile", ".irbrc", ".pdbrc", ".ghci", ".latexmkrc", ".helix/languages.toml", ".aider.conf.yml",
	".größe/é", // of the operator: the names above are ASCII, which has one normal form
}

// plainNames are neighbours of listed names, which cause no question.
var plainNames = []string{
	".claude/worktrees/x", ".claude/worktrees/x/main.go", ".codehand/worktrees/x", ".codehand/worktrees/x/main.go", "claude/settings.json", "codehand/config.toml", ".claude.md", ".claude.json.md", ".cursorrules", ".codexx/config.toml",
	"git/config", ".git/HEAD", ".git/index", ".git/refs/heads/config", ".git/logs/hooks", ".git/info/exclude", ".git/modules/lib/HEAD", ".git/worktrees/w/HEAD", ".gitignore", ".gitattributes", ".gitkeep", "gitmodules", "gitconfig",
	".gitconfig.md", ".gitmodules.txt", ".github/workflows/ci.yml", ".kiro/specs/x.md", ".junie/guidelines.md", "Rprofile", ".ssh/known_hosts", ".github/hooks/x", ".gitlab-ci.yml", ".gitlab/config", "mcp.json", ".mcp.json.md", ".mcp/json",
	"vscode/tasks.json", ".vscode-test/x", ".vscodeignore", ".ideas/x", ".zedx", "devcontainer.json", ".devcontainers/x",
	"bashrc", ".bashrc.d/x", "dot_bashrc", ".profiles", "profile", ".zshrc.md", ".envrc.md", ".env", ".inputrc.md", ".config/nvim/init.lua", ".config/fisher/x", "config/fish/x", "Library/Preferences/x.plist", "LaunchAgents/x.plist",
	"husky/pre-commit", ".huskyrc", "pre-commit-config.yaml", ".pre-commit-hooks.yaml", "lefthoo.yml", "cargo/config.toml", "Cargo.toml", "npmrc", ".npmrc.md", ".npmignore", "yarnrc", ".yarnignore", "yarn.lock", "pnp.cjs", ".pnpm/x", ".pnpmfile.cjs",
	"pyrightconfig.json.md", "bunfig.tom", "bazelrc", ".bazelrc.md", ".bazelignore", "ripgreprc", "gradle/libs.versions.toml", "gradlew", "gradle-wrapper.properties", "wrapper/x", ".mvnw", "mvnw", "größe/é", ".große/é",
}

// ignoredByHFS are the code points of security.md 2.6.
func ignoredByHFS() (all []rune) {
	for _, r := range [][2]rune{{0x200c, 0x200f}, {0x202a, 0x202e}, {0x206a, 0x206f}, {0xfeff, 0xfeff}} {
		for c := r[0]; c <= r[1]; c++ {
			all = append(all, c)
		}
	}
	return all
}

// spellings are the ways to write one component that some system takes for the same name.
func spellings(name string) (all []string) {
	alternating := func(first int) string {
		runes := []rune(strings.ToLower(name))
		for i := first; i < len(runes); i += 2 {
			runes[i] = []rune(strings.ToUpper(string(runes[i])))[0]
		}
		return string(runes)
	}
	all = []string{
		name, strings.ToUpper(name), strings.ToLower(name), alternating(0), alternating(1), norm.NFC.String(name), norm.NFD.String(name), norm.NFD.String(strings.ToUpper(name)),
		strings.NewReplacer("s", "\u017f", "k", "\u212a").Replace(name), // LONG S and KELVIN SIGN, which fold to letters
	}
	for _, end := range []string{".", "..", "...", " ", "  ", ". .", " .", "::$DATA", "::$data", ":stream", ":a:$DATA", "::$INDEX_ALLOCATION", ":$I30:$INDEX_ALLOCATION", ".::$DATA", " :x", ".\u200c", "\u200d.", ". \ufeff"} {
		all = append(all, name+end, strings.ToUpper(name)+end)
	}
	runes := []rune(name)
	for _, r := range ignoredByHFS() {
		for _, at := range []int{0, 1, len(runes) / 2, len(runes)} {
			all = append(all, string(runes[:at])+string(r)+string(runes[at:]))
		}
	}
	return append(all, shortForms(name)...)
}

// shortForms are what FAT and NTFS may call a file besides, by their own rule: six letters, a number, three letters of the
// last extension. A name that is short already has none, nor has one that is not ASCII, whose letters depend on the machine.
func shortForms(name string) (all []string) {
	long := strings.ToUpper(strings.TrimLeft(name, "."))
	base, ext, dotted := strings.Cut(long, ".")
	if i := strings.LastIndexByte(long, '.'); i >= 0 {
		base, ext = strings.ReplaceAll(long[:i], ".", ""), long[i+1:]
	}
	if long == strings.ToUpper(name) && len(base) <= 8 && len(ext) <= 3 || strings.ContainsFunc(name, func(r rune) bool { return r >= 0x80 }) {
		return nil
	}
	for _, number := range []string{"~1", "~2", "~9", "~10"} {
		short := base[:min(len(base), 8-len(number))] + number
		if dotted {
			short += "." + ext[:min(len(ext), 3)]
		}
		all = append(all, short, strings.ToLower(short), short+".", short+"::$DATA")
	}
	return all
}

// SEC-08, generated: each listed name, in each spelling of each of its components and of all at once, at three depths.
func TestProtectedSpellings(t *testing.T) {
	t.Parallel()
	set, err := ProtectedNames([]string{".größe/é"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	depths := []string{"", "a/", "a/b c/d/", "/w/", "./", "a/../", "node_modules/.bin/"}
	tried := 0
	try := func(file string) {
		for _, depth := range depths {
			if tried++; set.Find(depth+file) == "" {
				t.Errorf("%+q is not protected", depth+file)
			}
		}
	}
	for _, name := range guardedNames {
		components := strings.Split(name, "/")
		for i, component := range components {
			if i > 0 && i == len(components)-1 && set.Find(path.Join(components[:i]...)) != "" {
				continue // whatever it is called, it is below a protected directory
			}
			for _, spelled := range spellings(component) {
				changed := append([]string{}, components...)
				changed[i] = spelled
				if free := strings.HasPrefix(name, ".git/modules/") || strings.HasPrefix(name, ".git/worktrees/"); free && (i == 2 || i == 3 && len(components) > 4) {
					continue // any directory
				}
				try(strings.Join(changed, "/"))
			}
		}
		for k := range spellings("xx") { // all at once
			changed := append([]string{}, components...)
			for i, component := range components {
				forms := spellings(component)
				changed[i] = forms[k%len(forms)]
			}
			try(strings.Join(changed, "/"))
		}
	}
	for _, name := range plainNames {
		for _, depth := range depths {
			if tried++; set.Find(depth+name) != "" {
				t.Errorf("%+q is protected as %q", depth+name, set.Find(depth+name))
			}
		}
	}
	if len(ignoredByHFS()) != 16 {
		t.Errorf("%d code points", len(ignoredByHFS()))
	}
	t.Logf("%d listed and %d plain names in %d spellings", len(guardedNames), len(plainNames), tried)
}
