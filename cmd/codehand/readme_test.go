package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
	protection "codehand/tools/guarded"
)

// Pages, seen from this package.
const (
	readme          = "../../README.md"
	toolsPage       = "../../docs/tools.md"
	settingsPage    = "../../docs/settings.md"
	permissionsPage = "../../docs/permissions.md"
)

// TestToolTable holds the table of docs/tools.md.
func TestToolTable(t *testing.T) {
	var want string
	t.Run("make", func(t *testing.T) { want = toolTable(t) }) // it changes the directory
	holdPart(t, toolsPage, "tools", want)
}

// TestSettingsPage: docs/settings.md and the two pages behind it have what `codehand help settings` prints.
func TestSettingsPage(t *testing.T) {
	t.Parallel()
	text := settingsText()
	head, rest, ok := strings.Cut(text, "\nweb.enabled ")
	middle, tail, ok2 := strings.Cut(rest, "\nOther MCP servers ")
	_, columns, ok3 := strings.Cut(head, "\nKEY ")
	if !ok || !ok2 || !ok3 {
		t.Fatal("the text has no place to divide it: a setting web.enabled, a paragraph on other MCP servers")
	}
	columns, _, _ = strings.Cut(columns, "\n")
	for page, part := range map[string]string{
		settingsPage:                     head,
		"../../docs/settings-serve.md":   "KEY " + columns + "\nweb.enabled " + strings.TrimSpace(middle),
		"../../docs/settings-servers.md": "Other MCP servers " + tail,
	} {
		holdPart(t, page, "settings", "```text\n"+part+"\n```\n")
	}
}

// maxReadme is how many lines a newcomer is shown before the manuals.
const maxReadme = 160

func TestReadmeIsShort(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(b, []byte("\n")); n > maxReadme {
		t.Errorf("the README has %d lines, at most %d: move what only a user of one part needs to a page in docs", n, maxReadme)
	}
}

// holdPart fails if a generated part of a page is not want, or writes it with -update.
func holdPart(t *testing.T, page, name, want string) {
	t.Helper()
	begin, end := "<!-- "+name+":begin -->\n", "<!-- "+name+":end -->"
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(b), begin)
	old, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no %s … %s", page, strings.TrimSpace(begin), end)
	}
	if old == want {
		return
	}
	if !*update {
		t.Fatalf("the part %s of %s has drifted: go test ./cmd/codehand -update", name, page)
	}
	if err := os.WriteFile(page, []byte(head+begin+want+end+tail), 0o644); err != nil {
		t.Fatal(err)
	}
}

// toolTable is what `codehand tools --markdown` prints.
func toolTable(t *testing.T) string {
	for _, kv := range os.Environ() { // what this developer has set does not belong on the page
		if name, _, _ := strings.Cut(kv, "="); strings.HasPrefix(name, "CODEHAND_") {
			t.Setenv(name, "")
		}
	}
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	t.Chdir(t.TempDir())
	programs := t.TempDir() // with a language server, since some tools are there only where one is
	server := filepath.Join(programs, "gopls")
	if err := os.WriteFile(server, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", programs+string(os.PathListSeparator)+os.Getenv("PATH"))
	var out, errs bytes.Buffer
	if code := run([]string{"tools", "--markdown"}, strings.NewReader(""), &out, &errs); code != exitDone {
		t.Fatalf("exit code %d: %s", code, &errs)
	}
	return out.String()
}

// TestProtectedPage: what is protected stands in docs/permissions.md as tools/guarded has it.
func TestProtectedPage(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("| what | names |\n|---|---|\n")
	for i, g := range protection.Groups {
		if i == 0 || protection.Groups[i-1].Why != g.Why {
			fmt.Fprintf(&b, "| %s | ", g.Why)
		} else {
			b.WriteString(" ")
		}
		b.WriteString("`" + strings.Join(g.Names, "` `") + "`")
		if i == len(protection.Groups)-1 || protection.Groups[i+1].Why != g.Why {
			b.WriteString(" |\n")
		}
	}
	holdPart(t, permissionsPage, "protected", b.String())
}

// TestRulesOfPage: the sample of rules in docs/permissions.md says what it does. Its rule with a slash once guarded nothing, since it was
// relative to the directory of the configuration.
func TestRulesOfPage(t *testing.T) {
	text, err := os.ReadFile(permissionsPage)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "```toml\n[permissions]\n")
	sample, _, closed := strings.Cut(rest, "```")
	if !found || !closed {
		t.Fatal("docs/permissions.md has no sample of rules")
	}
	work, home := leaktest.Dir(t), leaktest.Dir(t)
	file := filepath.Join(home, ".config", "codehand", "config.toml")
	for _, dir := range []string{filepath.Dir(file), filepath.Join(work, "migrations")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(file, []byte("[permissions]\n"+sample), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, kv := range os.Environ() {
		if name, _, _ := strings.Cut(kv, "="); strings.HasPrefix(name, "CODEHAND_") {
			t.Setenv(name, "")
		}
	}
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", "")
	t.Setenv("XDG_STATE_HOME", "")
	t.Chdir(work)
	for _, c := range []struct{ call, verdict, rule string }{
		{"write_file file_path=migrations/1.sql content=x", "ask: a person must decide", "Edit(/migrations/**)"},
		{"run_shell command=echo x > migrations/1.sql", "ask: a person must decide", "Edit(/migrations/**)"},
		{"write_file file_path=other/migrations/1.sql content=x", "ask: the client", ""},
		{"read_file file_path=deep/secrets/a", "deny", "Read(secrets/**)"},
		{"run_shell command=env git push origin main", "deny", "Bash(git push *)"},
		{"run_shell command=go test ./...", "allow", "Bash(go test *)"},
		{"run_shell command=npm run build", "allow", "Bash(npm run *)"},
	} {
		var out, errs bytes.Buffer
		tool, input, _ := strings.Cut(c.call, " ")
		args := []string{"permissions", "check", tool}
		if tool == "run_shell" {
			args = append(args, input)
		} else {
			args = append(args, strings.Fields(input)...)
		}
		code := run(args, strings.NewReader(""), &out, &errs)
		verdict, because, _ := strings.Cut(out.String(), "\n")
		if want := c.verdict == "deny"; (code == exitFailed) != want || !strings.Contains(verdict, c.verdict) || !strings.Contains(because, c.rule) || c.rule == "" && strings.Contains(because, "\nrule ") {
			t.Errorf("%s: exit code %d, want %s by %q:\n%s%s", c.call, code, c.verdict, c.rule, &out, &errs)
		}
	}
	var out, errs bytes.Buffer
	if code := run([]string{"permissions", "check"}, strings.NewReader(""), &out, &errs); code != exitDone || strings.Contains(out.String(), "warning") || errs.Len() > 0 {
		t.Errorf("exit code %d\n%s%s", code, &out, &errs)
	}
}
