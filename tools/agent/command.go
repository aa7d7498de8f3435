package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"codehand/filestate/owner"
	"codehand/tools/agent/loop"
	"codehand/tools/results"
	"codehand/tools/sandbox"
)

// DepthVariable says how deep below other agents a process is.
const DepthVariable = "CODEHAND_AGENT_DEPTH"

// A Command is the command line of another agent. It runs with the rights of this server, outside of any sandbox,
// because it brings its own.
type Command struct {
	// Argv is the program, absolute or a name for PATH, and its arguments. {prompt}, {model}, {cwd}, {empty},
	// {mcp_config} and {mcp_toml} are replaced within each; without {prompt} the prompt is its input. Resume is
	// likewise for a message to one that has ended; empty: there is no way.
	Argv, Resume []string
	Env          func() []string // its environment, without DepthVariable
	// Hide takes the keys in its environment out of what it printed; nil: there are none.
	Hide func(text string) string
	Dir  string // for its files, absolute
	// Server is the program and arguments of this server for a sub-agent with the directories and the mode of p, and
	// without these tools.
	Server func(p Parent, without []string) (argv []string)
}

// unsafeFlag matches arguments that switch an agent's questions off.
var unsafeFlag = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^-y$|^--?(?:yolo|dangerously-.*|allow-dangerously-.*|` +
		`allow-all(?:-tools|-paths|-urls)?|skip-permissions.*|full-auto|force|trust-all-tools|` +
		`auto-approve|no-confirm|bypass-.*)(?:=.*)?$|` +
		`^--(?:permission-mode|approval-mode|ask-for-approval|sandbox)=` +
		`(?:bypassPermissions|yolo|never|danger-full-access)$`)
})

// unsafeValue are values that mean the same in an argument of their own, or as a setting (`-c sandbox_mode=…`).
var unsafeValue = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^(?:bypassPermissions|yolo|danger-full-access)$|` +
		`^[a-z_.]+\s*=\s*['"]?(?:bypassPermissions|yolo|danger-full-access)['"]?$`)
})

// UnsafeFlag returns the first argument that makes an agent act without asking; "": there is none.
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
	keptOutput   = 1 << 20  // bytes that are kept of the end of what it printed, which is far more than a report has
	keptErrors   = 64 << 10 // likewise of its standard error
	maxArgument  = 128<<10 - 1
	programGrace = 500 * time.Millisecond // a cancelled call is gone within a second
	// lateOutput is how long output is waited for after the end of the program and of all that it started. What the
	// pipe holds then is read in any case.
	lateOutput = 100 * time.Millisecond
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
	dir := filepath.Join(x.runner.Command.Dir, x.runner.self.TempName())
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return failed(ctx, err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // what stays is swept when a server starts
	p := program{run: x, dir: dir, name: filepath.Base(argv[0])}
	defer p.close()
	if err := p.start(ctx, argv, prompt); err != nil {
		return failed(ctx, err)
	}
	said("started " + p.name)
	return p.wait(ctx, x.runner.Limits.Time)
}

// sweepPrograms removes what processes that were killed left of their programs: the tasks, and how to find a server.
func (r *Runner) sweepPrograms() {
	entries, _ := os.ReadDir(r.Command.Dir) // it may not be there yet
	for _, e := range entries {
		maker, mark, ok := owner.Of(e.Name())
		if !ok || !e.IsDir() || maker == r.self.Process || !maker.Dead() {
			continue
		}
		info, err := e.Info()
		if err == nil && (mark == r.self.Mark() || time.Since(info.ModTime()) > owner.LeftAfter) {
			_ = os.RemoveAll(filepath.Join(r.Command.Dir, e.Name())) // or the next time
		}
	}
}

// A program is one run of the command line.
type program struct {
	run     *Run
	name    string // as its messages name it
	dir     string
	in      *os.File
	out     *printed
	errors  *printed
	process *sandbox.Process
}

func (p *program) close() {
	if p.in != nil {
		_ = p.in.Close() // only read
	}
	for _, printed := range []*printed{p.out, p.errors} {
		if printed != nil {
			printed.close()
		}
	}
}

