package running

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"codehand/tools/bash"
	"codehand/tools/permission"
	"codehand/tools/session"
	"codehand/tools/tool"
	"codehand/tools/workspace"
)

// Git begins our own scripts that call git, as g: no person's configuration, no hooks, nothing that asks.
const Git = "export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null GIT_TERMINAL_PROMPT=0 GIT_OPTIONAL_LOCKS=0 " +
	"LC_ALL=C; unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE; g() { git -c core.hooksPath=/dev/null " +
	"-c core.fsmonitor=false -c safe.directory='*' -c submodule.recurse=false -c gc.auto=0 " +
	"-c advice.detachedHead=false -c credential.helper= -c protocol.allow=never \"$@\"; }\n"

// Quoted is a word for the shell.
func Quoted(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

// movesTime is how long git may look for what a command would change. What takes longer is not known before.
const movesTime = 10 * time.Second

// manyMoved is from how many files on only the directories with their protected names are told.
const manyMoved = 50

// Moved are the files that a command is kept from changing, and that git will want to change by what it brings: a
// branch with another `.husky`. Git goes on where it cannot write a file, or stops half-way; so a person is asked
// before (bash.Analysis.Change), or the command is refused whole. Git itself is asked what differs, in the profile that
// changes nothing and reaches nothing. It is nothing where the kernel does not keep files, and where git cannot tell.
func Moved(ctx context.Context, s *session.State, command string) (paths []string) {
	if s.Shell == nil || !s.Confine.Holds() || !strings.Contains(command, "git") {
		return nil
	}
	a := bash.Analyze(command, s.Space.Inside)
	if len(a.Moves) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, movesTime)
	defer cancel()
	env := tool.Env{State: s}
	kept := s.Confine.Keeper(rootsOf(env))
	for _, path := range listed(ctx, env, a.Moves) {
		name := kept(path)
		if name == "" && s.Rules.Ruled(path, true) != permission.Allow {
			name = path
		}
		if name != "" && s.Space.Inside(path) {
			paths = append(paths, path)
		}
	}
	if len(paths) > manyMoved {
		for i, path := range paths {
			if name := kept(path); name != "" {
				paths[i] = name
			}
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// listed lets git list what its commands would change.
func listed(ctx context.Context, env tool.Env, moves []bash.Move) (paths []string) {
	var text strings.Builder
	for _, m := range moves {
		lists := make([]string, 0, len(m.Lists))
		for _, words := range m.Lists {
			line := "g"
			for _, w := range words {
				line += " " + Quoted(w)
			}
			lists = append(lists, line)
		}
		text.WriteString("(cd " + Quoted(m.Dir) + " && t=$(g rev-parse --show-toplevel) && printf '%s\\0' \"$t/\" && " +
			"{ " + strings.Join(lists, " || ") + "; }) 2>/dev/null\n")
	}
	place, err := env.Space.Open(env.Space.Cwd(), workspace.Read)
	if err != nil {
		return nil // the command itself tells
	}
	defer func() { _ = place.Dir.Close() }() // only a place to start from
	dir, err := place.Dir.OpenRoot(place.Name + "/.")
	if err != nil {
		return nil
	}
	defer func() { _ = dir.Close() }()
	out, _, _, err := Script{Text: Git + text.String(), Dir: dir, ReadOnly: true}.Run(ctx, env)
	if err != nil {
		return nil
	}
	top := ""
	for name := range strings.SplitSeq(out, "\x00") {
		switch {
		case strings.HasPrefix(name, "/"):
			top = name
		case name != "" && top != "" && filepath.IsLocal(name):
			paths = append(paths, filepath.Join(top, name))
		}
	}
	return paths
}

// halfWay says how a command goes on that fetched changes of protected files, and so stopped; line is why it failed.
// "": it is not one. What is there already is asked about before.
func halfWay(a *bash.Analysis, line string) string {
	if a == nil || !a.Fetches || !a.GitChanges || !strings.Contains(line, " is protected: ") {
		return ""
	}
	return "[git stopped half-way: take back its changes with undo_change, then call `git merge FETCH_HEAD` or `git " +
		"rebase FETCH_HEAD`: the user is asked first]"
}
