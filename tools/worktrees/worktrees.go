package worktrees

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"codehand/tools/results"
	"codehand/tools/running"
	"codehand/tools/session"
	"codehand/tools/tool"
	"codehand/tools/wording"
	"codehand/tools/workspace"
)

const (
	// Below is the directory in a repository that has the work trees.
	Below = ".codehand/worktrees"
	// branchPrefix begins the names of their branches.
	branchPrefix = "codehand/"
	// maxName is how many bytes a name may have.
	maxName = 64
	// maxShown is how many files, and how many commits, a refusal lists.
	maxShown = 20
)

// quoted is a word for the shell.
var quoted = running.Quoted

var nameForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9._][A-Za-z0-9._-]*(?:/[A-Za-z0-9._][A-Za-z0-9._-]*)*$`)
})

// CheckName says what is wrong with the name of a work tree; "": nothing.
func CheckName(name string) string {
	switch {
	case len(name) > maxName:
		return fmt.Sprintf("at most %d characters", maxName)
	case !nameForm().MatchString(name):
		return "letters, digits, `.`, `_` and `-` in parts divided by `/`, and no part may begin with `-`"
	}
	for part := range strings.SplitSeq(name, "/") {
		if strings.HasPrefix(part, ".") || strings.HasSuffix(part, ".") || strings.Contains(part, "..") ||
			strings.HasSuffix(part, ".lock") {
			return "no part that begins or ends with `.`, has `..`, or ends with .lock, which git takes for no branch"
		}
	}
	return ""
}

// RandomName is a name that no work tree has.
func RandomName() string { return "w-" + strings.ToLower(rand.Text()[:8]) }

// script runs shell text in a directory of the session.
func script(ctx context.Context, env tool.Env, dir, text string, with running.Script) (string, string, int, error) {
	place, err := env.Space.Open(dir, workspace.Read)
	if err != nil {
		return "", "", 0, wording.PathRefusal(env, dir, err)
	}
	defer place.Dir.Close()
	root, err := place.Dir.OpenRoot(place.Name + "/.")
	if err != nil {
		return "", "", 0, wording.PathRefusal(env, dir, err)
	}
	defer root.Close()
	with.Text, with.Dir = running.Git+text, root
	return with.Run(ctx, env)
}

// failed is the refusal for a git that failed and changed nothing.
func failed(what, stderr string, exit int) error {
	return tool.Refuse(tool.GitFailed, "%s (exit code %d). Nothing was changed.\n%s", what, exit, stderrOf(stderr))
}

// stderrOf is what of git's words a refusal repeats.
func stderrOf(stderr string) string {
	text := strings.TrimSpace(results.Clean(stderr))
	if runes := []rune(text); len(runes) > 2000 {
		text = string(runes[:2000]) + " …"
	}
	return results.Disown(cmp.Or(text, "git said nothing."))
}

// top returns the work tree that the session's directory belongs to, and the commit that it is at.
func top(ctx context.Context, env tool.Env) (dir, head string, err error) {
	out, _, exit, err := script(ctx, env, env.Space.Cwd(),
		"g rev-parse --show-toplevel && { g rev-parse --verify -q HEAD || echo none; }", running.Script{})
	if err != nil {
		return "", "", err
	}
	dir, head, _ = strings.Cut(strings.TrimSuffix(out, "\n"), "\n")
	if exit != 0 || !filepath.IsAbs(dir) {
		return "", "", tool.Refuse(tool.NotARepository, "%s is in no git work tree. Call it where there is one, or "+
			"work here without isolation.", env.Space.Cwd())
	}
	if real, inside := env.Space.Resolve(dir); inside {
		dir = real
	} else {
		return "", "", tool.Refuse(tool.OutsideRoots, "The git work tree %s lies outside of the roots, so no other "+
			"one can be made in it. Tell the user: give the top of the repository as a root.", dir)
	}
	if head == "none" {
		return "", "", tool.Refuse(tool.GitFailed, "%s has no commit yet, so no work tree can begin with one. Commit "+
			"first, or work without isolation.", dir)
	}
	return dir, head, nil
}

// Make makes a work tree of the repository in which the session works, and notes it in the session.
func Make(ctx context.Context, env tool.Env, name string) (at string, made session.Worktree, err error) {
	repository, head, err := top(ctx, env)
	if err != nil {
		return "", made, err
	}
	at = filepath.Join(repository, filepath.FromSlash(Below), filepath.FromSlash(name))
	made = session.Worktree{Top: repository, Branch: branchPrefix + name, Base: head}
	if !env.Space.Inside(at) {
		return "", made, tool.Refuse(tool.OutsideRoots, "%s leads out of the roots. Nothing was made.", at)
	}
	own := filepath.Join(repository, ".codehand")
	prepare := "cd " + quoted(repository) + " || exit 1\n" +
		"g show-ref --verify -q " + quoted("refs/heads/"+made.Branch) + " && exit 17\n" +
		"if test -L .codehand || test -L " + Below + "; then exit 19; fi\n" +
		"mkdir -p " + Below + " && { test -e " + Below + "/.gitignore || " +
		"printf '*\\n' > " + Below + "/.gitignore; } && " +
		"mkdir -p " + quoted(path.Dir(path.Join(Below, name))) + " || exit 1\n" +
		"if test -e " + quoted(path.Join(Below, name)) + "; then exit 18; fi\n" +
		"mkdir " + quoted(path.Join(Below, name))
	_, said, exit, err := script(ctx, env, repository, prepare, running.Script{Allowed: []string{own}})
	switch {
	case err != nil:
		return "", made, err
	case exit == 17:
		return "", made, tool.Refuse(tool.WorktreeExists, "There is a branch %s already. Choose another name, or "+
			"leave it out.", made.Branch)
	case exit == 18:
		return "", made, tool.Refuse(tool.WorktreeExists, "%s exists already. Choose another name, leave it out, or "+
			"go on there: give it as path.", at)
	case exit == 19:
		return "", made, tool.Refuse(tool.GitFailed, "%s is a link. Nothing was made.",
			filepath.Join(repository, Below))
	case exit != 0:
		return "", made, failed("The directory "+at+" cannot be made", said, exit)
	}
	_, said, exit, err = script(ctx, env, repository,
		"g worktree add --quiet -b "+quoted(made.Branch)+" -- "+quoted(at)+" "+head, running.Script{Open: []string{at}})
	if err == nil && exit == 0 {
		err = note(ctx, env, at, made)
	} else if err == nil {
		err = failed("git worktree add failed", said, exit)
	}
	if err != nil {
		clean := context.WithoutCancel(ctx)
		_, _, _, _ = script(clean, env, repository, // what is left does not matter: the next name is another one
			"rmdir "+quoted(at)+" 2>/dev/null || g worktree remove --force "+quoted(at)+"; g branch -q -D "+
				quoted(made.Branch), running.Script{Allowed: []string{own}})
		return "", made, err
	}
	return at, made, nil
}

// note notes in the session that it made a work tree.
func note(ctx context.Context, env tool.Env, at string, made session.Worktree) error {
	_, err := env.Isolated.Change(ctx, func(all session.Worktrees) (session.Worktrees, error) {
		all.Made = maps.Clone(all.Made)
		if all.Made == nil {
			all.Made = map[string]session.Worktree{}
		}
		all.Made[at] = made
		return all, nil
	})
	keep(ctx, env)
	return wording.StateFault(ctx, err)
}

// keep makes what the session remembers of its work trees last before the answer, whatever happens to the server. What
// cannot be written is logged: the session goes on, and only a kill within seconds loses it.
func keep(ctx context.Context, env tool.Env) {
	if env.Keep != nil {
		env.Keep(ctx)
	}
}

// errThere says that the session is in a work tree already.
var errThere = errors.New("in a work tree")

// Enter moves the session into a work tree.
func Enter(ctx context.Context, env tool.Env, at string) error {
	_, err := env.Isolated.Change(ctx, func(all session.Worktrees) (session.Worktrees, error) {
		if all.In != "" && all.In != at {
			return all, errThere
		}
		all.In, all.Before, all.Entered = at, env.Space.Cwd(), time.Now()
		return all, nil
	})
	if errors.Is(err, errThere) {
		return There(env)
	}
	if err == nil {
		_, err = env.Cwd.Change(ctx, func(string) (string, error) { return at, nil })
	}
	keep(ctx, env)
	return wording.StateFault(ctx, err)
}

// There is the refusal of a session that is in a work tree already.
func There(env tool.Env) error {
	return tool.Refuse(tool.InWorktree, "This session works in a work tree already: %s. Call exit_worktree first.",
		env.Worktree)
}

// Known returns the work tree at a path that git lists for the repository in which the session works.
func Known(ctx context.Context, env tool.Env, at string) (string, error) {
	if _, _, err := top(ctx, env); err != nil {
		return "", err
	}
	out, said, exit, err := script(ctx, env, env.Space.Cwd(), "g worktree list --porcelain", running.Script{})
	if err == nil && exit != 0 {
		err = failed("git worktree list failed", said, exit)
	}
	if err != nil {
		return "", err
	}
	real, inside := env.Space.Resolve(at)
	if !inside {
		return "", tool.Refuse(tool.OutsideRoots, "%s lies outside of the roots. Tell the user: give it as a root.", at)
	}
	var all []string
	for line := range strings.SplitSeq(out, "\n") {
		if dir, ok := strings.CutPrefix(line, "worktree "); ok {
			if there, _ := env.Space.Resolve(dir); there == real {
				if info, err := os.Lstat(real); err == nil && info.IsDir() {
					return real, nil
				}
			}
			all = append(all, dir)
		}
	}
	return "", tool.Refuse(tool.NotARepository, "%s is no work tree of this repository. git worktree list has: %s.", at,
		wording.LineOf(strings.Join(all, ", "), 1000))
}
