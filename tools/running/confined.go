package running

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"codehand/tools/bash"
	"codehand/tools/confine"
	"codehand/tools/credentials"
	"codehand/tools/sandbox"
	"codehand/tools/tool"
)

// Confine says how the kernel confines a command that has been allowed. The caller starts it with Command.Over, or
// calls Command.Drop. ask is for questions that come up while it runs; nil: nobody can be asked. Below the level that
// is needed it is a refusal.
func Confine(ctx context.Context, env tool.Env, readOnly, background bool, ask credentials.Asking) (
	confine.Command, error) {
	c, err := confineAs(ctx, env, confine.Use{
		Roots: rootsOf(env), Dir: env.Space.Cwd(), Rules: env.Rules, ReadOnly: readOnly,
		Allowed: changedByName(env), Removed: removedAlone(env),
		Background: background, Configs: true, Ask: ask, Repositories: env.Repositories(),
	})
	if err == nil && readOnly && env.Analysis.Contained && c.Level < sandbox.LevelFull {
		// it was let through because the kernel would hold it
		return c, unavailable(&confine.UnavailableError{Proven: c.Level, Needed: sandbox.LevelFull})
	}
	return c, err
}

// confineAs says how the kernel confines a command. Below the level that is needed it is a refusal.
func confineAs(ctx context.Context, env tool.Env, u confine.Use) (confine.Command, error) {
	c, err := env.Confine.Command(u)
	if e, is := errors.AsType[*confine.UnavailableError](err); is {
		return c, unavailable(e)
	}
	if e, is := errors.AsType[*confine.UnkeptError](err); is {
		return c, tool.Refuse(tool.SandboxUnavailable, "The command was not started: %v. Nothing else keeps "+
			"them from a command. Tell the user: remove what fills the roots, give fewer roots, or begin the rules "+
			"with / where only the top of a root is meant.", e)
	}
	if e, is := errors.AsType[*confine.DeniedError](err); is {
		return c, deniedStart(ctx, env, e)
	}
	return c, err
}

// deniedStart refuses a command that would begin in a denied directory, as after a rule that was added meanwhile. The
// next one begins in the first root, or no command could leave that directory.
func deniedStart(ctx context.Context, env tool.Env, e *confine.DeniedError) error {
	const denied = "Permission denied: the command would begin in %s, and %s denies that. Nothing was run. "
	if roots := env.Space.Roots(); len(roots) > 0 && roots[0] != e.Dir {
		_, err := env.Cwd.Change(ctx, func(string) (string, error) { return roots[0], nil })
		if err == nil {
			return tool.Refuse(tool.PermissionDenied, denied+"The next command begins in %s. Make the call again, "+
				"with paths from there.", e.Dir, e.Rule, roots[0])
		}
	}
	return tool.Refuse(tool.PermissionDenied, denied+"Tell the user: %s can remove that. Go on with the other tools.",
		e.Dir, e.Rule, e.Opener)
}

// rootsOf are the roots of a session, with the git work tree in which it works: it lies in one of them, below a name
// that is protected.
func rootsOf(env tool.Env) []string {
	roots := env.Space.Roots()
	if env.Worktree == "" {
		return roots
	}
	if info, err := os.Lstat(env.Worktree); err == nil && info.IsDir() {
		roots = append(roots, env.Worktree)
	}
	return roots
}

// removedAlone are the directories that a command removes which does nothing else but read. A person has allowed `rm`
// of what cannot be kept: the question says so of a repository. Git removes no linked work tree with changes, unless a
// person has allowed --force.
func removedAlone(env tool.Env) (dirs []string) {
	a := env.Analysis
	if a == nil || !a.Held {
		return nil
	}
	for _, p := range a.Parts {
		tree, isTree := strings.CutPrefix(strings.TrimPrefix(p.Text, "command "), "git worktree remove ")
		edits := p.Edits
		switch {
		case p.Class == bash.ReadOnly, strings.HasPrefix(p.Text, "cd "):
			continue
		case isTree:
			tree = strings.TrimPrefix(strings.TrimPrefix(tree, "--force "), "-f ")
			if strings.ContainsAny(tree, " \t\n'\"\\$`*?[{~") || strings.HasPrefix(tree, "-") || moves(a) {
				return nil
			}
			edits = []string{tree}
		case edits == nil, !strings.HasPrefix(p.Text, "rm "), a.Kept, a.Class != bash.Dangerous:
			return nil
		}
		for _, path := range edits {
			if real, inside := env.Space.Resolve(env.Space.Abs(path)); inside {
				dirs = append(dirs, real)
			}
		}
	}
	return dirs
}

// moves says whether a command goes to another directory.
func moves(a *bash.Analysis) bool {
	return slices.ContainsFunc(a.Parts, func(p bash.Part) bool { return strings.HasPrefix(p.Text, "cd ") })
}

// changedByName are the files that the text of a command names as changed. Where one has a protected name, a person was
// asked before the command got here.
func changedByName(env tool.Env) []string {
	var paths []string
	if env.Analysis == nil {
		return nil
	}
	for _, use := range env.Analysis.OnDisk() {
		if !use.Write || use.Perhaps || use.Own && env.Analysis.Held {
			continue
		}
		path := use.Path
		if !filepath.IsAbs(path) {
			path = filepath.Join(env.Space.Cwd(), path)
		}
		if real, inside := env.Space.Resolve(path); inside {
			path = real
		}
		paths = append(paths, path)
	}
	return paths
}

// unavailable tells the model that no command runs here, and the operator why.
func unavailable(e *confine.UnavailableError) error {
	if f := e.Failed; f != nil && f.Passing {
		return tool.Refuse(tool.SandboxUnavailable, "The command was not started: the machine was too busy to prove "+
			"how far it confines commands (%s). Try again in some seconds. If this stays, tell the operator: %s",
			f.Probe, f.Remedy)
	}
	text := fmt.Sprintf("No command runs here: the operator wants them confined at sandbox level %d, and this machine "+
		"has proven level %d.", e.Needed, e.Proven)
	if f := e.Failed; f != nil {
		text += fmt.Sprintf(" What failed: %s. Tell the operator: %s.", f.Probe, f.Remedy)
	}
	return &tool.Refusal{Code: tool.SandboxUnavailable, Text: text + " Use the file and search tools meanwhile."}
}
