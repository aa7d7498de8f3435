package sessions

import (
	"context"
	"encoding/json"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"

	"codehand/server/state"
	"codehand/server/tenants"
	"codehand/tools/permission"
	"codehand/tools/session"
)

// The cells of a session that hold what persons allowed it.
const (
	GrantsCell = "cell.grants"
	ModeCell   = "cell.mode"
	PlanCell   = "cell.plan"
	LimitCell  = "cell.limit"
)

// TodosCell is the todo list of a session.
const TodosCell = "cell.todos"

// handedOver are the cells that tell a later conversation what is left to do.
var handedOver = []string{PlanCell, ModeCell, TodosCell, tenants.TasksCell}

// A Left is what a session left to do, as its cells hold it; nil: nothing.
type Left struct{ Plan, Mode, Todos, Tasks []byte }

// Empty says that a session left nothing.
func (l Left) Empty() bool { return l.Plan == nil && l.Mode == nil && l.Todos == nil && l.Tasks == nil }

// LeftIn reads that from the memory of a session.
func LeftIn(ctx context.Context, memory session.Memory) (l Left, err error) {
	values, _, err := memory.GetAll(ctx, handedOver...)
	if err != nil {
		return l, err
	}
	return leftOf(values), nil
}

// LeftOnDisk reads that of a session on stdio whose process has ended, or is another one. stateDir is the state
// directory.
func LeftOnDisk(stateDir string, key session.Key) (l Left, err error) {
	values, err := state.ReadSnapshot(DirOf(stateDir, key), nameOf(key), handedOver...)
	return leftOf(values), err
}

func leftOf(values [][]byte) Left { return Left{values[0], values[1], values[2], values[3]} }

// DirOf is where a session keeps what is too large for the Store, in a state directory.
func DirOf(stateDir string, key session.Key) string {
	return filepath.Join(stateDir, area, state.Hash(key.Principal)[:16], state.Hash(key.Session)[:16])
}

func nameOf(key session.Key) string { return state.Hash(key.Principal) + "." + state.Hash(key.Session) }

// NoticesCell is what the client of a connection wants to be told. It ends with the connection, and no session has
// begun because it is there.
const NoticesCell = "cell.notices"

// resumed says whether a client can come back to a session over stdio after its process has ended: it gives it the same
// name again, in the request or in the environment. A session that is named after its process cannot be resumed.
func resumed(key session.Key) bool {
	for _, kind := range []string{ByHandle, ByThread, byConversation} {
		if strings.HasPrefix(key.Session, kind) {
			return true
		}
	}
	return false
}

// lasting is what a session over stdio finds of a value after its process has ended; nil: nothing. What persons allowed
// ends with the process, since another person may give the session's name next time: no grant lasts, and of the modes
// only plan, which permits least. Leaving plan mode then leads to start, in which the operator lets sessions start now,
// whatever was in force before. What a person has set on a page lasts as far as it narrows the session.
func lasting(key string, value []byte, start permission.Mode) []byte {
	switch key {
	case GrantsCell, NoticesCell:
		return nil
	case ModeCell:
		var mode permission.Mode
		if json.Unmarshal(value, &mode) != nil || mode != permission.Plan {
			return nil
		}
	case LimitCell:
		var limit session.Limit
		if json.Unmarshal(value, &limit) != nil {
			return nil
		}
		if mode, err := permission.ParseMode(limit.Mode); err == nil && mode.AtMost(start) != mode {
			limit.Mode = ""
		}
		limit.Let = false
		value, _ = json.Marshal(limit) // plain fields
	case PlanCell:
		var plan session.Plan
		if json.Unmarshal(value, &plan) != nil {
			return nil
		}
		plan.Before, plan.Left = start, false
		if start == permission.Plan { // left for default, as in a session that never planned otherwise
			plan.Before = permission.Default
		}
		value, _ = json.Marshal(plan) // plain fields
	}
	return value
}

// Resume puts into memory what an earlier process remembered of a session, and keeps what this one remembers in dir,
// until the caller runs stop; keep writes at once what was not written yet. start is the mode in which the session
// starts. Of a session that no later process can name, only what it left to do is kept, if handOver says so: for other
// sessions (LeftOnDisk). What cannot be read or written is logged: the session then begins anew the next time. A Store
// that is durable needs no Resume.
func Resume(key session.Key, dir string, start permission.Mode, memory state.Store, handOver bool, log *slog.Logger) (
	keep func(context.Context), stop func(),
) {
	keep, stop = func(context.Context) {}, func() {}
	whole := resumed(key)
	if !whole && (!handOver || !strings.HasPrefix(key.Session, byProcess)) {
		return keep, stop
	}
	failed := func(err error) { log.Warn("what a session remembers is not kept for its next process", "error", err) }
	snapshot, err := state.OpenSnapshot(context.Background(), memory, state.SnapshotOptions{
		Dir: dir, Name: nameOf(key), Failed: failed,
		Lasting: func(key string, value []byte) []byte {
			if !whole && !slices.Contains(handedOver, key) {
				return nil
			}
			return lasting(key, value, start)
		},
	})
	if err != nil {
		failed(err)
		return keep, stop
	}
	keep = func(ctx context.Context) {
		if err := snapshot.Keep(ctx); err != nil {
			failed(err)
		}
	}
	return keep, func() {
		if err := snapshot.Close(); err != nil {
			failed(err)
		}
	}
}
