package resources

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestSkillURI: a URI names one file of one skill or none, and what is made can be read back.
func TestSkillURI(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ uri, name, file string }{
		{"skill://greet/SKILL.md", "greet", "SKILL.md"},
		{"skill://greet", "greet", ""},
		{"skill://greet/", "greet", ""},
		{"skill://a%3Ab/x%20y/z%3F.md", "a:b", "x y/z?.md"},
		{"skill://%C3%BCber/SKILL.md", "über", "SKILL.md"},
	} {
		name, file, err := parseSkill(c.uri)
		if err != nil || name != c.name || file != c.file {
			t.Errorf("%s: %q %q %v", c.uri, name, file, err)
		}
		if again := skillURI(name, file); again != strings.TrimSuffix(c.uri, "/") {
			t.Errorf("%s became %s", c.uri, again)
		}
	}
	for _, bad := range []string{
		"", "skill:", "skill://", "skill:///SKILL.md", "skill://../x", "skill://a/../b", "skill://a/./b", "skill://a//b", "skill://a/b//",
		"skill://a/%2e%2e/b", "skill://a/%2E%2E", "skill://a/b%2Fc", "skill://a/b%5Cc", "skill://a/b\\c", "skill://a/%00", "skill://a/%zz",
		"skill://a/%ff", "skill://a/b?offset=1", "skill://a/b#c", "file:///etc/passwd", "SKILL://a/b", "codehand://plan",
	} {
		if name, file, err := parseSkill(bad); err == nil {
			t.Errorf("%q names %q of %q", bad, file, name)
		}
	}
}

// FuzzSkillURI: whatever a client sends, no part of what it names leads elsewhere, and it can be named again.
func FuzzSkillURI(f *testing.F) {
	for _, seed := range []string{"skill://greet/SKILL.md", "skill://a/%2e%2e/b", "skill://%C3%BC/x%20y", "skill://a/b%2fc", "skill:////"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, uri string) {
		name, file, err := parseSkill(uri)
		if err != nil {
			return
		}
		if name == "" || strings.ContainsAny(name, "/\\\x00") || !filepath.IsLocal(filepath.Join("x", name)) {
			t.Errorf("%q: name %q", uri, name)
		}
		if file != "" && (!filepath.IsLocal(filepath.FromSlash(file)) || filepath.ToSlash(filepath.Clean(file)) != file) {
			t.Errorf("%q: file %q", uri, file)
		}
		if n, f, err := parseSkill(skillURI(name, file)); err != nil || n != name || f != file {
			t.Errorf("%q became %q %q %v", uri, n, f, err)
		}
	})
}
