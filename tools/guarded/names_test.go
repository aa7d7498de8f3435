package guarded

import (
	"fmt"
	"path"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// SEC-08: each name, and the spellings by which one system or another reaches the same file.
func TestProtectedNames(t *testing.T) {
	for _, c := range []struct{ path, want string }{
		// As they are.
		{".git/config", ".git/config"},
		{"/w/a/.git/config", ".git/config"},
		{".git/config.worktree", ".git/config.worktree"},
		{".git/hooks/pre-commit", ".git/hooks/**"},
		{".git/hooks", ".git/hooks/**"},
		{".git/hooks/a/b", ".git/hooks/**"},
		{".git/info/attributes", ".git/info/attributes"},
		{".git/modules/a/config", ".git/modules/**/config"},
		{".git/modules/config", ".git/modules/**/config"},
		{".git/modules/a/b/hooks/x", ".git/modules/**/hooks/**"},
		{".git/worktrees/a/config.worktree", ".git/worktrees/**/config.worktree"},
		{".gitmodules", ".gitmodules"},
		{"a/.gitconfig", ".gitconfig"},
		{"a/.git", ".git"},
		{"a/.git/", ".git"},
		{".git/info", ".git/info"},
		{".mcp.json", ".mcp.json"},
		{".claude", ".claude/**"},
		{".claude/settings.json", ".claude/**"},
		{".codehand/x", ".codehand/**"},
		{".vscode/tasks.json", ".vscode/**"},
		{"a/.devcontainer.json", ".devcontainer.json"},
		{".config/fish/config.fish", ".config/fish/**"},
		{"Library/LaunchAgents/x.plist", "Library/LaunchAgents/**"},
		{".hg/hgrc", ".hg/hgrc"},
		{"sub/.HG/hgrc", ".hg/hgrc"},
		{".hg/store/data/hgrc.i", ""},
		{".jj/repo/config.toml", ".jj/repo/config.toml"},
		{".jj/repo/store/type", ""},
		{"lefthook.yml", "lefthook.yml"},
		{"a/lefthook-local.toml", "lefthook-local.toml"},
		{".lefthook.yml", ".lefthook.yml"},
		{".yarnrc.yml", ".yarnrc.yml"},
		{".pnp.cjs", ""}, // Yarn makes both anew with each installation, as npm makes node_modules
		{".yarn/install-state.gz", ""},
		{"gradle/wrapper/gradle-wrapper.properties", "gradle/wrapper/**"},
		{".mvn/wrapper/maven-wrapper.properties", ".mvn/**"},
		{"pyrightconfig.json", "pyrightconfig.json"},

		// Letter case, also of letters that fold to ASCII.
		{".GIT/config", ".git/config"},
		{".Git/CONFIG", ".git/config"},
		{".hu\u017fky/x", ".husky/**"},
		{".\u212ashrc", ".kshrc"},
		// Dots, blanks and streams that Windows drops.
		{".git./config", ".git/config"},
		{".git /config", ".git/config"},
		{".git/config. .", ".git/config"},
		{".git::$INDEX_ALLOCATION/config", ".git/config"},
		{".git/config::$DATA", ".git/config"},
		{".git/config:x", ".git/config"},
		{".git.:x/config", ".git/config"},
		{"bunfig.toml:x:$DATA", "bunfig.toml"},
		// Code points that HFS+ and ext4 leave out.
		{".g\u200cit/config", ".git/config"},
		{"\u200c.git/config", ".git/config"},
		{".git\ufeff/config", ".git/config"},
		{".git/con\u202efig", ".git/config"},
		{".git/con\u206afig", ".git/config"},
		{".git\u00ad/config", ".git/config"},
		{".git\ufe0f/config", ".git/config"},
		// Short names.
		{"GIT~1", ".git"},
		{"GIT~1/config", ".git/config"},
		{"git~2/CONFIG~1.WOR", ".git/config.worktree"},
		{"GITMOD~1", ".gitmodules"},
		{"GITMO~12", ".gitmodules"},
		{"GI7EBA~1", ".gitmodules"},
		{"PRE-CO~1.YAM", ".pre-commit-config.yaml"},
		{"MCP~1.JSO", ".mcp.json"},
		{"LEFTHO~1.JSO", "lefthook.json"},
		{"YARNRC~1.YML", ".yarnrc.yml"},
		{"CLAUDE~1/x", ".claude/**"},
		{"BUNFIG~1.TOM", "bunfig.toml"},
		{"Library/LAUNCH~1/x", "Library/LaunchAgents/**"},
		// Components that mean nothing, or lead up.
		{".git/./config", ".git/config"},
		{".git//config", ".git/config"},
		{".git/x/../config", ".git/config"},
		{"x/../.git/config", ".git/config"},
		{"./.mcp.json", ".mcp.json"},

		// Worktrees are workspaces, except for what is protected in them.
		{".claude/worktrees", ""},
		{".claude/worktrees/a/main.go", ""},
		{".codehand/worktrees/a/main.go", ""},
		{".claude/worktrees/a/.claude/x", ".claude/**"},
		{".claude/worktrees/a/.git", ".git"},
		{".claude/worktrees/../settings.json", ".claude/**"},
		{".claude/worktrees/.../settings.json", ".claude/**"},
		{".claude/worktrees/.. /settings.json", ".claude/**"},
		{".claude/Worktrees/a", ".claude/**"},
		{".claude/worktrees2", ".claude/**"},
		{".cursor/worktrees/a", ".cursor/**"},

		// Ordinary files.
		{"", ""},
		{"/", ""},
		{"main.go", ""},
		{".gitignore", ""},
		{".gitattributes", ""},
		{".github/workflows/ci.yml", ""},
		{".git/HEAD", ""},
		{".git/objects/aa/bb", ""},
		{".git/info/exclude", ""},
		{".git/modules/a/HEAD", ""},
		{"git/config", ""},
		{"x.git/config", ""},
		{".gitx/config", ""},
		{".git/configs", ""},
		{"config", ""},
		{"hooks/x", ""},
		{".config/nvim/init.lua", ""},
		{"Library/x", ""},
		{"lefthook/main.go", ""},
		{"gradle/libs.versions.toml", ""},
		{"gradle.wrapper/x", ""},
		{".yarn/releases", ".yarn/releases/**"},
		{"yarnrc", ""},
		{"claude/settings.json", ""},
		{".git\xff/config", ""},
		{"GIT~", ""},
		{"GIT~x/config", ""},
		{"XGIT~1/config", ""},
		{"notes~1", ""},
		{".gitmodules~", ""},
		{"a~1.txt", ""},
	} {
		if got := Protected(c.path); got != c.want {
			t.Errorf("%+q: got %q, want %q", c.path, got, c.want)
		}
	}
}

func TestSecretNames(t *testing.T) {
	for _, name := range strings.Fields(`.ssh .aws .gnupg .kube .docker .azure .password-store .netrc .npmrc .pypirc
		.git-credentials .vault-token .htpasswd .env .env.local .env.example.bak id_rsa id_rsa_2 id_ed25519 id_ecdsa_sk
		id_rsa.pub.bak credentials shadow gshadow sudoers .ENV .Env.Prod .env. SSH~1 ENV~1.LOC CREDEN~1 ID_ED2~1
		.env:x .e` + "\u200c" + `nv`) {
		if !Secret(name) {
			t.Errorf("%+q is a secret", name)
		}
	}
	for _, name := range []string{"", ".", "..", ".env.example", ".env.sample", ".env.template", ".env.dist", "id_rsa.pub",
		"id_ed25519_sk.pub", "env", ".environment", ".envrc", "credentials.json", "my_id_rsa", "shadows", ".config", "a/.env"} {
		if Secret(name) {
			t.Errorf("%+q is no secret", name)
		}
	}
}

// The operator adds names and takes single ones away; what else a path falls under stays.
func TestOwnNames(t *testing.T) {
	s, err := ProtectedNames([]string{"Makefile", ".github/**", "ci/*.sh", "deploy/**/prod.yml", "ä/x"}, []string{".npmrc", ".vscode"})
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"a/MAKEFILE": "Makefile", ".github": ".github/**", ".github/x/y": ".github/**", "a/ci/x.SH": "ci/*.sh", "ci/x.shx": "",
		"deploy/a/b/prod.yml": "deploy/**/prod.yml", "deploy/prod.yml": "deploy/**/prod.yml", "prod.yml": "",
		"a\u0308/X": "ä/x", "Ä/x": "ä/x", // decomposed; in the other case
		".npmrc": "", ".vscode/tasks.json": "", ".git/config": ".git/config", ".vscode/.mcp.json": ".mcp.json",
		"MAKEFI~1": "", // it is its own short name
	} {
		if got := s.Find(path); got != want {
			t.Errorf("%+q: got %q, want %q", path, got, want)
		}
	}
	open, err := SecretNames([]string{".env.*", ".npmrc"})
	if err != nil || open.Find("a/.env.local") != "" || open.Find("a/.env") != ".env" || open.Find("id_rsa/x") != "id_rsa*" {
		t.Errorf("secrets without .env.*: %v", err)
	}
	var none *Names
	if none.Find(".git/config") != "" {
		t.Error("a nil set finds something")
	}
}

