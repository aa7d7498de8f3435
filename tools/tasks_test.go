package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"codehand/filestate/lock"
	"codehand/server/state"
	"codehand/tools/session"
	"codehand/tools/tasks"
	"codehand/tools/tool"
)

// items writes n todos.
func items(n int, content, status string) string {
	list := make([]session.Todo, n)
	for i := range list {
		list[i] = session.Todo{Content: content, Status: status}
	}
	raw, _ := json.Marshal(map[string]any{"todos": list})
	return string(raw)
}

// A list that the Store would not keep was an error of ours, and what stood there before was a guess.
func TestTodosFitTheStore(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.ok("todo_write", `{"todos":[{"content":"first","status":"pending"}]}`)
	large := items(200, strings.Repeat("<", 1000), "pending") // 6 bytes each in JSON
	text := r.fails(tool.TooLarge, "todo_write", large)
	same(t, text, "TOO_LARGE: The todo list is too large (1.2 MB). Limit: 256.0 KB. Nothing was changed. Write shorter items, or leave out completed ones.")
	if got, err := r.Todos.Load(t.Context()); err != nil || len(got) != 1 || got[0].Content != "first" {
		t.Errorf("the list is %v, %v", got, err)
	}
	r.ok("todo_write", items(200, strings.Repeat("ü", 600), "pending"))
	r.ok("todo_write", items(200, strings.Repeat("<", 1000), "completed")) // it is not kept
	if got, err := r.Todos.Load(t.Context()); err != nil || len(got) != 0 {
		t.Errorf("the list has %d items, %v", len(got), err)
	}
}

// Limits count characters: a text of 400 Chinese ones was too long where they were counted in bytes.
func TestTextsOfTodosAndTasks(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	long, longer := strings.Repeat("字", 1000), strings.Repeat("字", 1001)
	r.ok("todo_write", items(1, long, "pending"))
	r.ok("task_create", fmt.Sprintf(`{"subject":%q,"description":%q,"activeForm":%q}`, long, strings.Repeat("字", 20_000), long))
	for name, args := range map[string]string{
		"todo_write":  items(1, longer, "pending"),
		"task_create": fmt.Sprintf(`{"subject":%q,"description":"d"}`, longer),
		"task_update": fmt.Sprintf(`{"taskId":"1","activeForm":%q,"owner":%q}`, longer, longer),
	} {
		if text := r.fails(tool.InputInvalid, name, args); !strings.Contains(text, "characters, not 1001") {
			t.Errorf("%s: %s", name, text)
		}
	}
	r.fails(tool.InputInvalid, "todo_write", items(201, "x", "pending"))
	r.fails(tool.InputInvalid, "task_create", fmt.Sprintf(`{"subject":"x","description":"d","metadata":{"a":%s}}`, strings.Repeat("[", 101)+strings.Repeat("]", 101)))
}

func TestTaskLimits(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	full := tasks.Book{Last: 600}
	for id := 101; id <= 600; id++ {
		full.Tasks = append(full.Tasks, tasks.Task{ID: fmt.Sprint(id), Subject: "x", Status: tasks.Completed, Blocks: []string{}, BlockedBy: []string{}})
	}
	cell := session.NewCell[tasks.Book](r.memory(), "cell.tasks")
	if _, err := cell.Change(t.Context(), func(tasks.Book) (tasks.Book, error) { return full, nil }); err != nil {
		t.Fatal(err)
	}
	same(t, r.fails(tool.TaskLimit, "task_create", `{"subject":"x","description":"d"}`),
		"TASK_LIMIT: The list has 500 tasks, of at most 500; 500 are completed. Nothing was changed. Delete tasks with task_update and the status deleted; completed ones count, too.")
	same(t, r.fails(tool.TaskUnknown, "task_get", `{"taskId":"7"}`),
		"TASK_UNKNOWN: No task 7. There are: 101, 102, 103, 104, 105, 106, 107, 108, 109, 110, 111, 112, 113, 114, 115, 116, 117, 118, 119, 120 and 480 more. Use task_list.")
	large := fmt.Sprintf(`{"taskId":"101","metadata":{"a":%q}}`, strings.Repeat("x", 300_000))
	if text := r.fails(tool.TooLarge, "task_update", large); !strings.Contains(text, "Limit: 256.0 KB. Nothing was changed.") {
		t.Error(text)
	}
	for id := 101; id < 120; id++ {
		r.ok("task_update", fmt.Sprintf(`{"taskId":%d,"addBlocks":[%d]}`, id, id+1))
	}
	if text := r.fails(tool.TaskCycle, "task_update", `{"taskId":120,"addBlocks":["101"]}`); !strings.Contains(text, "120 → 101 → 102 → 103 → 104 → … → 116 → 117 → 118 → 119 → 120 (each blocks the next)") || len(text) > 500 {
		t.Error(text)
	}
}

// memory is that of the rig's session.
func (r *rig) memory() session.Memory { return state.Scoped(r.Store, "sess.local.test") }

