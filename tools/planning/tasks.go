package planning

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"codehand/filestate/lock"
	"codehand/tools/results"
	"codehand/tools/tasks"
	"codehand/tools/tool"
	"codehand/tools/wording"
)

// TaskRefusal puts into words what the engine of tasks says to the tool name. That a call has ended comes back as it
// is.
func TaskRefusal(ctx context.Context, name string, err error) error {
	unknown, isUnknown := errors.AsType[*tasks.UnknownError](err)
	cycle, isCycle := errors.AsType[*tasks.CycleError](err)
	limit, isLimit := errors.AsType[*tasks.LimitError](err)
	size, isSize := errors.AsType[*tasks.SizeError](err)
	directory, isDirectory := errors.AsType[*tasks.DirectoryError](err)
	const remedy = "Delete tasks with task_update and the status deleted; completed ones count, too."
	switch {
	case wording.Ended(ctx, err):
		return err
	case isUnknown:
		return unknownTask(unknown)
	case isCycle:
		return tool.Refuse(tool.TaskCycle,
			"Task %s would wait for itself: %s (each blocks the next). Nothing was changed. Leave out one of these "+
				"links, or delete one of these tasks.",
			cycle.Circle[0], shortCircle(cycle.Circle))
	case isLimit:
		has := wording.Plural(limit.Tasks, "task", "tasks")
		if limit.Damaged > 0 {
			has += " and " + wording.Plural(limit.Damaged, "damaged file", "damaged files")
		}
		return tool.Refuse(tool.TaskLimit, "The list has %s, of at most %d; %s completed. Nothing was changed. %s",
			has, tasks.MaxTasks, wording.Plural(limit.Completed, "is", "are"), remedy)
	case isSize:
		return tool.Refuse(tool.TooLarge,
			"The list of tasks is too large (%s). Limit: %s. Nothing was changed. Shorten what you add. %s",
			results.Size(int64(size.Size)), results.Size(int64(size.Limit)), remedy)
	case errors.Is(err, tasks.ErrDepth):
		return tool.Invalid(name, `"metadata" must be nested at most 100 deep`)
	case errors.Is(err, lock.ErrLocked):
		return tool.Refuse(tool.Busy,
			"The list of tasks is being changed by another session. Nothing was done. Try again.")
	case isDirectory && directory.Writing:
		return tool.Refuse(tool.WriteFailed,
			"Writing the shared list of tasks failed: %s. Part of the change may be done: check with task_list before "+
				"you repeat the call.", wording.LineOf(directory.Err.Error(), 200))
	case isDirectory:
		return tool.Refuse(tool.StateUnavailable,
			"The shared list of tasks cannot be used: %s. Nothing was changed. Tell the user.",
			wording.LineOf(directory.Error(), 300))
	}
	return wording.StateRefusal()
}

// CheckTask limits the texts of a task, in characters. The schemas do not say so: each limit there costs every
// conversation 17 bytes, and ordinary texts are far shorter.
func CheckTask(name, subject, description, activeForm, owner string) error {
	var wrong []string
	for _, f := range []struct {
		name, text string
		most       int
	}{{"subject", subject, 1000}, {"description", description, 40_000}, {"activeForm", activeForm, 1000},
		{"owner", owner, 200}} {
		if n := utf8.RuneCountInString(f.text); n > f.most {
			wrong = append(wrong, fmt.Sprintf("%q must have at most %d characters, not %d", f.name, f.most, n))
		}
	}
	if wrong != nil {
		return tool.Invalid(name, wrong...)
	}
	return nil
}

// unknownTask names the tasks that there are.
func unknownTask(e *tasks.UnknownError) error {
	text := "There are no tasks. Make one with task_create."
	if len(e.Known) > 0 {
		text = "There are: " + manyIDs(e.Known) + ". Use task_list."
	}
	ids := make([]string, len(e.IDs))
	for i, id := range e.IDs {
		ids[i] = wording.LineOf(cmp.Or(id, `""`), 20)
	}
	text = fmt.Sprintf("No task %s. %s", manyIDs(ids), text)
	if notes := DamageNotes(e.Damaged); notes != nil {
		text += "\n" + strings.Join(notes, "\n")
	}
	return tool.Refuse(tool.TaskUnknown, "%s", text)
}

// maxIDs is how many ids a refusal names.
const maxIDs = 20

func manyIDs(ids []string) string {
	if len(ids) > maxIDs {
		return fmt.Sprintf("%s and %d more", strings.Join(ids[:maxIDs], ", "), len(ids)-maxIDs)
	}
	return strings.Join(ids, ", ")
}

// shortCircle leaves out the middle of a long circle.
func shortCircle(ids []string) string {
	const arrow, half = " → ", 5
	if len(ids) > 2*half {
		return strings.Join(ids[:half], arrow) + arrow + "…" + arrow + strings.Join(ids[len(ids)-half:], arrow)
	}
	return strings.Join(ids, arrow)
}

// DamageNotes report files of a shared list that cannot be used.
func DamageNotes(damaged []tasks.Damaged) []string {
	const most = 5
	var notes []string
	for i, d := range damaged {
		if i == most {
			return append(notes, fmt.Sprintf("(%d more files are damaged.)", len(damaged)-i))
		}
		notes = append(notes,
			fmt.Sprintf("(The file %s of the shared list is damaged and was left as it is: %s. Tell the user.)", d.File,
				wording.LineOf(d.Reason, 100)))
	}
	return notes
}

// TaskID takes an id as people write it, too: #7.
func TaskID(id string) string { return strings.TrimPrefix(strings.TrimSpace(id), "#") }

// TaskIDs is TaskID for each of ids.
func TaskIDs(ids []string) []string {
	plain := make([]string, len(ids))
	for i, id := range ids {
		plain[i] = TaskID(id)
	}
	return plain
}

// Metadata are the fields of an object that Bind let through; nil: there is none.
func Metadata(raw json.RawMessage) map[string]json.RawMessage {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(raw, &fields) // it is an object or empty
	return fields
}
