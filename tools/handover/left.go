package handover

import (
	"context"
	"encoding/json"
	"io"
	"strings"

	"codehand/tools/past"
	"codehand/tools/permission"
	"codehand/tools/planning"
	"codehand/tools/session"
	"codehand/tools/tasks"
	"codehand/tools/wording"
	"codehand/tools/workspace"
)

// left is what a session left to do.
type left struct {
	plan     string // the text of its plan; "": it has none
	planning bool   // it is in plan mode: nobody has approved the plan
	todos    []session.Todo
	tasks    tasks.Book
}

// readLeft reads what the session that asks has left to do, and the sessions last used before it.
func (d *digest) readLeft(ctx context.Context) error {
	if mine := session.OwnerOf(d.env.Key.Session); d.wants(mine) && mine == d.env.Key.Session {
		own, err := d.ownLeft(ctx)
		if err != nil {
			return err
		}
		known := len(d.rows) > 0 && d.mine(d.rows[0].name)
		if !known && (own.plan != "" || len(own.todos)+len(own.tasks.Tasks) > 0) { // done nothing that is on record
			d.rows = append([]*sessionRow{{name: mine, first: d.now, last: d.now}}, d.rows...)
			known = true
		}
		if known {
			d.rows[0].left = own
		}
	}
	if d.off() != "" {
		return nil
	}
	asked := 0
	for _, r := range d.rows {
		if d.mine(r.name) {
			continue
		}
		if asked++; asked > mostAsked {
			break
		}
		kept, err := d.records.Left(ctx, d.who(), r.name)
		if err != nil {
			continue // what cannot be read of one session must not hide the others
		}
		r.left = d.decode(ctx, kept)
	}
	return nil
}

// ownLeft is that of the session that asks.
func (d *digest) ownLeft(ctx context.Context) (l left, err error) {
	s := d.env.State
	if l.todos, err = s.Todos.Load(ctx); err != nil {
		return l, wording.StateFault(ctx, err)
	}
	if l.tasks, err = s.Tasks.Book(ctx); err != nil {
		return l, planning.TaskRefusal(ctx, "", err)
	}
	plan, err := s.Plan.Load(ctx)
	if err != nil {
		return l, wording.StateFault(ctx, err)
	}
	mode, err := s.Mode.Load(ctx)
	if err != nil {
		return l, wording.StateFault(ctx, err)
	}
	l.planning, l.plan = mode == permission.Plan, d.planText(ctx, plan.Path)
	return l, nil
}

// decode reads what another session left. What is damaged counts as nothing.
func (d *digest) decode(ctx context.Context, kept past.Left) (l left) {
	var plan session.Plan
	var mode permission.Mode
	take := func(raw []byte, into any) bool { return raw != nil && json.Unmarshal(raw, into) == nil }
	if take(kept.Plan, &plan) {
		l.plan = d.planText(ctx, plan.Path)
	}
	l.planning = take(kept.Mode, &mode) && mode == permission.Plan
	if !take(kept.Todos, &l.todos) {
		l.todos = nil
	}
	if !take(kept.Tasks, &l.tasks) {
		l.tasks = tasks.Book{}
	}
	return l
}

// planText is what stands in a plan file; "": nothing, or it cannot be read or may not be. The session keeps the path,
// so outside of the roots it leads to a plan of ours, which no rule about files of others means.
func (d *digest) planText(ctx context.Context, path string) string {
	if path == "" || d.view.Within(path) && d.view.Hides(path) {
		return ""
	}
	reading := *d.env.State
	reading.Space = reading.Space.ReadableFile(path)
	f, err := reading.Open(path, workspace.Read)
	if err != nil {
		return ""
	}
	defer f.Close()
	from, err := reading.Files.Open(ctx, f)
	if err != nil {
		return ""
	}
	defer from.Close()
	text, err := io.ReadAll(io.NewSectionReader(from, 0, maxPlan))
	if err != nil || f.Path != path { // a link, by which another file would be the plan
		return ""
	}
	return strings.TrimSpace(string(text))
}

// maxPlan is how many bytes of a plan are read: more than ever fits.
const maxPlan = 64 << 10
