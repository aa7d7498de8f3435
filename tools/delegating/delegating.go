// Package delegating is what the tools share that give work to sub-agents: the choice of a type, the job in which the
// work is done, waiting for it, and the text of a report.
package delegating

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"codehand/tools/agent"
	"codehand/tools/results"
	"codehand/tools/tool"
	"codehand/tools/wording"
	"codehand/tools/worktrees"
)

// A Delegation is one call that gives work to sub-agents.
type Delegation struct {
	Env        tool.Env
	Runner     *agent.Runner // nil: there is no back-end
	Tasks      []Task        // one, or several that are done side by side
	Background bool
	Name       string // of the only one; "": none
	Model      string // "": the usual one
	Effort     string
	// Isolate makes a git work tree in which one sub-agent works apart; nil: they work where the session does
	Isolate func(ctx context.Context) (worktrees.Isolated, error)
}

// A Task is the work of one sub-agent.
type Task struct{ Title, Prompt, Type string }

// Run does the work, or begins it in the background. Without a back-end the result is a brief for each task. Refusals:
// AGENT_UNKNOWN, AGENT_NO_TOOLS, AGENT_LIMIT, TOOL_DISABLED, JOB_LIMIT, INPUT_INVALID.
func (d *Delegation) Run(ctx context.Context) (tool.Result, error) {
	backend := d.Runner.InForce(d.Env.Samples)
	orders, err := d.orders(ctx, backend)
	if err != nil {
		return tool.Result{}, err
	}
	if backend == agent.None {
		return tool.Result{Text: briefs(orders, d.Isolate != nil)}, nil
	}
	if err := d.possible(backend); err != nil {
		return tool.Result{}, err
	}
	trees, err := d.isolate(ctx, orders)
	if err != nil {
		return tool.Result{}, err
	}
	runs, err := d.start(ctx, orders)
	if err != nil {
		trees.settle(ctx, d.Env)
		return tool.Result{}, err
	}
	w := work{env: d.Env, runs: runs, trees: trees, background: d.Background,
		stays: !d.readable() || backend == agent.Sampling}
	return w.do(ctx)
}

// start starts all sub-agents, or none.
func (d *Delegation) start(ctx context.Context, orders []agent.Order) (runs []*agent.Run, err error) {
	for _, o := range orders {
		x, err := d.Runner.Start(o)
		if err != nil {
			for _, x := range runs {
				x.Drop()
			}
			return nil, d.limit(err)
		}
		runs = append(runs, x)
	}
	return runs, begin(ctx, runs)
}

// begin tells the operator's hooks of sub-agents that are about to start. If one must not, none does.
func begin(ctx context.Context, runs []*agent.Run) error {
	errs := make([]error, len(runs))
	var all sync.WaitGroup
	for i, x := range runs {
		all.Go(func() { errs[i] = x.Begin(ctx) })
	}
	all.Wait()
	at := slices.IndexFunc(errs, func(err error) bool { return err != nil })
	if at < 0 {
		return nil
	}
	for _, x := range runs {
		x.Drop()
	}
	return errs[at]
}

// orders says what each sub-agent is to do.
func (d *Delegation) orders(ctx context.Context, backend agent.Backend) ([]agent.Order, error) {
	types, err := findTypes(ctx, d.Env)
	if err != nil {
		return nil, wording.PathRefusal(d.Env, d.Env.Space.Cwd(), err)
	}
	mode, _, err := d.Env.InForce(ctx, now())
	if err != nil {
		return nil, wording.StateFault(ctx, err)
	}
	parent := parentOf(d.Env)
	parent.Mode = mode
	offered := d.Runner.Offer(d.catalog())
	deeper := d.Runner != nil && d.Runner.Deeper(d.Env.Depth+1)
	var orders []agent.Order
	for _, task := range d.Tasks {
		t, ok := types.Find(task.Type)
		if !ok {
			return nil, unknownType(types, task.Type)
		}
		given, unknown := t.Pick(offered, deeper)
		if len(given) == 0 && d.Runner != nil { // a brief without a list of tools is one, too
			return nil, noTools(t, unknown)
		}
		text, err := typeText(ctx, d.Env, t)
		if err != nil {
			return nil, wording.PathRefusal(d.Env, t.File, err)
		}
		parent.Place = d.Env.Situation(t.ModeBelow(mode), false)
		o := agent.Order{
			Parent: parent, Hands: d.Env.Hands, Backend: backend, Type: t, System: text, Name: d.Name,
			Title: task.Title, Prompt: task.Prompt, Effort: d.Effort, Tools: given,
		}
		if o.Model, err = d.model(backend, t); err != nil {
			return nil, err
		}
		orders = append(orders, o)
	}
	return orders, nil
}

// findTypes returns the types of sub-agents that the session has now. The error is that of ctx.
func findTypes(ctx context.Context, env tool.Env) (agent.Types, error) {
	set, err := env.FindTypes(ctx)
	if err != nil {
		return agent.Types{}, err
	}
	return agent.ReadTypes(set), nil
}

// typeText is the text of a type, which says what the sub-agent is. Errors are those of skills.Index.Body.
func typeText(ctx context.Context, env tool.Env, t agent.Type) (string, error) {
	if t.File == "" {
		return t.Prompt, nil
	}
	return env.Skills.Body(ctx, env.Visible(), t.Skill())
}

