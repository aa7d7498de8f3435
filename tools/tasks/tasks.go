// Package tasks is a list of tasks: what a task is, and what may become of it.
//
// A List is kept by a Memory, which makes each change one step: a cell of a session,
// or a directory that several sessions and processes share. Ids rise and are never
// used again; links between tasks are kept in both directions and form no circle.
package tasks

import (
	"context"
	"encoding/json"
)

// A Task is one piece of work.
type Task struct {
	ID          string                     `json:"id"`
	Subject     string                     `json:"subject"`
	Description string                     `json:"description"`
	ActiveForm  string                     `json:"activeForm,omitempty"`
	Status      string                     `json:"status"` // pending, in_progress, completed
	Owner       string                     `json:"owner,omitempty"`
	Blocks      []string                   `json:"blocks"`
	BlockedBy   []string                   `json:"blockedBy"`
	Metadata    map[string]json.RawMessage `json:"metadata,omitempty"`
}

// A Book is all tasks of a list, and the last id that was given away.
type Book struct {
	Last  int    `json:"last"`
	Tasks []Task `json:"tasks"` // by id
}

// Memory keeps a Book.
type Memory interface {
	Load(ctx context.Context) (Book, error)
	// Change replaces the Book by what edit makes of it, in one step. edit may run several times and must be pure.
	Change(ctx context.Context, edit func(Book) (Book, error)) (Book, error)
}

// A List is the tasks of a session, or of all who share a directory. It is safe for concurrent use.
type List struct {
	memory Memory
}

// New returns the list that m keeps.
func New(m Memory) List { return List{m} }
