package worktrees

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"time"

	"codehand/tools/results"
	"codehand/tools/running"
	"codehand/tools/session"
	"codehand/tools/shell"
	"codehand/tools/tool"
	"codehand/tools/wording"
)

// Leave moves the session back to where it was before it entered a work tree. removed: the work tree is gone.
func Leave(ctx context.Context, env tool.Env, removed bool) (back string, err error) {
	_, err = env.Isolated.Change(ctx, func(all session.Worktrees) (session.Worktrees, error) {
		back = all.Before
		if removed {
			all.Made = maps.Clone(all.Made)
			delete(all.Made, all.In)
		}
		all.In, all.Before, all.Entered = "", "", time.Time{}
		return all, nil
	})
	if err == nil {
		_, err = env.Cwd.Change(ctx, func(string) (string, error) { return back, nil })
	}
	keep(ctx, env)
	return back, wording.StateFault(ctx, err)
}

// Jobs returns the jobs that the session started since it entered the work tree and that run.
func Jobs(ctx context.Context, env tool.Env, since time.Time) ([]shell.Info, error) {
	all, err := env.Shell.List(ctx)
	if err != nil {
		return nil, wording.StateFault(ctx, err)
	}
	var jobs []shell.Info
	for _, i := range all {
		if i.State == shell.Running && !i.Start.Before(since) {
			jobs = append(jobs, i)
		}
	}
	return jobs, nil
}

// Dirty lists what would be lost with a work tree: uncommitted files, and commits that no other branch has.
func Dirty(ctx context.Context, env tool.Env, at string, made session.Worktree) (lines []string, err error) {
	files, commits, err := changed(ctx, env, at, made, false)
	if err != nil {
		return nil, err
	}
	lines = append(lines, listed(files, "uncommitted file", "uncommitted files")...)
	return append(lines, listed(commits, "commit that no other branch has", "commits that no other branch has")...), nil
}

// changed returns what is not committed in a work tree, and the commits that no other branch has, or all since it was
// made, a line each.
func changed(
	ctx context.Context, env tool.Env, at string, made session.Worktree, all bool,
) (files, commits []string, err error) {
	others := " --exclude=" + quoted(made.Branch) + " --branches --remotes --tags"
	if all {
		others = ""
	}
	branch := quoted("refs/heads/" + made.Branch)
	text := "g -c core.quotePath=true status --porcelain --untracked-files=all --ignore-submodules=none || exit 1\n" +
		"echo /\n" +
		"tips=HEAD; g show-ref --verify -q " + branch + " && tips=\"HEAD \"" + branch + "\n" +
		"g log --no-show-signature --no-color --format='%h %s' $tips --not " + made.Base + others +
		" --"
	out, said, exit, err := script(ctx, env, at, text, running.Script{Open: []string{at}})
	if err == nil && exit != 0 {
		err = failed("git cannot say what is not committed in "+at, said, exit)
	}
	if err != nil {
		return nil, nil, err
	}
	before, after, _ := strings.Cut("\n"+out, "\n/\n")
	split := func(text string) []string { return strings.FieldsFunc(text, func(r rune) bool { return r == '\n' }) }
	return split(before), split(after), nil
}

// listed shows the first lines of a list under a title; nil: there are none.
func listed(all []string, one, many string) []string {
	if len(all) == 0 {
		return nil
	}
	lines := []string{wording.Plural(len(all), one, many) + ":"}
	for _, line := range all[:min(len(all), maxShown)] {
		lines = append(lines, "  "+wording.LineOf(results.Clean(line), 200))
	}
	if more := len(all) - maxShown; more > 0 {
		lines = append(lines, fmt.Sprintf("  and %d more", more))
	}
	return lines
}

// Remove removes a work tree that the session made, with its branch.
func Remove(ctx context.Context, env tool.Env, at string, made session.Worktree) error {
	_, said, exit, err := script(ctx, env, made.Top, "g worktree remove --force --force "+quoted(at)+" && "+
		"{ g branch -q -D "+quoted(made.Branch)+" || ! g show-ref --verify -q "+quoted("refs/heads/"+made.Branch)+"; }",
		running.Script{Allowed: []string{filepath.Join(made.Top, ".codehand"),
			// what git keeps of a work tree decides where others find their repository, and goes with it
			filepath.Join(made.Top, ".git", "worktrees")}})
	if err == nil && exit != 0 {
		err = tool.Refuse(tool.GitFailed, "git worktree remove failed (exit code %d), perhaps half-way: git worktree "+
			"list and git branch say what is left.\n%s", exit, stderrOf(said))
	}
	return err
}
