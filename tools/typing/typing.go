// Package typing is what tools share that type into the terminals of jobs, and show their screens.
package typing

import (
	"cmp"
	"context"
	"errors"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"

	"codehand/tools/bash"
	"codehand/tools/permission"
	"codehand/tools/running"
	"codehand/tools/session"
	"codehand/tools/shell"
	"codehand/tools/terminal"
	"codehand/tools/tool"
	"codehand/tools/wording"
)

// A Key is a text that is typed as it is, or a key by its name.
type Key = terminal.Key

// Named is the key of that name, which may be a character or, as in Emacs, C-x for Ctrl-x and M-x for Alt-x. ok is
// false: there is none.
func Named(name string) (k Key, ok bool) {
	if utf8.RuneCountInString(name) == 1 {
		return Key{Text: name}, true // judged as what it is, a part of the line
	}
	if len(name) > 2 && (name[1] == '-' || name[1] == '+') {
		switch name[0] {
		case 'C', 'c':
			name = "Ctrl-" + name[2:]
		case 'M', 'm':
			name = "Alt-" + name[2:]
		}
	}
	return Key{Name: name}, terminal.KnownKey(name)
}

// A Typed is what a call types into the terminal of a job, and what rules and persons decide about.
//
// Where a shell may read it, that is the line which the shell gets, with what was typed before and not finished: a
// command as any other. Elsewhere it is the program that the job runs, since what its keys do is known to it alone.
// Both are dangerous if a line of the text would be, read as a command.
//
// What cannot be known: what a program makes of its input (`!rm` in an editor, os.system in python), what a shell
// expands from its history, and what a shell elsewhere means by a name. Where a rule forbids commands, a person is
// asked about such input, as about a script. A line that keys recall, complete or change counts as dangerous once it is
// sent to a shell, as does each line after a command that may have changed what keys do.
type Typed struct {
	Seen   terminal.Typing // who reads it
	after  terminal.Typing
	Target permission.Target
	Danger string // why it is dangerous; "": it is not
}

// Judge says what typing keys into a job is about. Errors are refusals.
func Judge(ctx context.Context, s *session.State, id string, keys []Key) (Typed, error) {
	job, term, err := shell.TerminalOf(ctx, s.Shell, id)
	if err == nil && job.Info().State != shell.Running {
		err = terminal.ErrOver
	}
	if err != nil {
		return Typed{}, Refusal(ctx, s, id, err)
	}
	seen, info := term.Typing(), job.Info()
	t := Typed{Seen: seen, after: follow(seen, keys)}
	text := strings.TrimRight(followed(seen, keys), "\n")
	if !seen.Secret {
		t.Danger = danger(s, text)
	}
	unknown := seen.Shell && !seen.Secret && runsUnknown(seen, keys)
	if seen.Shell && !seen.Secret && (unknown || strings.TrimSpace(text) != "") {
		if strings.TrimSpace(text) == "" {
			text = info.Command
		}
		t.Target = target(s, text)
		switch a := t.Target.Analysis; {
		case unknown:
			a.Class = bash.Dangerous
			a.Why = "keys have changed the line, and only the shell knows what it runs: press Ctrl-C and type the " +
				"whole line as text"
			a.Hidden = cmp.Or(a.Hidden, a.Why)
		case t.after.Unsure || seen.Unsure || pressesOther(keys):
			a.Hidden = cmp.Or(a.Hidden, "keys change the line in ways that only the shell knows")
		case strings.Contains(text, "!"):
			a.Hidden = cmp.Or(a.Hidden, "the shell may put in what its history has")
		}
		return t, nil
	}
	t.Target = target(s, info.Command)
	a := t.Target.Analysis
	a.Files, a.Removes = nil, nil // it was decided about them when the job began, and about what is dangerous
	if a.Class == bash.Dangerous {
		a.Class = bash.Writes
	}
	a.Hidden = cmp.Or(a.Hidden, "only the program knows what is typed into it")
	if t.Danger != "" {
		a.Class, a.Why = bash.Dangerous, t.Danger
	}
	return t, nil
}

// target is a command that is typed, or typed into. Its profile cannot be chosen any more.
func target(s *session.State, text string) permission.Target {
	a := bash.Analyze(text, s.Space.Inside)
	running.Weigh(s, &a)
	a.Doubt("it is typed into a program that runs")
	a.Settled = true
	return permission.Target{Kind: permission.Command, Value: text, Analysis: &a}
}

// danger says what makes a text dangerous if any shell reads it: the whole, each of its lines, and what stands behind
// the sign by which editors and debuggers start a shell. "": nothing does.
func danger(s *session.State, text string) string {
	texts := []string{text}
	for line := range strings.Lines(text) {
		_, command, _ := strings.Cut(line, "!")
		texts = append(texts, line, command)
	}
	for _, text := range texts {
		if strings.TrimSpace(text) == "" {
			continue
		}
		if why := Danger(s, text); why != "" {
			return why
		}
	}
	return ""
}

// Danger says what makes a command dangerous on this machine; "": nothing does.
func Danger(s *session.State, text string) string {
	a := bash.Analyze(text, s.Space.Inside)
	if running.Weigh(s, &a); a.Class != bash.Dangerous {
		return ""
	}
	return a.Reason()
}

// Type types, if who reads it is still as it was judged. Errors are refusals.
func (t Typed) Type(ctx context.Context, env tool.Env, id string, keys []Key) error {
	_, term, err := shell.TerminalOf(ctx, env.Shell, id)
	if err == nil {
		err = term.Type(t.Seen, t.after, keys)
	}
	return Refusal(ctx, env.State, id, err)
}

