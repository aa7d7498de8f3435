package skills

import "errors"

// The errors of Rendering.Text.
var (
	ErrUnsafe   = errors.New("an argument could be code in a command of the skill")
	ErrTooMany  = errors.New("the skill has too many commands") // more than 50
	errNoRender = errors.New("not rendered")
)

// Disabled stands where a command was not run.
const Disabled = "[shell command execution disabled by policy]"

// Arguments are what a text is rendered with.
type Arguments struct {
	Text    string // as they were given
	Project string // directory, for ${CLAUDE_PROJECT_DIR}
	Session string // for ${CLAUDE_SESSION_ID}
}

// A Part is a piece of a rendered text.
type Part struct {
	Text    string // as it is to be read, or the command line
	Command bool   // Text is a command: its output belongs here
	Unsafe  bool   // a command that must not run, because an argument would be code in it
}

// A Rendering is a skill's text, in order. Its commands come from the skill's file: an argument never becomes one.
type Rendering []Part

// Render puts arguments into body, in one pass: what is put in is never looked at again.
//
//	$ARGUMENTS            all arguments as they were given
//	$ARGUMENTS[N], $N     argument N, from 0; split as a shell does, an open quote ends with the text. Missing: left as it is
//	$name                 argument by its position in s.Arguments, longest name first, as a whole word. Missing: empty
//	${CLAUDE_SKILL_DIR}   and PROJECT_DIR, SESSION_ID; CODEHAND_ for CLAUDE_ too
//	\$1                   $1 itself, and so for all of the above
//
// Arguments that no placeholder took follow the text as "ARGUMENTS: …" on a line of their own.
//
// A command is !`command` on one line, at the line's start or after white space, or a block fenced with ```! lines. Within
// another fence or code span it is text, which some other programs run. Commands are found before anything is put in. In a
// command an argument is one quoted word ($ARGUMENTS: one for each), or stands bare in quotes of the command; it consists
// of letters, digits, blanks and _ . / : @ % + , = - only, else the command is Unsafe: no quoting is safe in commands that
// hand their words to a second shell. The error is ErrTooLarge.
func Render(s Skill, body string, a Arguments) (Rendering, error) { return nil, errNoRender }

// Commands returns the commands in their order, the unsafe ones too.
func (r Rendering) Commands() []string { return nil }

// Text returns the text with what run returns in the place of each command, without the line ends at its end. It stops at
// the first error of run. Before it runs anything it returns ErrUnsafe if a command is, and ErrTooMany for more than 50.
// Where run is nil nothing runs, and Disabled stands in the place of every command.
func (r Rendering) Text(run func(command string) (string, error)) (string, error) {
	return "", nil
}
