package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"codehand/tools/bash"
)

// maxLine is the longest line that classify reads, in bytes. A longer one is answered as what it is, too long.
const maxLine = 1 << 20

func newClassify(t *terminal) *cobra.Command {
	var roots []string
	var asJSON, explain bool
	cmd := &cobra.Command{
		Use:   "classify [COMMAND]...",
		Short: "Classify shell commands by what they can do, without running them",
		Long: `Classify shell commands by what they can do at most, without running them:
readonly (proved to change nothing and to reach nothing outside the roots),
dangerous, or write (everything else). Each line of output is the class, a tab,
and the reason, which begins with the rule and names the word. A readonly command
has no reason.

Commands are the arguments, or else the lines of standard input. A line that is a
JSON string stands for the text of the string, so a command can have several
lines. Any other line is taken literally, without the CR of a CR LF. Each line of
input gives one line of output; an empty line holds no command and is "write".

With --explain further lines tell of each simple command which row of the table of
programs and which column decided, with the version that was looked at.

With --json each line of output is an object with command, class, reason and
parsed, which is false if the command is "write" because it could not be parsed.

What would become of a command here, with your rules, the sandbox level and the
profile in which it would run, is told by: codehand permissions check run_shell
command='...'

Commands may read absolute paths below a root. Paths are compared as text with the
roots, as given and with links resolved; nothing in a command is looked up on disk.

Exit codes: 0 done, whatever the classes are; 1 input or output failed, 2 usage.`,
		Example: `  codehand classify 'git log --oneline | head' 'sort -o a b'
  jq '.command' calls.jsonl | codehand classify --json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := newClassifier(roots)
			if err != nil {
				return err
			}
			c.explain = explain
			out := bufio.NewWriter(t.out)
			for _, a := range args {
				if err := c.answer(out, commandOf(a), asJSON); err != nil {
					return err
				}
			}
			if len(args) == 0 {
				if isTerminal(t.in) {
					fmt.Fprintln(t.errs, "codehand: reading commands from standard input, one a line; Ctrl-D ends it")
				}
				if err := c.lines(t.input(cmd.Context()), out, asJSON); err != nil {
					return err
				}
			}
			return out.Flush()
		},
	}
	cmd.Flags().StringArrayVar(&roots, "root", nil,
		"`DIR` whose files commands may read by absolute path; repeatable (default: the current directory)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per command")
	cmd.Flags().BoolVar(&explain, "explain", false, "tell which row and column of the table decided about each word")
	cmd.MarkFlagsMutuallyExclusive("json", "explain")
	return cmd
}

// A classifier answers for commands that run in its roots.
type classifier struct {
	roots   []string // absolute and clean, as given and resolved
	explain bool
}

func newClassifier(roots []string) (*classifier, error) {
	if len(roots) == 0 {
		roots = []string{"."}
	}
	c := &classifier{}
	for _, root := range roots {
		given, err := filepath.Abs(root)
		if err != nil {
			return nil, &exitError{code: exitFailed, err: err}
		}
		real, err := filepath.EvalSymlinks(given)
		if err != nil {
			return nil, usage("codehand classify --help", "--root %s: %w", root, err)
		}
		c.roots = append(c.roots, filepath.ToSlash(given), filepath.ToSlash(real))
	}
	return c, nil
}

func (c *classifier) inside(path string) bool {
	for _, root := range c.roots {
		if rest, ok := strings.CutPrefix(path, strings.TrimSuffix(root, "/")); ok && (rest == "" || rest[0] == '/') {
			return true
		}
	}
	return false
}

// lines answers for each line of in. Answers are not held back while the next line is awaited.
func (c *classifier) lines(in io.Reader, out *bufio.Writer, asJSON bool) error {
	r := bufio.NewReaderSize(in, 64<<10)
	for {
		line, err := readLine(r)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil && !errors.Is(err, errLongLine) {
			return &exitError{code: exitFailed, err: fmt.Errorf("read commands: %w", err)}
		}
		if err := c.answer(out, commandOf(line), asJSON); err != nil {
			return err
		}
		if r.Buffered() == 0 {
			if err := out.Flush(); err != nil {
				return err
			}
		}
	}
}

var errLongLine = errors.New("the line is too long")

// readLine returns one line without its end, or io.EOF when nothing is left. Of a line that is longer than maxLine it
// returns the first maxLine bytes and errLongLine; that is too long to be proved, and enough to find harm in.
func readLine(r *bufio.Reader) (string, error) {
	var line []byte
	var long error
	for {
		piece, err := r.ReadSlice('\n')
		if len(line)+len(piece) > maxLine+len("\r\n") {
			piece, long = piece[:max(0, maxLine-len(line))], errLongLine
		}
		line = append(line, piece...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && !errors.Is(err, io.EOF):
			return "", err
		case err != nil && len(line) == 0:
			return "", io.EOF
		}
		text := strings.TrimSuffix(string(line), "\n")
		return strings.TrimSuffix(text, "\r"), long
	}
}

// commandOf returns the command that a line stands for.
func commandOf(line string) string {
	if !strings.HasPrefix(line, `"`) || !utf8.ValidString(line) {
		return line
	}
	var command string
	if json.Unmarshal([]byte(line), &command) != nil {
		return line
	}
	if strings.ContainsRune(command, utf8.RuneError) && !strings.ContainsRune(line, utf8.RuneError) &&
		!strings.Contains(strings.ToLower(line), `\ufffd`) {
		// Half a surrogate pair came out as U+FFFD, an ordinary character. It is none.
		command = strings.ReplaceAll(command, string(utf8.RuneError), "\xed\xa0\x80")
	}
	return command
}

// answer writes one line.
func (c *classifier) answer(out io.Writer, command string, asJSON bool) error {
	a := bash.Analyze(command, c.inside)
	class := a.Class.String()
	if a.Class == bash.Unknown {
		class = bash.Writes.String()
	}
	if !asJSON {
		if _, err := fmt.Fprintf(out, "%s\t%s\n", class, oneLine(a.Why)); err != nil || !c.explain {
			return err
		}
		return c.explained(out, command)
	}
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	return enc.Encode(struct {
		Command string `json:"command"`
		Class   string `json:"class"`
		Reason  string `json:"reason"`
		Parsed  bool   `json:"parsed"`
	}{command, class, oneLine(a.Why), a.Class != bash.Unknown})
}

// explained writes what the table of programs says about each simple command.
func (c *classifier) explained(out io.Writer, command string) error {
	var b strings.Builder
	for _, e := range bash.Explain(command, c.inside) {
		fmt.Fprintf(&b, "  %s\n", oneLine(e.Text))
		switch {
		case e.Row == "":
			b.WriteString("    no row: nobody looked at this program\n")
		default:
			fmt.Fprintf(&b, "    row %s, looked at: %s\n", e.Row, e.Looked)
		}
		for _, w := range e.Words {
			column := w.Column
			if column == "" {
				column = "not in the row"
			}
			if w.Means != "" {
				column += ", " + w.Means
			}
			fmt.Fprintf(&b, "    %s: %s\n", oneLine(w.Text), column)
		}
		if e.Why != "" {
			fmt.Fprintf(&b, "    %s: %s\n", e.Class, oneLine(e.Why))
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// oneLine makes a reason fit for one field of one line, and shows what a terminal would hide or obey.
func oneLine(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\n' || r == '\t':
			b.WriteByte(' ')
		case !unicode.IsPrint(r):
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