// parentOf is the session of a call, as that of sub-agents.
func parentOf(env tool.Env) agent.Parent {
	return agent.Parent{
		Principal: env.Key.Principal, Session: env.Key.Session, Depth: env.Depth, Cwd: env.Space.Cwd(),
		Roots: env.Space.Roots(),
	}
}

func (d *Delegation) catalog() []string {
	var names []string
	for _, e := range d.Env.Catalog {
		names = append(names, e.Name)
	}
	return names
}

// readable says whether the session can read a job, or would learn nothing of one.
func (d *Delegation) readable() bool { return slices.Contains(d.catalog(), "job_output") }

// model is the model that a sub-agent gets. The one that a call names must be known; that of a type, which was written
// for another program, counts only if it is.
func (d *Delegation) model(backend agent.Backend, t agent.Type) (string, error) {
	switch known := d.Runner; {
	case backend == agent.Program:
		name := cmp.Or(d.Model, t.Model)
		if name != "" && !agent.IsModelName(name) {
			return "", tool.Invalid("agent", fmt.Sprintf("%q is no name of a model: letters, digits and -._:/@+, "+
				"and no - in front. Leave \"model\" out, or correct it in the file of type %s",
				wording.LineOf(name, 80), t.Name))
		}
		if d.Model != "" && !slices.ContainsFunc(known.Command.Argv, takesModel) {
			return "", tool.Invalid("agent", `the back-end (agent.command) takes no model: leave "model" out`)
		}
		return name, nil
	case backend != agent.API:
		return "", nil // the client chooses
	case d.Model != "" && !slices.Contains(known.Models, d.Model):
		return "", tool.Invalid("agent", fmt.Sprintf(`"model" must be one of %s, or left out`,
			strings.Join(known.Models, ", ")))
	case d.Model != "":
		return d.Model, nil
	case slices.Contains(known.Models, t.Model):
		return t.Model, nil
	}
	return "", nil
}

// takesModel says whether an argument of agent.command has the name of a model filled in.
func takesModel(arg string) bool { return strings.Contains(arg, "{model}") }

// possible says why this call can start no sub-agent; nil: it can.
func (d *Delegation) possible(backend agent.Backend) error {
	var why string
	switch {
	case !d.Runner.Deeper(d.Env.Depth):
		why = "sub-agents may not start others here (agent.max_depth). Do the work yourself."
	case d.Env.Hands == nil:
		why = "it was called from within another call."
	case d.Env.Shell == nil:
		why = "this server can run no jobs."
	case d.Background && backend == agent.Sampling:
		why = "the client's own model answers only while a call waits. Call it without run_in_background."
	case d.Background && !d.readable():
		why = "job_output, with which a job in the background is read, is not. Call it without run_in_background."
	default:
		return nil
	}
	return tool.Refuse(tool.ToolDisabled, "agent is not available: %s", why)
}

// limit is the refusal of a sub-agent for which there is no room.
func (d *Delegation) limit(err error) error {
	r := d.Runner
	switch {
	case errors.Is(err, agent.ErrQueue):
		return tool.Refuse(tool.AgentLimit, "%d sub-agents run and %d wait already (agent.max_parallel). Nothing was "+
			"started. Wait for one to end, or do the work yourself.", r.Parallel, r.Queue)
	case errors.Is(err, agent.ErrPerHour):
		return tool.Refuse(tool.AgentLimit, "%d sub-agents were started within the last hour, which is the limit "+
			"(agent.max_per_hour). Nothing was started. Do the work yourself, or try again later.", r.PerHour)
	case errors.Is(err, agent.ErrClosed):
		return tool.Refuse(tool.ToolDisabled, "agent is not available: the server ends.")
	case errors.Is(err, agent.ErrDepth):
		return d.possible(agent.API)
	}
	return err
}

func unknownType(types agent.Types, name string) error {
	var list []string
	for _, t := range types.All {
		list = append(list, t.Name+": "+wording.LineOf(t.Description, 100))
		if len(list) == 30 {
			break
		}
	}
	text := fmt.Sprintf("There is no agent type %s. Types:\n", wording.LineOf(name, 80)) + strings.Join(list, "\n")
	for i, dropped := range types.Dropped {
		if i == 5 {
			break
		}
		why := strings.TrimPrefix(dropped.Reason, "The skill is left out: ") // as if it were one
		text += "\n[" + wording.LineOf(dropped.Path, 200) + ": " + wording.LineOf(why, 200) + "]"
	}
	return tool.Refuse(tool.AgentUnknown, "%s", text)
}

func noTools(t agent.Type, unknown []string) error {
	why := "none of its tools is available here"
	if len(unknown) > 0 {
		why = "unknown: " + wording.LineOf(strings.Join(unknown, ", "), 200)
	}
	return tool.Refuse(tool.AgentNoTools, "Agent '%s' would be spawned with zero tools (%s). Correct the list of "+
		"tools in %s, or use another type.", t.Name, why, wording.LineOf(t.File, 200))
}

// briefs is the answer of a server that executes no sub-agents.
func briefs(orders []agent.Order, apart bool) string {
	var parts []string
	for _, o := range orders {
		if apart {
			o.Prompt += "\nWork in a git work tree of your own, and leave the main one as it is."
		}
		role := o.Type.Name + ": " + o.Type.Description
		if o.Type.File != "" {
			role += ". " + results.Clean(o.System)
		}
		parts = append(parts, agent.Brief(o.Type, strings.TrimSpace(role), o.Prompt, o.Tools))
	}
	return strings.Join(parts, "\n\n")
}
