package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"

	"github.com/spf13/cobra"

	"codehand/server"
	"codehand/server/sessions"
	"codehand/tools/sandbox"
)

func newStdio(t *terminal) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "stdio [ROOT...]",
		Short: "Serve one client on standard input and output",
		Long: `Serve one MCP client on standard input and output, in every protocol revision
from 2024-11-05 to 2026-07-28. The tools can use files below the ROOTs; without a
ROOT, files below the current directory. It exits when the input ends.

Exit codes: 0 the input ended or a signal came, 1 reading the input failed,
3 configuration, 128+n a second signal n.`,
		RunE: func(cmd *cobra.Command, roots []string) error { return t.stdio(cmd, roots) },
	}
	localConfig(cmd, "read `FILE` instead of the user's configuration")
	return cmd
}

// stdio serves one client. Nothing else may write to standard output meanwhile.
func (t *terminal) stdio(cmd *cobra.Command, roots []string) error {
	if isTerminal(t.in) {
		fmt.Fprintf(t.errs, "codehand %s: MCP on stdin and stdout, usually started by a client. Ctrl-D ends it.\n",
			buildVersion())
	}
	hide(t.errs)
	s, err := t.open(cmd, roots)
	if err != nil {
		return err
	}
	stdin, restore := claimStdin(t.in) // before standard output is another file
	defer restore()
	out := t.out
	if f, ok := t.out.(*os.File); ok {
		if out, err = claimStdout(f); err != nil {
			return &exitError{code: exitFailed, err: err}
		}
	}
	return t.serve(cmd, s, stdin, out)
}

// hide keeps commands from reading the environment and the memory of this process, which may hold keys. A crash leaves
// no core.
func hide(errs io.Writer) {
	if err := sandbox.Hide(); err != nil { // weaker than it could be, and said
		fmt.Fprintf(errs, "codehand: warning: commands can read the environment of this process: %v\n", err)
	}
}

func (t *terminal) serve(cmd *cobra.Command, s *server.Server, stdin io.Reader, out io.Writer) error {
	in := &meter{r: stdin}
	hidden := s.Reachable(cmd.Context())
	err := s.Stdio(cmd.Context(), in, out)
	hidden()
	if err == nil && in.n.Load() == 0 && cmd.Context().Err() == nil {
		fmt.Fprintln(t.errs, "codehand: stdin is closed; start this from an MCP client")
	}
	if closing := s.Close(); err == nil {
		err = closing
	}
	if _, ok := errors.AsType[*sessions.StateError](err); ok {
		return &exitError{code: exitConfig, err: err, hint: "codehand doctor"}
	}
	if err != nil {
		return &exitError{code: exitFailed, err: err}
	}
	return nil
}

// A meter counts what was read: nothing at all means that no client is there, and a person should be told.
type meter struct {
	r io.Reader
	n atomic.Int64
}

func (m *meter) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	m.n.Add(int64(n))
	return n, err
}
