package agent

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"codehand/tools/agent/loop"
	"codehand/tools/results"
	"codehand/tools/sandbox"
)

// DepthVariable says how deep below other agents a process is.
const DepthVariable = "CODEHAND_AGENT_DEPTH"

// A Command is the command line of another agent. It runs with the rights of this server, outside of any sandbox,
// because it brings its own.
type Command struct {
	// Argv is the program and its arguments. {prompt}, {model}, {cwd} and {mcp_config} are replaced within each;
	// without {prompt} the prompt is its input. Resume is likewise for a message to one that has ended; empty: there is
	// no way.
	Argv, Resume []string
	Env          func() []string // its environment, without DepthVariable
	Dir          string          // for its files, absolute
	// Server is the program and arguments of this server for the roots and the mode of a sub-agent, and its
	// environment.
	Server func(p Parent) (argv []string, env map[string]string)
}

// unsafeFlag are arguments with which an agent asks nobody.
var unsafeFlag = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^--?(?:yolo|dangerously-.*|allow-dangerously-.*|` +
		`allow-all(?:-tools|-paths|-urls)?|skip-permissions.*|full-auto|force|trust-all-tools|` +
		`auto-approve|no-confirm|bypass-.*)(?:=.*)?$|` +
		`^--(?:permission-mode|approval-mode|ask-for-approval|sandbox)=` +
		`(?:bypassPermissions|yolo|never|danger-full-access)$`)
})

// unsafeValue are values that mean the same in an argument of their own.
var unsafeValue = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^(?:bypassPermissions|yolo|danger-full-access)$`)
})

// UnsafeFlag returns the first argument with which an agent would ask nobody before it does something; "": there is
// none.
func UnsafeFlag(argv []string) string {
	for i, arg := range argv {
		if i > 0 && (unsafeFlag().MatchString(arg) || unsafeValue().MatchString(arg)) {
			return arg
		}
	}
	return ""
}

// IsModelName says whether text can stand for {model}. The call or a file of the workspace chose it, so it must not be
// read as a flag.
func IsModelName(text string) bool {
	foreign := func(r rune) bool {
		word := r <= unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r))
		return !word && !strings.ContainsRune("-._:/@+", r)
	}
	return text != "" && text[0] != '-' && len(text) <= 200 && !strings.ContainsFunc(text, foreign)
}

const (
	maxProgramOutput = 4 << 20 // bytes that are read of what it printed
	programGrace     = 2 * time.Second
)

// runProgram executes it with the command line of another agent.
func (x *Run) runProgram(ctx context.Context, said func(string)) Outcome {
	x.mu.Lock()
	prompt, argv := cmp.Or(x.prompt, x.order.Prompt), x.runner.Command.Argv
	if x.prompt != "" {
		argv = x.runner.Command.Resume
	}
	x.prompt = ""
	x.mu.Unlock()
	if err := os.MkdirAll(x.runner.Command.Dir, 0o700); err != nil {
		return failed(ctx, err)
	}
	dir, err := os.MkdirTemp(x.runner.Command.Dir, "run-")
	if err != nil {
		return failed(ctx, err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // what stays is removed at the next start of the server
	p := program{run: x, dir: dir}
	defer p.close()
	if err := p.start(ctx, argv, prompt); err != nil {
		return failed(ctx, err)
	}
	said("started " + filepath.Base(argv[0]))
	return p.wait(ctx, x.runner.Limits.Time)
}

// A program is one run of the command line.
type program struct {
	run             *Run
	dir             string
	in, out, errors *os.File
	process         *sandbox.Process
}

func (p *program) close() {
	for _, f := range []*os.File{p.in, p.out, p.errors} {
		if f != nil {
			_ = f.Close() // what it held has been read
		}
	}
}

// start fills in the arguments and starts the program.
func (p *program) start(ctx context.Context, argv []string, prompt string) (err error) {
	o, c := p.run.order, p.run.runner.Command
	prompt = system(p.run.instructions(), o.Type, "") + "\n\nYour task:\n" + prompt
	config := filepath.Join(p.dir, "mcp.json")
	depth := strconv.Itoa(p.run.runner.Options.Depth + o.Parent.Depth + 1)
	if err := p.writeConfig(config, depth); err != nil {
		return err
	}
	fill := strings.NewReplacer("{prompt}", prompt, "{model}", o.Model, "{cwd}", o.Parent.Cwd, "{mcp_config}", config)
	args := make([]string, len(argv))
	for i, arg := range argv {
		args[i] = fill.Replace(arg)
	}
	input := ""
	if !slices.ContainsFunc(argv, func(arg string) bool { return strings.Contains(arg, "{prompt}") }) {
		input = prompt
	}
	for name, f := range map[string]**os.File{"in": &p.in, "out": &p.out, "err": &p.errors} {
		if *f, err = os.OpenFile(filepath.Join(p.dir, name), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
			return err
		}
	}
	if _, err := p.in.WriteAt([]byte(input), 0); err != nil {
		return err
	}
	cwd, err := os.OpenRoot(o.Parent.Cwd)
	if err != nil {
		return err
	}
	defer func() { _ = cwd.Close() }() // only read
	p.process, err = sandbox.Start(ctx, sandbox.Cmd{
		Path: args[0], Args: args[1:], Env: append(c.Env(), DepthVariable+"="+depth), Dir: cwd,
		Stdin: p.in, Stdout: p.out, Stderr: p.errors,
	})
	if err != nil {
		return fmt.Errorf("agent.command: %s cannot be started: %w", argv[0], err)
	}
	return nil
}

// writeConfig writes the file by which the program finds this server.
func (p *program) writeConfig(path, depth string) error {
	argv, env := p.run.runner.Command.Server(p.run.order.Parent)
	if env == nil {
		env = map[string]string{}
	}
	env[DepthVariable] = depth
	type entry struct {
		Command string            `json:"command"`
		Args    []string          `json:"args"`
		Env     map[string]string `json:"env"`
	}
	b, err := json.MarshalIndent(map[string]any{"mcpServers": map[string]entry{"codehand": {argv[0], argv[1:], env}}},
		"", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(b, '\n'), 0o600)
}

// wait waits for the program, and ends it with all that it started.
func (p *program) wait(ctx context.Context, most time.Duration) Outcome {
	late := time.NewTimer(most)
	defer late.Stop()
	out := Outcome{}
	select {
	case <-p.process.Done():
	case <-late.C:
		out.Stopped = loop.NoTime
	case <-ctx.Done():
		out.Stopped = loop.Cancelled
	}
	p.process.End(programGrace)
	text, err := tail(p.out)
	out.Text = text
	if out.Stopped != "" {
		return out
	}
	exit := p.process.Exit()
	switch {
	case err != nil:
		out.Stopped, out.Detail = loop.Failed, "its output cannot be read: "+err.Error()
	case exit.Code != 0:
		said, _ := tail(p.errors)
		lines := strings.Split(strings.TrimSpace(said), "\n")
		out.Stopped = loop.Failed
		out.Detail = fmt.Sprintf("%s ended with exit %d: %s", filepath.Base(p.run.runner.Command.Argv[0]), exit.Code,
			oneLine(results.Masked(lines[len(lines)-1]), 300))
	default:
		out.Stopped = loop.Done
	}
	return out
}

// tail is the end of what a file holds, without secrets of known shapes.
func tail(f *os.File) (string, error) {
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	b, err := io.ReadAll(io.NewSectionReader(f, max(0, info.Size()-maxProgramOutput), maxProgramOutput))
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	return results.Masked(string(bytes.ToValidUTF8(b, []byte("\ufffd")))), nil
}
