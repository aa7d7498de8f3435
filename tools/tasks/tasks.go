// Package tasks keeps a list of tasks and its rules: what a task is, and how it may change.
//
// A List is stored in a Memory, which makes each change atomic: a cell of a session, or a Directory that several
// sessions and processes share. Ids rise and are never reused; links between tasks are kept in both directions and form
// no circle.
//
// The rules are functions from one Book to the next, which do not know where it is stored. Only a Directory can be
// found half changed, since it has several files; mend repairs such a Book so that it keeps the rules.
package tasks

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// The states of a task.
const (
	Pending    = "pending"
	InProgress = "in_progress"
	Completed  = "completed"
)

const (
	// MaxTasks is how many tasks a list has at most, completed ones and damaged files included.
	MaxTasks = 500
	// maxBook is how many bytes of JSON a Book may take: as many as a value of the Store.
	maxBook = 256 << 10
	// maxDepth is how deep metadata may be nested. A decoder of JSON ends at 10,000, and a Book that it cannot read is
	// lost.
	maxDepth = 100
	// maxID is the largest id. Counting never reaches it.
	maxID = 999_999_999
)

// A Task is one piece of work.
type Task struct {
	ID          string                     `json:"id"`
	Subject     string                     `json:"subject"`
	Description string                     `json:"description"`
	ActiveForm  string                     `json:"activeForm,omitempty"`
	Status      string                     `json:"status"` // pending, in_progress, completed
	Owner       string                     `json:"owner,omitempty"`
	Blocks      []string                   `json:"blocks"`    // tasks that wait for this one, by id
	BlockedBy   []string                   `json:"blockedBy"` // tasks that this one waits for, by id
	Metadata    map[string]json.RawMessage `json:"metadata,omitempty"`
}

// A Book is all tasks of a list, and the last id that was given away.
type Book struct {
	Last    int       `json:"last"`
	Tasks   []Task    `json:"tasks"` // by id
	Damaged []Damaged `json:"-"`     // files of a Directory that cannot be used; they stay as they are
}

// Damaged is a file that should be of the list and cannot be used. Its id is not given to another task.
type Damaged struct {
	ID     string // "": it holds the last id
	File   string // its name in the directory
	Reason string // half a sentence
}

// Memory keeps a Book. It is safe for concurrent use.
type Memory interface {
	// Load returns the Book, which is shared: callers must not change what it points to.
	Load(ctx context.Context) (Book, error)
	// Change replaces the Book by what edit makes of it, in one step. edit may run several times, each time on a copy
	// of its own, and must be pure. Its error comes back, perhaps wrapped, and nothing is changed.
	Change(ctx context.Context, edit func(Book) (Book, error)) (Book, error)
}

// A List is the tasks of a session, or of all who share a directory. It is safe for concurrent use. Besides the errors
// that are named, its methods return those of its Memory.
type List struct {
	memory Memory
}

// New returns the list that m keeps.
func New(m Memory) List { return List{m} }

// Book returns all tasks. They are shared: callers must not change what they point to.
func (l List) Book(ctx context.Context) (Book, error) {
	if err := context.Cause(ctx); err != nil {
		return Book{}, err
	}
	return l.memory.Load(ctx)
}

// A Draft is what a new task begins with. A metadata value null is left out.
type Draft struct {
	Subject, Description, ActiveForm string
	Metadata                         map[string]json.RawMessage
}

