package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"codehand/server"
	"codehand/server/config"
)

// A scene is one step of the tour.
type scene struct {
	says string // one line: what the model sees, and why it matters

	you   string                              // what the person does before the call, as a shell would have it
	do    func(file string) (string, error)   // does that, and returns what it prints
	tool  string                              // what the model calls; "": nothing
	input string                              // its arguments, as JSON
	code  string                              // of the refusal that must be the answer; "": it must be none
	left  func(s *server.Server) (why string) // why this machine leaves the scene out; nil or "": it is played
}

// tourFile is the one file that the tour changes, and tourFiles are all it begins with.
const tourFile = "server.conf"

var tourFiles = map[string]string{
	tourFile:    "host = \"localhost\"\nport = 8080\nretries = 3\n",
	"README.md": "The server tries again as often as retries in server.conf says.\n",
}

const tourEdit = `{"file_path":"server.conf","old_string":"retries = 3","new_string":"retries = 5"}`

// tour is what is played.
var tour = []scene{
	{
		says: "Read: the model sees numbered lines. codehand notes it: only a file that was read may be edited.",
		tool: "read_file", input: `{"file_path":"server.conf"}`,
	},
	{
		says: "A stale edit: the file has changed since. Nothing is written, and the model sees what you did.",
		you:  "echo 'timeout = 30' >> server.conf", do: appendTimeout,
		tool: "edit_file", input: tourEdit, code: "FILE_CHANGED",
	},
	{
		says: "The same edit again: the difference counts as read. The answer is short, to save context.",
		tool: "edit_file", input: tourEdit,
	},
	{
		says: "Search: matches come with file and line, so the model need not read whole files.",
		tool: "grep_search", input: `{"pattern":"retries","output_mode":"content"}`,
	},
	{
		says: "A command: all its processes end with it. codehand doctor tells how far it is confined here.",
		tool: "run_shell", input: `{"command":"cat server.conf | sort"}`,
		left: (*server.Server).NoCommands,
	},
	{
		says: "Undo: it takes back what the model changed. Your own line stays.",
		tool: "undo_change", input: `{"file_path":"server.conf"}`,
	},
	{
		says: "This is what you have now. codehand undo and codehand history do the same for you.",
		you:  "cat server.conf", do: contents,
	},
}

func appendTimeout(file string) (string, error) {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return "", err
	}
	_, err = f.WriteString("timeout = 30\n")
	return "", errors.Join(err, f.Close())
}

func contents(file string) (string, error) {
	b, err := os.ReadFile(file)
	return strings.TrimSuffix(string(b), "\n"), err
}

const tourHead = `A tour of two minutes, in a scratch directory that is removed at its end. A line with > is a
model's call, and what the model reads follows it; lines with ! are a refusal. A line with $ is
what you do meanwhile in your own editor or shell.
`

// tourEnd is said once the scratch directory is gone.
const tourEnd = "\n%s; the scratch directory is removed. To connect your client: codehand install\n"

func newTry(t *terminal) *cobra.Command {
	var fast bool
	cmd := &cobra.Command{
		Use:   "try",
		Short: "Play a tour of two minutes in a scratch directory",
		Long: `Play what a model and codehand say to each other: a file read, an edit refused
because the file has changed, the edit repeated, a search, a command, an undo. The
calls are real and go through the same checks as a client's. On a terminal Enter goes
on and Ctrl-C ends the tour.

The files and the state of the tour are in a scratch directory below the temporary
directory. It is removed at the end and at every signal but SIGKILL; your files, your
settings and your history have no part in the tour.

Exit codes: 0 done or ended by a signal, 1 a step failed, 2 usage, 3 configuration,
128+n a second signal n.`,
		Args: wanted(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			p := &player{t: t, colours: colours(t.out), next: func() bool { return true }}
			if !fast && shows(t.out) && isTerminal(t.in) {
				p.next = pause(t.out, bufio.NewReader(t.input(cmd.Context())))
			}
			return p.tour(cmd)
		},
	}
	cmd.Flags().BoolVar(&fast, "fast", false, "do not wait for Enter after each step")
	return cmd
}

// pause makes a function that waits for Enter. It is false if the person ended the input, or a signal came.
func pause(out io.Writer, in *bufio.Reader) func() bool {
	return func() bool {
		fmt.Fprint(out, "\n[Enter goes on, Ctrl-C ends] ")
		_, err := in.ReadString('\n')
		return err == nil
	}
}

// A player plays the tour once.
type player struct {
	t       *terminal
	colours bool
	next    func() bool // waits for the person; false: that was enough
	project string      // directory of the tour's files
	failed  error       // of writing to standard output
}

