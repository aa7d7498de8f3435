package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/spf13/cobra"

	"codehand/server"
	"codehand/server/logging"
)

// Exit codes. 128+n is for signal n.
const (
	exitDone   = 0
	exitFailed = 1 // the work failed or was refused
	exitUsage  = 2
	exitConfig = 3
)

// An exitError ends the process with a code. Its text goes to stderr, and its hint below it.
type exitError struct {
	code int
	err  error
	hint string
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

func usage(hint, format string, args ...any) error {
	return &exitError{code: exitUsage, err: fmt.Errorf(format, args...), hint: hint}
}

// wanted makes what is wrong with arguments an error of usage.
func wanted(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			if len(args) > 0 && cmd.HasAvailableSubCommands() {
				return unknownCommand(cmd, args)
			}
			hint := cmd.CommandPath() + " --help"
			if check(cmd, nil) == nil {
				return usage(hint, "unexpected argument %q; usage: %s", args[len(args)-1], cmd.UseLine())
			}
			return usage(hint, "wrong number of arguments; usage: %s", cmd.UseLine())
		}
		return nil
	}
}

// A terminal is what a command talks to. Results go to out and everything for people to errs.
type terminal struct {
	in     io.Reader
	out    io.Writer
	errs   io.Writer
	log    *logging.Writer               // to errs, which a client need not read
	server atomic.Pointer[server.Server] // what a command has opened
	hangup atomic.Pointer[func() bool]   // what SIGHUP does; false: it ends the process, as without one
	echo   io.Writer                     // gets what commands print, as it comes; nil: it is not copied

	scratch atomic.Pointer[string] // directory that must not outlive the command; nil: there is none
}

// last ends the jobs of a command that is not given the time to end by itself, and writes what it logged.
func (t *terminal) last() {
	if s := t.server.Load(); s != nil {
		_ = s.CloseNow() // the process ends anyway
	}
	if dir := t.scratch.Load(); dir != nil {
		_ = os.RemoveAll(*dir) // an error has no reader left
	}
	t.log.Flush()
}

// hungUp is called at SIGHUP. It says whether that was all.
func (t *terminal) hungUp() bool {
	reload := t.hangup.Load()
	return reload != nil && (*reload)()
}

// run is the program: arguments in, exit code out.
func run(args []string, in io.Reader, out, errs io.Writer) int {
	t := &terminal{in: in, out: out, errs: errs, log: logging.NewWriter(errs)}
	root := newRoot(t)
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		completeSettings(root)
	}
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errs)
	ctx, stop := withSignals(context.Background(), t.last, t.hungUp)
	err := root.ExecuteContext(ctx)
	t.log.Flush() // before what is said last, and while SIGPIPE is caught
	if code := stop(); code != 0 {
		return code
	}
	if err == nil {
		return exitDone
	}
	exit, ok := errors.AsType[*exitError](err)
	switch {
	case errors.Is(err, syscall.EPIPE):
		return exitFailed // who reads us has seen enough
	case !ok:
		exit = &exitError{code: exitFailed, err: err}
	}
	if text := exit.Error(); text != "" {
		fmt.Fprintf(errs, "codehand: %s\n", text)
	}
	if exit.hint != "" {
		fmt.Fprintf(errs, "hint: %s\n", exit.hint)
	}
	return exit.code
}

// newRoot lists every command. Bare codehand is the stdio server when a client starts it, and a short guide for a
// person.
func newRoot(t *terminal) *cobra.Command {
	var showVersion bool
	root := &cobra.Command{
		Use:   "codehand",
		Short: "The tools of a coding agent, for any MCP client",
		Long: strings.TrimSpace(`
codehand gives any MCP client the tools of a coding agent: read, write, edit,
search, run. A client starts it and speaks JSON-RPC on its standard input and
output; for people there are the commands below.`),
		Args:          wanted(cobra.NoArgs),
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if showVersion {
				_, err := io.WriteString(t.out, versionLine())
				return err
			}
			if isTerminal(t.in) {
				guide(cmd.Context(), t)
				return nil
			}
			return t.stdio(cmd, nil)
		},
	}
	root.SetFlagErrorFunc(flagError)
	// cobra's own flag has its text from a template, and the package for that makes the program 2.6 MB larger
	root.Flags().BoolVarP(&showVersion, "version", "v", false, "print the version")
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetHelpCommand(newHelp())
	addSettings(root)
	group := func(title string, commands ...*cobra.Command) {
		root.AddGroup(&cobra.Group{ID: title, Title: title + ":"})
		for _, c := range commands {
			c.GroupID = title
		}
		root.AddCommand(commands...)
	}
	group("Connect clients", newInstall(t), newUninstall(t), newDoctor(t), newTry(t), newStdio(t), newConnect(t))
	group("See what agents did, and take it back", newPage(t), newHistory(t), newUndo(t))
	group("Tools and what they may do",
		newTools(t), newCall(t), newMCP(t), newPermissions(t), newClassify(t), newClean(t))
	group("Serve over HTTP", newServe(t), newToken(t), newOwner(t), newInvite(t), newGrants(t), newSessions(t),
		newCluster(t))
	root.AddCommand(newCompletion(t), newVersion(t), newSettings(), newGitHelper(t))
	return root
}

// isTerminal says whether r is a terminal, where a person sits, and not a pipe, where a client does.
func isTerminal(r io.Reader) bool {
	f, ok := r.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && info.Mode()&os.ModeDevice != 0 && !isNull(f)
}

// isNull says whether f is the null device, which is a character device, too.
func isNull(f *os.File) bool {
	null, err := os.Stat(os.DevNull)
	if err != nil {
		return false
	}
	info, err := f.Stat()
	return err == nil && os.SameFile(null, info)
}
