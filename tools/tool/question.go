package tool

// A Question is put to a person, by elicitation.
type Question struct {
	Title  string
	Text   string // plain; with Title at most 4,000 characters
	Fields []Field
}

// A Field is one thing to fill in.
type Field struct {
	Name    string
	Label   string
	Choices []string // empty: free text
	Many    bool     // several choices may be taken
}

// An Outcome says what became of a Question. The zero value is no answer: nobody could be asked.
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
}