// Eight calls at the same time in one session lose no task, and the last todo list wins whole.
func TestListsUnderParallelCalls(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	calls := make([]tool.Call, 0, 16)
	envs := make([]tool.Env, 0, 16)
	for i := range 8 {
		for _, x := range []struct {
			t    tool.Tool
			args string
		}{{taskCreate, fmt.Sprintf(`{"subject":"%d","description":"d"}`, i)}, {todoWrite, items(i+1, fmt.Sprint(i), "pending")}} {
			call, err := x.t.Bind(r.State, json.RawMessage(x.args))
			if err != nil {
				t.Fatal(err)
			}
			calls, envs = append(calls, call), append(envs, r.Env(call))
		}
	}
	var all sync.WaitGroup
	for i, call := range calls {
		all.Go(func() {
			if _, err := call.Run(t.Context(), envs[i]); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := len(strings.Split(r.ok("task_list", `{}`), "\n")); n != 8 {
		t.Errorf("%d tasks, want 8", n)
	}
	todos, err := r.Todos.Load(t.Context())
	if err != nil || len(todos) == 0 || fmt.Sprint(len(todos)-1) != todos[0].Content {
		t.Errorf("todos: %v, %v", todos, err)
	}
}

func TestListsWithoutTheStore(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	if err := r.Store.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"todo_write", "task_create", "task_get", "task_list", "task_update"} {
		r.fails(tool.StateUnavailable, name, example(name))
	}
}

// A lockedOut is a Locker of a list that another process never lets go.
type lockedOut struct{}

func (lockedOut) Lock(context.Context, ...string) (func(), error) { return nil, lock.ErrLocked }

func TestSharedListOfAnother(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	path := filepath.Join(r.dir, "list")
	if err := os.MkdirAll(tasks.Locks(path), 0o700); err != nil {
		t.Fatal(err)
	}
	r.Tasks = tasks.New(tasks.NewDirectory(path, tasks.DirectoryOptions{Locker: lockedOut{}}))
	for _, name := range []string{"task_create", "task_get", "task_list", "task_update"} {
		same(t, r.fails(tool.Busy, name, example(name)), "BUSY: The list of tasks is being changed by another session. Nothing was done. Try again.")
	}
}

// A lockedUntil is a Locker under which the caller's client goes away.
type lockedUntil struct{ leave func() }

func (l lockedUntil) Lock(ctx context.Context, _ ...string) (func(), error) {
	l.leave()
	return nil, context.Cause(ctx)
}

// A call that its client cancelled, or that the server ended, said that the state store or the shared list cannot be used
// and that the user should be told.
func TestCancelledIsNoFault(t *testing.T) {
	t.Parallel()
	errGone := errors.New("cancelled by the client")
	call := func(r *rig, ctx context.Context, x tool.Tool) {
		t.Helper()
		bound, err := x.Bind(r.State, json.RawMessage(strings.ReplaceAll(x.Spec.Example, "$WORK", r.dir)))
		if err != nil {
			t.Fatal(err)
		}
		_, err = bound.Run(ctx, r.Env(bound))
		if !errors.Is(err, errGone) && !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", x.Spec.Name, err)
		}
	}
	shared := []tool.Tool{taskCreate, taskGet, taskList, taskUpdate}
	for _, x := range append(shared, todoWrite, sessionConfig, enterPlanMode, exitPlanMode, skill(nil)) {
		ctx, leave := context.WithCancelCause(t.Context())
		leave(errGone)
		call(newRig(t), ctx, x)
	}
	for _, x := range shared {
		r := newRig(t)
		path := filepath.Join(r.dir, "list")
		if err := os.MkdirAll(tasks.Locks(path), 0o700); err != nil {
			t.Fatal(err)
		}
		ctx, leave := context.WithCancelCause(t.Context())
		r.Tasks = tasks.New(tasks.NewDirectory(path, tasks.DirectoryOptions{Locker: lockedUntil{func() { leave(errGone) }}}))
		call(r, ctx, x)
	}
}

// A list of one task said that it had 500 when a person had put the largest id there, and the answer did not count
// damaged files.
func TestSharedListThatIsFull(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	put := func(list, name, text string) {
		t.Helper()
		path := filepath.Join(r.dir, list)
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(path, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		r.Tasks = tasks.New(tasks.NewDirectory(path, tasks.DirectoryOptions{Locker: lock.New(tasks.Locks(path)), Fast: true}))
	}
	put("last", "999999999.json", `{"id":"999999999","subject":"x","status":"pending"}`)
	same(t, r.fails(tool.StateUnavailable, "task_create", example("task_create")),
		"STATE_UNAVAILABLE: The shared list of tasks cannot be used: find a free id in the directory of tasks: 999999999 is taken. Nothing was changed. Tell the user.")
	for i := range tasks.MaxTasks {
		put("full", fmt.Sprintf("%d.json", i+1), map[bool]string{false: fmt.Sprintf(`{"id":"%d","subject":"x","status":"completed"}`, i+1)}[i < 2])
	}
	same(t, r.fails(tool.TaskLimit, "task_create", example("task_create")),
		"TASK_LIMIT: The list has 498 tasks and 2 damaged files, of at most 500; 498 are completed. Nothing was changed. Delete tasks with task_update and the status deleted; completed ones count, too.")
}

// example is the good call that a tool declares.
func example(name string) string {
	for _, x := range All(Engines{}) {
		if x.Spec.Name == name {
			return x.Spec.Example
		}
	}
	return ""
}
