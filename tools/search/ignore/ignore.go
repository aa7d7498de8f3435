// Package ignore reads gitignore patterns and decides about names. It is pure.
package ignore

// A Verdict is what a list says about a name.
type Verdict int

// The verdicts. None: no rule matches.
const (
	None Verdict = iota
	Ignore
	Keep
)

// A List is one parsed ignore file.
type List struct { /* helper E */
}

// Parse reads an ignore file. It never fails; a line that git would not understand matches nothing.
func Parse(data []byte) *List { panic("skeleton") }

// Match says what the last matching rule says about rel, a slash path below the list's directory.
func (l *List) Match(rel string, dir bool) Verdict { panic("skeleton") }