func TestRefusedNames(t *testing.T) {
	for _, text := range []string{"", "/", "**", "/**", "/etc/x", "~/x", "a//b", "./a", "a/..", "a?", "[a]", `a\b`, "!a", "a\x00",
		"a\u200bb", "\xff", "**/a", "a/**/**/b", "a/**/b/**/c", " ", "a/:x"} {
		if _, err := ProtectedNames([]string{text}, nil); err == nil {
			t.Errorf("%+q is taken as a name", text)
		}
	}
	for _, text := range []string{"", "main.go", ".git", ".GITMODULES", "**"} {
		if _, err := ProtectedNames(nil, []string{text}); (err == nil) != (text == ".git") {
			t.Errorf("unprotect %q: got %v", text, err)
		}
	}
}

// slowNames is the list again, as expressions over a path whose components were folded one rune after the other.
func slowNames() map[string]*regexp.Regexp {
	slow := map[string]*regexp.Regexp{}
	for _, n := range protected().all {
		text := regexp.QuoteMeta(strings.TrimSuffix(strings.ToLower(n.text), "/**"))
		text = strings.ReplaceAll(text, `/\*\*`, `(/[^/]+)*`)
		text = strings.ReplaceAll(text, `\*`, `[^/]*`)
		end := "(/|$)"
		if n.last {
			end = "$"
		}
		slow[n.text] = regexp.MustCompile("(?s)(^|/)" + text + end)
	}
	return slow
}

