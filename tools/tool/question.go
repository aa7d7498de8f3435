package tool

import "encoding/json"

// A Question is put to a person, by elicitation.
type Question struct {
	Title  string
	Text   string // plain; with Title at most 4,000 characters
	Fields []Field

	// Seen is what Run gets back with the answer, as it was when the question went out: a digest of what the person was
	// shown, for a Run that must know whether it is still the same. At most 1 KiB.
	Seen string

	// OnPage says that a tool's own question may be answered on the page of serve, by the person of a client that
	// cannot ask. Questions about permission may without it.
	OnPage bool

	// Decides is the name of the field whose choice is the decision, for the audit; "": the question is none about
	// permission, and the audit learns nothing of what was said.
	Decides string
}

// A Field is one thing to fill in. A text need never be, a choice must be unless it is Optional or Many.
type Field struct {
	Name     string
	Label    string
	About    string   // what is asked, below the label; "": the label says it
	Choices  []string // the values of an answer; empty: free text
	Titles   []string // what is shown for each of them; nil: the choices themselves
	Many     bool     // several choices may be taken
	Optional bool     // the choice may be left open
}

// An Outcome says what became of a Question. The zero value is no answer: there was no person to ask.
type Outcome int

// The outcomes. Only Accepted carries values.
const (
	Unanswered Outcome = iota
	Declined
	Cancelled
	Accepted
)

// An Answer belongs to a Question.
type Answer struct {
	Outcome Outcome
	Values  map[string][]string
	Seen    string // Question.Seen, of the question that was answered; filled in by the pipeline
	Silent  bool   // Declined or Cancelled because no person answered, and not because one said so
	Stopped bool   // Silent, because the server stops
}

// Elicited is what a person says to a question of another program. Action is accept, decline or cancel; only accept has
// a Content, which nobody has checked.
type Elicited struct {
	Action  string
	Content json.RawMessage
}