// tour makes the scratch directory, plays in it, and removes it.
func (p *player) tour(cmd *cobra.Command) error {
	scratch, err := os.MkdirTemp("", "codehand-try-*")
	if err != nil {
		return &exitError{code: exitFailed, err: fmt.Errorf("scratch directory: %w", err),
			hint: "set TMPDIR to a directory in which you can write"}
	}
	p.t.scratch.Store(&scratch) // a second signal does not wait for the end of this function
	how, err := p.perform(cmd, scratch)
	if removing := os.RemoveAll(scratch); removing != nil && err == nil {
		err = &exitError{code: exitFailed, err: fmt.Errorf("the scratch directory is still there: %w", removing),
			hint: "remove " + scratch}
	}
	if err != nil {
		return err
	}
	p.print(fmt.Sprintf(tourEnd, how))
	return p.failed
}

// perform plays in scratch, and says how the tour ended.
func (p *player) perform(cmd *cobra.Command, scratch string) (how string, err error) {
	s, err := p.open(cmd, scratch)
	if err != nil {
		return "", err
	}
	how, err = p.play(cmd.Context(), s)
	if closing := s.Close(); err == nil && closing != nil {
		err = &exitError{code: exitFailed, err: closing}
	}
	return how, err
}

// open lays the files and makes the server. Of the settings only flags and the administrator's file count: what a
// person has configured could change how the tour goes, and its hooks and its audit are not for a game.
func (p *player) open(cmd *cobra.Command, scratch string) (*server.Server, error) {
	p.project = filepath.Join(scratch, "project")
	home := filepath.Join(scratch, "home")
	for _, dir := range []string{p.project, home} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return nil, &exitError{code: exitFailed, err: err}
		}
	}
	for name, text := range tourFiles {
		if err := os.WriteFile(filepath.Join(p.project, name), []byte(text), 0o600); err != nil {
			return nil, &exitError{code: exitFailed, err: err}
		}
	}
	src, _ := config.Process() // its error is about the working directory, which is another one here
	src.Env, src.Home, src.WorkDir = nil, home, p.project
	src.Roots, src.Flags = []string{p.project}, given(cmd)
	cfg, warnings, err := config.Load(src)
	if err != nil {
		return nil, &exitError{code: exitConfig, err: err, hint: "codehand doctor"}
	}
	cfg.StateDir = filepath.Join(scratch, "state")
	return openWith(p.t, cfg, warnings, slog.LevelWarn)
}

// play plays every scene, until the person stops it or the output is closed.
func (p *player) play(ctx context.Context, s *server.Server) (how string, err error) {
	const early = "The tour ended early"
	stopped := func() bool { return ctx.Err() != nil } // by a signal, which is no failure
	p.print(tourHead)
	for i, scene := range tour {
		if !p.next() || stopped() {
			return early, nil
		}
		p.print("\n" + p.in(bold, fmt.Sprintf("%d/%d  %s", i+1, len(tour), scene.says)) + "\n")
		err := p.scene(ctx, s, scene)
		if p.failed != nil {
			return "", p.failed
		}
		if stopped() {
			return early, nil
		}
		if err != nil {
			return "", &exitError{code: exitFailed, err: fmt.Errorf("step %d did not go as it should: %w", i+1, err),
				hint: "codehand doctor"}
		}
	}
	return "That was all", nil
}

// scene plays one.
func (p *player) scene(ctx context.Context, s *server.Server, x scene) error {
	if x.do != nil {
		p.print(p.in(green, "$ "+x.you) + "\n")
		printed, err := x.do(filepath.Join(p.project, tourFile))
		if err != nil {
			return err
		}
		if printed != "" {
			p.print(printed + "\n")
		}
	}
	if x.left != nil {
		if why := x.left(s); why != "" {
			p.print("(left out: " + why + ")\n")
			return nil
		}
	}
	if x.tool == "" {
		return nil
	}
	p.print(p.in(cyan, "> "+x.tool+" "+x.input) + "\n")
	text, refused, err := s.Call(ctx, x.tool, json.RawMessage(x.input))
	if err != nil {
		return err
	}
	p.print(p.answer(text, refused))
	if code, _, _ := strings.Cut(text, ":"); refused != (x.code != "") || refused && code != x.code {
		return fmt.Errorf("%s was not expected to answer that", x.tool)
	}
	return nil
}

// answer is a result as the tour shows it: each line of a refusal begins with a mark, and diffs have colours.
func (p *player) answer(text string, refused bool) string {
	mark := ""
	if refused {
		mark = p.in(red, "!") + " "
	}
	var b strings.Builder
	var diff painter
	for line := range strings.SplitSeq(text, "\n") {
		if p.colours {
			line = diff.line(line)
		}
		b.WriteString(mark + line + "\n")
	}
	return b.String()
}

// in is text in a colour, where there are colours.
func (p *player) in(colour, text string) string {
	if !p.colours {
		return text
	}
	return colour + text + plain
}

// print writes to standard output, unless that has failed before.
func (p *player) print(text string) {
	if p.failed == nil {
		_, p.failed = io.WriteString(p.t.out, text)
	}
}