// Create adds a task with the next id. Errors: *LimitError, *SizeError, ErrDepth.
func (l List) Create(ctx context.Context, d Draft) (Task, error) {
	if tooDeep(d.Metadata) {
		return Task{}, ErrDepth
	}
	var made Task
	_, err := l.memory.Change(ctx, func(b Book) (Book, error) {
		if len(b.Tasks)+len(b.Damaged) >= MaxTasks {
			return Book{}, &LimitError{Tasks: len(b.Tasks), Completed: b.completed(), Damaged: len(b.Damaged)}
		}
		if b.Last >= maxID { // in a directory only: a person put a file with this name there
			return Book{}, &DirectoryError{Step: "find a free id in", Err: fmt.Errorf("%d is taken", b.Last)}
		}
		before := b.size()
		b.Last++
		made = Task{
			ID: strconv.Itoa(b.Last), Subject: d.Subject, Description: d.Description, ActiveForm: d.ActiveForm,
			Status: Pending,
			Blocks: []string{}, BlockedBy: []string{}, Metadata: merged(nil, d.Metadata),
		}
		b.Tasks = append(b.Tasks, made)
		return b, b.fits(before)
	})
	return made, err
}

// task returns the task with this id.
func (b Book) task(id string) (Task, bool) {
	if i := b.index(id); i >= 0 {
		return b.Tasks[i], true
	}
	return Task{}, false
}

// Find returns the task with this id. Errors: *UnknownError.
func (b Book) Find(id string) (Task, error) {
	t, ok := b.task(id)
	if !ok {
		return Task{}, b.unknown(id)
	}
	return t, nil
}

// Blockers returns the tasks for which t still waits, by id.
func (b Book) Blockers(t Task) []string {
	var open []string
	for _, id := range t.BlockedBy {
		if other, ok := b.task(id); !ok || other.Status != Completed {
			open = append(open, id) // a damaged file may be of a task that is not completed
		}
	}
	return open
}

// ids returns the ids of all tasks.
func (b Book) ids() []string {
	ids := make([]string, len(b.Tasks))
	for i, t := range b.Tasks {
		ids[i] = t.ID
	}
	return ids
}

// index is where the task with this id is; -1: nowhere.
func (b Book) index(id string) int {
	i, ok := slices.BinarySearchFunc(b.Tasks, id, func(t Task, id string) int { return byID(t.ID, id) })
	if !ok {
		return -1
	}
	return i
}

func (b Book) completed() (n int) {
	for _, t := range b.Tasks {
		if t.Status == Completed {
			n++
		}
	}
	return n
}

// size is how many bytes of JSON the Book takes, as a Cell writes it.
func (b Book) size() int {
	raw, _ := json.Marshal(b) // plain types, and values that were valid JSON when they came
	return len(raw)
}

// fits refuses a Book that has grown over the limit. One that shrinks may still be over it: files can be copied by
// hand.
func (b Book) fits(before int) error {
	if n := b.size(); n > maxBook && n > before {
		return &SizeError{Size: n, Limit: maxBook}
	}
	return nil
}

// merged puts changes over old and leaves out what is null. nil: nothing is left.
func merged(old, changes map[string]json.RawMessage) map[string]json.RawMessage {
	all := maps.Clone(old)
	if all == nil {
		all = map[string]json.RawMessage{}
	}
	for key, value := range changes {
		if string(value) == "null" {
			delete(all, key)
			continue
		}
		// a decoder lets it through, and would not get back what it wrote
		all[key] = bytes.ToValidUTF8(value, []byte("\uFFFD"))
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

// tooDeep says whether a value is nested deeper than maxDepth. The values are valid JSON.
func tooDeep(metadata map[string]json.RawMessage) bool {
	for _, raw := range metadata {
		depth, quoted := 0, false
		for i := 0; i < len(raw); i++ {
			switch c := raw[i]; {
			case quoted && c == '\\':
				i++
			case c == '"':
				quoted = !quoted
			case quoted:
			case c == '{' || c == '[':
				if depth++; depth > maxDepth {
					return true
				}
			case c == '}' || c == ']':
				depth--
			}
		}
	}
	return false
}

// byID orders ids, and names of files that begin with one, as the numbers that they are.
func byID(a, b string) int { return cmp.Or(len(a)-len(b), strings.Compare(a, b)) }

// number is the value of an id in its one spelling: digits that do not begin with 0.
func number(id string) (int, bool) {
	n, err := strconv.Atoi(id)
	return n, err == nil && n >= 1 && n <= maxID && strconv.Itoa(n) == id
}
