package skills

import (
	"errors"
	"fmt"
	"strings"
)

// What a text is at most.
const (
	maxRendered = 4 << 20 // bytes: $ARGUMENTS 100,000 times would make a gigabyte
	maxCommands = 50
)

// MaxArguments is how many characters of arguments callers take.
const MaxArguments = 10_000

// disabled stands where a command was not run.
const disabled = "[shell command execution disabled by policy]"

// The errors of Rendering.Text.
var (
	ErrUnsafe  = errors.New("an argument could be code in a command of the skill")
	ErrPlace   = errors.New("the name of a directory could be code in a command of the skill")
	ErrTooMany = errors.New("the skill has more than 50 commands")
)

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
	Unsafe  bool   // a command that must not run, because an argument would be code in it; Text is as the file has it
	Place   bool   // it is Unsafe, and that because of a directory's name
}

// A Rendering is a skill's text, in order. Its commands come from the skill's file: an argument never becomes one.
type Rendering []Part

// Render puts arguments into body, in one pass: what is put in is never looked at again.
//
//	$ARGUMENTS            all arguments as they were given
//	$ARGUMENTS[N], $N     argument N, from 0; split as a shell does, at white space alone if a quote is open. Missing:
//
// left
//
//	$name                 argument by its position in s.Arguments, longest name first, as a whole word. Missing: empty
//	${CLAUDE_SKILL_DIR}   and PROJECT_DIR, SESSION_ID; CODEHAND_ for CLAUDE_ too
//	\$1                   $1 itself, and so for all of the above
//
// Arguments that no placeholder took follow the text as "ARGUMENTS: …" on a line of their own.
//
// A command is !`command` on one line, at the line's start or after white space, or a block fenced with ```! lines.
// Within another fence or code span it is text, which some other programs run. Commands are found before anything is
// put in. In a command an argument is one quoted word ($ARGUMENTS: one for each), or stands as it is in quotes of the
// command; what is put in consists of letters, digits, blanks and _ . / : @ % + , = - only, else the command is Unsafe:
// no quoting is safe in commands that hand their words to a second shell. The error is ErrTooLarge.
func Render(s Skill, body string, a Arguments) (Rendering, error) {
	r := renderer{fillings: prepare(s, a)}
	var out Rendering
	for _, part := range blocks(body) {
		if part.Command {
			out = append(out, r.command(part))
		} else {
			out = append(out, Part{Text: r.text(part.Text)})
		}
		if r.size > maxRendered {
			return nil, ErrTooLarge
		}
	}
	if !r.took && strings.TrimSpace(a.Text) != "" {
		out = appendArguments(out, a.Text)
	}
	return out, nil
}

// appendArguments puts arguments on a line of their own behind all others.
func appendArguments(parts Rendering, text string) Rendering {
	line := "ARGUMENTS: " + text + "\n"
	if len(parts) == 0 {
		return Rendering{{Text: line}}
	}
	last := &parts[len(parts)-1]
	if last.Command {
		return append(parts, Part{Text: "\n\n" + line})
	}
	if last.Text = strings.TrimRight(last.Text, "\n"); last.Text != "" || len(parts) > 1 {
		last.Text += "\n\n"
	}
	last.Text += line
	return parts
}

// A renderer puts fillings into parts.
type renderer struct {
	fillings fillings
	took     bool // a placeholder took arguments
	size     int  // bytes so far
}

// text fills in a text. It stops when that is too large.
func (r *renderer) text(s string) string {
	var b strings.Builder
	start := r.size
	for rest := s; rest != ""; {
		before, p, after := r.fillings.next(rest)
		b.WriteString(before)
		switch {
		case p.literal, p.got.missing:
			b.WriteString(p.text)
		default:
			b.WriteString(p.got.text)
			r.took = r.took || p.got.argument
		}
		if r.size = start + b.Len(); r.size > maxRendered {
			break
		}
		rest = after
	}
	return b.String()
}

// command fills in a command.
func (r *renderer) command(part Part) Part {
	var b strings.Builder
	var q quoting
	var prev byte
	for rest := part.Text; rest != ""; {
		before, p, after := r.fillings.next(rest)
		b.WriteString(before)
		q.pass(before)
		if before != "" {
			prev = before[len(before)-1]
		}
		if p.literal || p.got.missing {
			b.WriteString(p.text)
			q.pass(p.text)
		} else {
			r.took = r.took || p.got.argument
			word, ok := p.got.inCommand(q.quote != 0, prev, first(after))
			part.Unsafe, part.Place = part.Unsafe || !ok, part.Place || !ok && !p.got.argument
			b.WriteString(word)
		}
		if p.text != "" {
			prev = p.text[len(p.text)-1]
		}
		rest = after
		if b.Len()+r.size > maxRendered {
			break
		}
	}
	r.size += b.Len()
	if !part.Unsafe {
		part.Text = b.String()
	}
	return part
}

// first is the first byte of s, 0 if there is none.
func first(s string) byte {
	if s == "" {
		return 0
	}
	return s[0]
}

// inCommand is what stands in a command for a placeholder. ok is false when it could be code there.
func (f filling) inCommand(quoted bool, before, after byte) (word string, ok bool) {
	if quoted || f.words == nil {
		if !harmless(f.text) {
			return "", false
		}
		if quoted || f.text == "" {
			return f.text, true
		}
		return quoteWord(f.text, before, after), true
	}
	var words []string
	for _, w := range f.words {
		if !harmless(w) {
			return "", false
		}
		words = append(words, quoteWord(w, before, after))
	}
	return strings.Join(words, " "), true
}

// Text returns the text with what run returns in the place of each command, without the line ends at its end. It stops
// at the first error of run. Before it runs anything it returns ErrUnsafe or ErrPlace if a command is, and ErrTooMany
// for more than 50. Where run is nil nothing runs, and disabled stands in the place of every command.
func (r Rendering) Text(run func(command string) (string, error)) (string, error) {
	if run == nil {
		run = func(string) (string, error) { return disabled, nil }
	} else if err := r.runnable(); err != nil {
		return "", err
	}
	var b strings.Builder
	for _, part := range r {
		if !part.Command {
			b.WriteString(part.Text)
			continue
		}
		out, err := run(part.Text)
		if err != nil {
			return "", err
		}
		b.WriteString(strings.TrimRight(out, "\r\n"))
	}
	return b.String(), nil
}

// runnable reports what speaks against running the commands.
func (r Rendering) runnable() error {
	count := 0
	for _, part := range r {
		if part.Place {
			return fmt.Errorf("%w: %s", ErrPlace, part.Text)
		}
		if part.Unsafe {
			return fmt.Errorf("%w: %s", ErrUnsafe, part.Text)
		}
		if part.Command {
			count++
		}
	}
	if count > maxCommands {
		return ErrTooMany
	}
	return nil
}