// start fills in the arguments and starts the program.
func (p *program) start(ctx context.Context, argv []string, prompt string) (err error) {
	o, c := p.run.order, p.run.runner.Command
	prompt = system(p.run.hooks.instructions(o.System), o.Type, "") + "\n\nYour task:\n" + prompt
	depth := strconv.Itoa(p.run.runner.Options.Depth + o.Parent.Depth + 1)
	env := append(c.Env(), DepthVariable+"="+depth)
	path, err := findProgram(argv[0], env)
	if err != nil {
		return fmt.Errorf("agent.command: %w", err)
	}
	server := p.server(depth)
	config := filepath.Join(p.dir, "mcp.json")
	if err := server.write(config); err != nil {
		return err
	}
	empty := filepath.Join(p.dir, "empty")
	if err := os.Mkdir(empty, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	fill := strings.NewReplacer("{prompt}", prompt, "{model}", o.Model, "{cwd}", o.Parent.Cwd, "{mcp_config}", config,
		"{mcp_toml}", server.toml(), "{empty}", empty)
	args := make([]string, len(argv))
	for i, arg := range argv {
		if args[i] = fill.Replace(arg); len(args[i]) > maxArgument {
			return fmt.Errorf("agent.command: the task has %s bytes, more than an argument of a program may have. "+
				"Without {prompt} the task is its input", results.Count(len(prompt)))
		}
	}
	input := ""
	if !slices.ContainsFunc(argv, func(arg string) bool { return strings.Contains(arg, "{prompt}") }) {
		input = prompt
	}
	if err := p.open(input); err != nil {
		return err
	}
	cwd, err := os.OpenRoot(o.Parent.Cwd)
	if err != nil {
		return err
	}
	defer func() { _ = cwd.Close() }() // only read
	p.process, err = sandbox.Start(ctx, sandbox.Cmd{
		Path: path, Args: args[1:], Env: env, Dir: cwd, Stdin: p.in, Stdout: p.out.w, Stderr: p.errors.w,
	})
	p.out.follow()
	p.errors.follow()
	if err != nil {
		return fmt.Errorf("agent.command: %s cannot be started: %w", argv[0], err)
	}
	return nil
}

// open makes its streams. The input is a file, since a program may read it late or never; the output are pipes, so that
// no program fills a disk.
func (p *program) open(input string) (err error) {
	if p.in, err = os.OpenFile(filepath.Join(p.dir, "in"), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
		return err
	}
	if _, err = p.in.WriteAt([]byte(input), 0); err != nil {
		return err
	}
	if p.out, err = newPrinted(keptOutput); err != nil {
		return err
	}
	p.errors, err = newPrinted(keptErrors)
	return err
}

// findProgram finds a program by its path, or by its name in the PATH of env.
func findProgram(name string, env []string) (string, error) {
	if filepath.IsAbs(name) {
		return name, nil
	}
	for _, v := range env {
		list, ok := strings.CutPrefix(v, "PATH=")
		if !ok {
			continue
		}
		for _, dir := range filepath.SplitList(list) {
			path := filepath.Join(dir, name)
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0 {
				return path, nil
			}
		}
	}
	return "", fmt.Errorf("there is no program %s in PATH. Give its absolute path", name)
}

// An injected is how the program starts this server.
type injected struct {
	Command string            `json:"command"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env"`
}

// server is how the program starts this server: with the directories of the parent, its mode as the type narrows it,
// and without the tools that the type does not give.
func (p *program) server(depth string) injected {
	o := p.run.order
	if mode, narrows := o.Type.limit(); narrows {
		o.Parent.Mode = o.Parent.Mode.AtMost(mode)
	}
	argv := p.run.runner.Command.Server(o.Parent, p.run.runner.withheld(o.Tools))
	return injected{argv[0], argv[1:], map[string]string{DepthVariable: depth}}
}

// withheld are the tools of this server that a program does not get.
func (r *Runner) withheld(given []loop.Tool) []string {
	var names []string
	for _, x := range r.tools() {
		has := slices.ContainsFunc(given, func(t loop.Tool) bool { return t.Name == x.Name })
		if !has && x.For != ProgramAgents && x.For != StartingAgents {
			names = append(names, x.Name)
		}
	}
	return names
}

// write writes the file by which Claude Code, Gemini CLI, Copilot CLI and others find a server.
func (s injected) write(path string) error {
	b, err := json.MarshalIndent(map[string]any{"mcpServers": map[string]injected{"codehand": s}}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(b, '\n'), 0o600)
}

// toml is the server as a table in one line, as Codex takes it. A string of JSON is one of TOML, too.
func (s injected) toml() string {
	text := func(v any) string {
		b, _ := json.Marshal(v) // strings always have a form
		return string(b)
	}
	var env []string
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		env = append(env, name+"="+text(s.Env[name]))
	}
	return "{command=" + text(s.Command) + ",args=" + text(s.Args) + ",env={" + strings.Join(env, ",") + "}}"
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
	text, unkept, err := p.out.end()
	said, _, _ := p.errors.end()
	if hide := p.run.runner.Command.Hide; hide != nil {
		text, said = hide(text), hide(said)
	}
	out.Text, out.Unkept = text, unkept
	if out.Stopped != "" {
		return out
	}
	exit := p.process.Exit()
	switch {
	case err != nil:
		out.Stopped, out.Detail = loop.Failed, "its output cannot be read: "+err.Error()
	case exit.Code != 0:
		out.Stopped = loop.Failed
		out.Detail = fmt.Sprintf("%s ended with exit %d", p.name, exit.Code)
		if exit.Signal != "" {
			out.Detail += " (" + exit.Signal + ")"
		}
		lines := strings.Split(strings.TrimSpace(said), "\n")
		if last := oneLine(lines[len(lines)-1], 300); last != "" {
			out.Detail += ": " + last
		}
	default:
		out.Stopped = loop.Done
	}
	return out
}