func slowFold(file string) string {
	var kept []string
	for component := range strings.SplitSeq(file, "/") {
		var b strings.Builder
		for _, r := range component {
			if !unicode.Is(unicode.Cf, r) && !unicode.Is(unicode.Variation_Selector, r) && !unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) {
				b.WriteRune(r)
			}
		}
		text, _, _ := strings.Cut(norm.NFC.String(b.String()), ":")
		b.Reset()
		for _, r := range strings.TrimRight(text, ". ") {
			for c := 'a'; c <= 'z'; c++ {
				if strings.EqualFold(string(c), string(r)) {
					r = c
				}
			}
			b.WriteRune(r)
		}
		if b.Len() > 0 {
			kept = append(kept, b.String())
		}
	}
	return strings.Join(kept, "/")
}

// What the slow way finds the fast one finds, and the other way round, short names and worktrees apart: those it finds
// more of, and these it leaves out.
func FuzzProtectedName(f *testing.F) {
	for _, seed := range []string{".git/config", "a/.g\u200cit./hooks::$DATA/x", ".claude/worktrees/a", "lefthook.yml/", ".pnp./x",
		".git/modules/a/../b/hooks", "GIT~1", ".hu\u017fky", "\u212a", ".git/worktrees/x/Config.Worktree ", "x:y/.mcp.json"} {
		f.Add(seed)
	}
	slow := slowNames()
	f.Fuzz(func(t *testing.T, file string) {
		got := Protected(file)
		folded := slowFold(file)
		var want []string
		for text, expression := range slow {
			if expression.MatchString(folded) {
				want = append(want, text)
			}
		}
		if strings.Contains(file, "..") { // both readings count
			for text, expression := range slow {
				if expression.MatchString(slowFold(path.Clean(file))) {
					want = append(want, text)
				}
			}
		}
		switch shortened, worktree := strings.Contains(folded, "~"), strings.Contains(folded, "/worktrees"); {
		case got == "" && len(want) > 0 && !worktree:
			t.Errorf("%+q: got nothing, want one of %q", file, want)
		case got != "" && !shortened && !strings.Contains(fmt.Sprintf("%q", want), fmt.Sprintf("%q", got)):
			t.Errorf("%+q: got %q, want one of %q", file, got, want)
		}
		if again := Protected("a/" + file); got != "" && again == "" && !strings.HasPrefix(path.Clean(file), "..") {
			t.Errorf("%+q: protected alone but not in a directory", file)
		}
		if again := Protected(strings.ToUpper(file)); isASCII(file) && got != "" && again == "" {
			t.Errorf("%+q: protected in this case only", file)
		}
	})
}

func isASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r >= 0x80 }) < 0
}

func BenchmarkProtectedName(b *testing.B) {
	for name, path := range map[string]string{
		"ordinary": "/home/me/projects/library/pkg/builder/parser_test.go", "near": ".github/workflows/.gitignore",
		"protected": "/home/me/projects/x/.git/hooks/pre-commit", "unicode": "/home/me/projects/übung/größe.go",
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Protected(path)
			}
		})
	}
}

// An ordinary path is judged without an allocation.
func TestNamesAllocateNothing(t *testing.T) {
	for _, path := range []string{"/home/me/library/pkg/builder/parser_test.go", ".github/workflows/.gitignore", ".git/hooks/x"} {
		if n := testing.AllocsPerRun(100, func() { Protected(path) }); n > 0 {
			t.Errorf("%s: %v allocations, want none", path, n)
		}
	}
}
