package running

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"codehand/tools/sandbox"
	"codehand/tools/tool"
)

// tipped is what State.Told calls the tip. No skill has a name with a space in it.
const tipped = "tip of run_shell"

// Tip is a note for a command that does what a tool does better: it names the tool. A session gets one, so that it
// costs next to nothing. "": there is no such tool, the session has had its tip, or no model reads the answer.
func Tip(ctx context.Context, env tool.Env, command string) string {
	if env.Inner || env.Client.Name == ownCall {
		return ""
	}
	name, why := better(env, command)
	there := false
	for _, e := range env.Catalog {
		there = there || e.Name == name
	}
	if !there || !first(ctx, env, tipped, name) {
		return ""
	}
	return "[next time use " + name + ": " + why + "]"
}

// toldConfined is what State.Told calls how far commands are confined.
const toldConfined = "confinement of commands"

// confinedNote says that commands are confined, at the first command of a session whose model was not told when it
// began, because this machine had not been probed. "": there is nothing to tell. That they are not confined is what
// models expect, and is not said.
func confinedNote(ctx context.Context, env tool.Env, level sandbox.Level) string {
	if level < sandbox.LevelKernel || env.Inner || env.Client.Name == ownCall || !env.Confine.Owed() ||
		!first(ctx, env, toldConfined, "told") {
		return ""
	}
	return "[commands here are " + env.Confined(level, "your directories") + "]"
}

// first notes that the session is told something, and says whether it was not before. Where that cannot be noted, it is
// not said: it would be said each time.
func first(ctx context.Context, env tool.Env, key, value string) (is bool) {
	_, err := env.Told.Change(ctx, func(told map[string]string) (map[string]string, error) {
		if is = told[key] == ""; is {
			told = maps.Clone(told)
			if told == nil {
				told = map[string]string{}
			}
			told[key] = value
		}
		return told, nil
	})
	return is && err == nil
}

// ownCall is the name of `codehand call`: a person's, without a next time.
const ownCall = "codehand-call"

// better names the tool that does better what a part of a command does, and says why; "": none does.
func better(env tool.Env, command string) (name, why string) {
	for _, p := range env.Analysis.Parts {
		words := strings.Fields(p.Text)
		if p.Inner || piped(command, p.Text) || len(words) == 0 {
			continue // it works on what another program prints
		}
		if words[0] == "apply_patch" || words[0] == "applypatch" {
			return "apply_patch", "it is a tool here, and no program"
		}
		if words[0] == "sed" {
			words = words[len(words)-1:] // a script may look like a path
		}
		if slices.ContainsFunc(words, func(w string) bool { return elsewhere(env, w) }) {
			continue // no tool reaches it
		}
		f := tipForms()
		switch {
		case f.edit.MatchString(p.Text):
			return "edit_file", "it shows what it changed"
		case f.find.MatchString(p.Text) && !f.finder.MatchString(p.Text):
			return "list_files", "it finds files by a pattern, newest first"
		case f.grep.MatchString(p.Text):
			return "grep_search", "it skips what git ignores, and its answers stay short"
		case f.show.MatchString(p.Text) && !strings.ContainsAny(command, "|<>"):
			return "read_file", "it shows long files in pages, and an edit can follow"
		}
	}
	return "", ""
}

// elsewhere says whether a word names what lies outside of the roots.
func elsewhere(env tool.Env, word string) bool {
	word = strings.Trim(word, `'"`)
	switch {
	case strings.HasPrefix(word, "~"):
		return true
	case strings.HasPrefix(word, "/"), strings.HasPrefix(word, ".."):
		return !env.Space.Inside(env.Space.Abs(word))
	}
	return false
}

// piped says whether a part of a command reads what the part before it prints.
func piped(command, part string) bool {
	before, _, found := strings.Cut(command, part)
	before = strings.TrimRight(before, " \t\n&")
	return !found || strings.HasSuffix(before, "|") && !strings.HasSuffix(before, "||")
}

// forms are the commands that tips are about.
type forms struct{ show, find, finder, grep, edit *regexp.Regexp }

var tipForms = sync.OnceValue(func() forms {
	const word = `(?:[^-\s'"]\S*|'[^']*'|"[^"]*")`
	return forms{
		show: regexp.MustCompile(`^cat(?:\s+-\w+)*\s+` + word),
		find: regexp.MustCompile(`^find\s`),
		// what list_files does not do
		finder: regexp.MustCompile(`\s-(?:exec|execdir|ok|okdir|delete|printf|fprint|fls|ls|size|perm|user|group|uid|` +
			`gid|empty|newer\w*|[acm](?:time|min)|inum|links|samefile|regex|iregex|lname|prune|print0)\b`),
		// recursive, or with a file behind the pattern
		grep: regexp.MustCompile(`^grep(?:\s+(?:-\S+|` + word + `))*?` +
			`(?:\s+-\w*[rR]\w*|\s+` + word + `\s+` + word + `)`),
		edit: regexp.MustCompile(`^sed\s(?:.*\s)?(?:-[nEersuz]*i\S*|--in-place\S*)(?:\s|$)`),
	}
})