// follow is what stands on the line when keys were pressed. What is typed secretly is not remembered.
func follow(t terminal.Typing, keys []Key) terminal.Typing {
	if t.Secret {
		t.Line, t.Unsure = "", false
		return t
	}
	for _, k := range keys {
		switch keyName(k) {
		case "":
			followText(&t, k.Text)
		case "enter", "return", "ctrl-m", "ctrl-j":
			followText(&t, "\n")
		case "space":
			followText(&t, " ")
		case "ctrl-c":
			followText(&t, ctrlC)
		case "ctrl-d":
			followText(&t, ctrlD)
		default:
			t.Unsure = true
		}
	}
	return t
}

func keyName(k Key) string { return strings.ToLower(strings.Replace(k.Name, "+", "-", 1)) }

// followText types text. What was finished with Enter is not forgotten while a shell may wait for the rest of it.
func followText(t *terminal.Typing, text string) {
	text = lines(text)
	if text == ctrlD && t.Line == "" && !t.Unsure { // the end of the input, and no key that deletes
		return
	}
	t.Rebound = t.Rebound || t.Shell && strings.Contains(text, "\n") && rebinds().MatchString(t.Line+text)
	if at := strings.LastIndex(text, ctrlC); at >= 0 {
		t.Line, t.Unsure, text = "", false, text[at+1:]
	}
	t.Unsure = t.Unsure || strings.ContainsFunc(text, edits)
	t.Line += text
	at := strings.LastIndexByte(t.Line, '\n')
	if at < 0 || t.Shell && len(t.Line) < maxLine && bash.Unfinished(t.Line[:at+1]) {
		return
	}
	t.Line = t.Line[at+1:]
	t.Unsure = t.Unsure && t.Line != ""
}

const ctrlC, ctrlD = "\x03", "\x04"

// edits says whether a character of a text is a key that may change the line.
func edits(r rune) bool { return r < ' ' && r != '\n' && r != '\x03' }

// rebinds matches a line of a shell that may change what keys do in its terminal.
var rebinds = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\b(?:stty|bind)\b|\bset\s+[-+]o\s+\W?(?:vi|emacs)\b|(?i:inputrc)`)
})

// runsUnknown says whether keys have a shell run a line that it alone knows.
func runsUnknown(t terminal.Typing, keys []Key) bool {
	changed, line := t.Unsure, []byte(t.Line)
	press := func(r rune) bool {
		switch {
		case r == '\x03':
			changed, line = false, line[:0]
			return false
		case r == '\x04' && len(line) == 0 && !changed:
			return false
		case r == '\x18': // it begins keys that repeat what was typed, or start an editor
			return true
		case r == '\n' || r == '\x0f': // Ctrl-O sends a line, and shows another
			if changed || t.Rebound {
				return true
			}
			t.Rebound = rebinds().Match(line)
			changed, line = r != '\n', line[:0]
			return false
		case edits(r):
			changed = true
		}
		line = utf8.AppendRune(line, r)
		return false
	}
	for _, k := range keys {
		text := lines(k.Text)
		switch keyName(k) {
		case "":
		case "enter", "return", "ctrl-m", "ctrl-j":
			text = "\n"
		case "space":
			text = " "
		case "ctrl-c":
			text = ctrlC
		case "ctrl-d":
			text = ctrlD
		case "ctrl-o":
			text = "\x0f"
		case "ctrl-x":
			text = "\x18"
		default:
			changed = true
		}
		if strings.ContainsFunc(text, press) {
			return true
		}
	}
	return false
}

// maxLine is how much of an unfinished command is remembered.
const maxLine = 32 << 10

// followed is all that a shell reads of what was typed before and of what is typed now.
func followed(t terminal.Typing, keys []Key) string {
	text := t.Line
	for _, k := range keys {
		switch keyName(k) {
		case "":
			text += lines(k.Text)
		case "enter", "return", "ctrl-m", "ctrl-j":
			text += "\n"
		case "space":
			text += " "
		}
	}
	return text
}

// lines is a text with the ends of lines that a shell knows.
func lines(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
}

// pressesOther says whether one of the keys may change the line otherwise than by what it prints.
func pressesOther(keys []Key) bool {
	for _, k := range keys {
		if strings.ContainsFunc(lines(k.Text), edits) || follow(terminal.Typing{}, []Key{k}).Unsure {
			return true
		}
	}
	return false
}

// Refusal says why a terminal cannot be used; nil for no error.
func Refusal(ctx context.Context, s *session.State, id string, err error) error {
	switch {
	case errors.Is(err, shell.ErrUnknown):
		return running.JobRefusal(ctx, tool.Env{State: s}, id, err)
	case errors.Is(err, shell.ErrNoScreen):
		return tool.Refuse(tool.NoTerminal, "Job %s has no terminal, so nothing can be typed into it. Start the "+
			"command with run_shell and pty true.", wording.Clip(id, 80))
	case errors.Is(err, terminal.ErrOver):
		return tool.Refuse(tool.JobEnded, "Job %s has ended, so nothing was typed. See its last screen with "+
			"job_output, or start the command again.", wording.Clip(id, 80))
	case errors.Is(err, terminal.ErrTyped):
		return tool.Refuse(tool.Busy, "Nothing was typed into job %s: since this call was judged, something else was "+
			"typed, or another program reads it. See the screen with job_output, then call again.",
			wording.Clip(id, 80))
	case errors.Is(err, terminal.ErrNotRead):
		return tool.Refuse(tool.Busy, "Nothing was typed into job %s: its program does not read what was typed "+
			"before. Stop it with job_stop.", wording.Clip(id, 80))
	}
	return err
}
