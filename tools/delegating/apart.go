package delegating

import (
	"context"
	"strings"

	"codehand/tools/agent"
	"codehand/tools/agent/loop"
	"codehand/tools/tool"
	"codehand/tools/worktrees"
)

// trees are the work trees of sub-agents, in the order of these; nil: they have none.
type trees []worktrees.Isolated

// isolate gives each sub-agent a work tree of its own, if that is wanted. If one cannot be made, those before it are
// removed.
func (d *Delegation) isolate(ctx context.Context, orders []agent.Order) (trees, error) {
	if d.Isolate == nil {
		return nil, nil
	}
	var all trees
	for i := range orders {
		tree, err := d.Isolate(ctx)
		if err != nil {
			all.settle(ctx, d.Env)
			return nil, err
		}
		all = append(all, tree)
		d.confineTo(&orders[i], tree)
	}
	return all, nil
}

// confineTo makes a work tree the only place where a sub-agent changes files.
func (d *Delegation) confineTo(o *agent.Order, tree worktrees.Isolated) {
	o.Apart = agent.Apart{Tree: tree.At, Repository: tree.Repository}
	o.Tools = apart(o.Tools)
	there := *d.Env.State
	there.KeepApart(o.Apart)
	there.Space = there.Space.At(tree.At)
	o.Parent.Cwd, o.Parent.Roots = tree.At, []string{tree.At}
	o.Parent.Place = there.Situation(o.Type.ModeBelow(o.Parent.Mode), false) + " It is a git work tree made for you " +
		"from the last commit: files of the main one are elsewhere and stay as they are, so name files by their " +
		"place in the repository. What you leave here is shown to who asked."
}

// apart leaves out the tools of other servers that may change something: nothing would keep them in a work tree.
func apart(all []loop.Tool) (kept []loop.Tool) {
	for _, t := range all {
		if t.ReadOnly || !strings.HasPrefix(t.Name, "mcp__") {
			kept = append(kept, t)
		}
	}
	return kept
}

// settle says what sub-agents left in their work trees, a line each, and removes those without changes.
func (all trees) settle(ctx context.Context, env tool.Env) (lines []string) {
	for _, tree := range all {
		lines = append(lines, tree.Settle(ctx, env))
	}
	return lines
}

// treesOf is the work tree of a sub-agent that goes on. It refuses one whose work tree is gone.
func treesOf(ctx context.Context, env tool.Env, x *agent.Run) (trees, error) {
	at := x.Apart.Tree
	if at == "" {
		return nil, nil
	}
	tree, err := worktrees.Left(ctx, env, at)
	if err != nil {
		return nil, err
	}
	return trees{tree}, nil
}
