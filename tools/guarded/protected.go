package guarded

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// ofClients are the names that clients.Client.Protects has. go test ./server/clients -update writes them here, since
// what is known of clients lies above this room.
//
//go:embed clients.txt
var ofClients string

// A Group is names that are protected for one reason.
type Group struct {
	Why   string
	Names []string
	more  func(*fileName) // what is special about each; nil: nothing
}

// Groups are the files that decide what other programs run, and what an agent may do: a person must allow every change
// of one, in every mode. Each counts at any depth and with everything below it. The list is what docs/permissions.md
// shows; tools/confine says what of it a command is kept from by the kernel. What package managers make anew with each
// installation is not among them (`node_modules`, `.pnp.cjs`, `.yarn/cache`): commands must be able to write it, and
// hooks or settings of an editor do not run it by themselves.
//
// The directory itself counts, too (`mv evil .git/hooks`). A `.git` that is a file is not told from a directory here,
// as this package never looks at the disk: a path that ends in `.git` counts as a directory. What tools write are
// files, and a command that puts another directory there is as good as one that changes what is in it. For the same
// reason the directories of git that lead to a protected name count where a path ends in them (`cp attributes
// .git/info`).
var Groups = []Group{
	{Why: "agents and editors", Names: slices.Concat(strings.Fields(ofClients),
		[]string{".devcontainer/**", ".devcontainer.json"})},
	{Why: "agents and editors", Names: []string{".claude/**", ".codehand/**"},
		more: func(n *fileName) { n.but = "worktrees" }},
	{Why: "git: what it runs", Names: []string{
		".git/config", ".git/config.worktree", ".git/hooks/**", ".git/info/attributes", ".git/modules/**/config",
		".git/modules/**/hooks/**", ".git/worktrees/**/config.worktree", ".gitmodules", ".gitconfig",
	}},
	{Why: "git: where it finds a repository, and what it runs later", Names: []string{
		".git/commondir", ".git/gitdir", ".git/modules/**/commondir", ".git/worktrees/**/commondir",
		".git/worktrees/**/gitdir", ".git/objects/info/alternates", ".git/rebase-merge/**", ".git/rebase-apply/**",
		".git/sequencer/**", ".git/config.lock",
	}},
	{Why: "git: where it finds a repository, and what it runs later",
		Names: []string{".git", ".git/info", ".git/modules", ".git/worktrees"},
		more:  func(n *fileName) { n.last = true }},
	{Why: "Mercurial, Sapling and Jujutsu: what they run", Names: []string{
		".hg/hgrc", ".hg/hgrc-not-shared", ".hg/sharedpath", ".sl/config", ".jj/repo/config.toml",
		".jj/workspace-config.toml",
	}},
	{Why: "programs that git starts",
		Names: slices.Concat([]string{".husky/**", ".pre-commit-config.yaml"}, lefthook())},
	{Why: "shells and sessions of the desktop", Names: []string{
		".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".profile", ".zshrc", ".zshenv", ".zprofile",
		".zlogin", ".zlogout", ".kshrc", ".inputrc", ".envrc", ".config/fish/**", ".config/git/**",
		".config/autostart/**", ".config/systemd/**", ".config/environment.d/**", "Library/LaunchAgents/**",
		".bash_aliases", ".xprofile", ".pam_environment", ".ssh/rc", ".ssh/authorized_keys",
	}},
	{Why: "programs that read what they run from the directory in which they start", Names: []string{
		".Rprofile", ".irbrc", ".pdbrc", ".ghci", ".latexmkrc", ".helix/**", ".aider.conf.yml",
	}},
	{Why: "build tools and package managers", Names: []string{
		".cargo/**", ".npmrc", ".yarnrc", ".yarnrc.yml", ".yarn/releases/**", ".yarn/plugins/**", ".yarn/sdks/**",
		"pyrightconfig.json", "bunfig.toml", ".bazelrc", ".ripgreprc", "gradle/wrapper/**", ".mvn/**",
	}},
}

// lefthook are the files by which that program is told what hooks run, as its documentation lists them.
func lefthook() (names []string) {
	for _, name := range [...]string{"lefthook", ".lefthook", "lefthook-local", ".lefthook-local"} {
		for _, ext := range [...]string{".yml", ".yaml", ".toml", ".json", ".jsonc"} {
			names = append(names, name+ext)
		}
	}
	return names
}

// protected are the names of Groups. They and secrets are parsed when they are asked for: each helper of a command is a
// start of this program, and needs none.
var protected = sync.OnceValue(func() *Names { return newNames(slices.Concat(namesOfGroups()...)) })

func namesOfGroups() (all [][]*fileName) {
	for _, g := range Groups {
		all = append(all, namesOf(g.more, g.Names...))
	}
	return all
}

// namesOf parses names of ours, and changes each by more.
func namesOf(more func(*fileName), texts ...string) []*fileName {
	names := make([]*fileName, len(texts))
	for i, text := range texts {
		n, err := parseName(text)
		if err != nil {
			panic(text + ": " + err.Error()) // a table of ours is wrong
		}
		if more != nil {
			more(n)
		}
		names[i] = n
	}
	return names
}

// Protected returns the built-in name (as `.git/hooks/**`) that path falls under, at any depth; "": none. path has
// slashes and may be relative; of an absolute one every component counts, so give what is below a root relative to it.
func Protected(path string) string { return protected().Find(path) }

// ProtectedNames returns the built-in names together with those of protect and without those of unprotect. A name of
// unprotect is one of the built-in ones or of those that SecretNames knows, with or without its `/**`.
func ProtectedNames(protect, unprotect []string) (*Names, error) {
	names, err := without(protected(), unprotect)
	if err != nil {
		return nil, err
	}
	for _, text := range protect {
		n, err := parseName(text)
		if err != nil {
			return nil, fmt.Errorf("protected name %q: %w", text, err)
		}
		names = append(names, n)
	}
	if len(protect)+len(unprotect) == 0 {
		return protected(), nil
	}
	return newNames(names), nil
}

// without returns the names of s that are not in texts.
func without(s *Names, texts []string) ([]*fileName, error) {
	for _, text := range texts {
		is := func(n *fileName) bool { return sameName(n, text) }
		if !slices.ContainsFunc(protected().all, is) && !slices.ContainsFunc(secrets().all, is) {
			return nil, fmt.Errorf("%q is not one of the names that are protected or secret without being told", text)
		}
	}
	return slices.DeleteFunc(slices.Clone(s.all), func(n *fileName) bool {
		return slices.ContainsFunc(texts, func(text string) bool { return sameName(n, text) })
	}), nil
}

func sameName(n *fileName, text string) bool {
	return n.text == text || strings.TrimSuffix(n.text, "/**") == strings.TrimSuffix(text, "/**")
}
