package tasks

// MaxBook shows tests how large a Book may be.
const MaxBook = maxBook

// Task shows tests the task with this id.
func (b Book) Task(id string) (Task, bool) { return b.task(id) }

// IDs shows tests the ids of all tasks.
func (b Book) IDs() []string { return b.ids() }
