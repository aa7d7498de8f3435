package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

func newCall(t *terminal) *cobra.Command {
	var given string
	cmd := &cobra.Command{
		Use:   "call TOOL [KEY=VALUE | KEY:=JSON]... [-]",
		Short: "Call one tool, as a client would",
		Long: `Call one tool through the same checks as a client's call, and print what the
model would read. A VALUE is text, converted where the tool wants a number or a
boolean; KEY:=JSON gives any JSON value; - reads the whole input as JSON from
standard input. The tool can use files below the current directory.

Exit codes: 0 done, 1 the tool refused or failed, 2 usage, 3 configuration.`,
		Example: `  codehand call grep_search pattern='func main' output_mode=content
  codehand call read_file file_path=go.mod limit=5
  codehand call multi_edit --json '{"edits":[],"dry_run":true}'`,
		Args:              wanted(cobra.MinimumNArgs(1)),
		ValidArgsFunction: completeTool,
		RunE: func(cmd *cobra.Command, args []string) error {
			if given == "" && cmd.Flags().Changed("json") {
				return usage("codehand call --help", "--json is empty")
			}
			input, err := t.arguments(cmd.Context(), args[1:], given)
			if err != nil {
				return err
			}
			return t.call(cmd, args[0], input)
		},
	}
	cmd.Flags().StringVar(&given, "json", "", "the whole input as one JSON object")
	return cmd
}

// arguments makes the tool's input from the command line.
func (t *terminal) arguments(ctx context.Context, args []string, given string) (json.RawMessage, error) {
	const hint = `codehand call TOOL key=value … or --json '{"key":"value"}'`
	if given != "" {
		if len(args) > 0 {
			return nil, usage(hint, "--json and %q cannot be combined", args[0])
		}
		return object([]byte(given), hint)
	}
	if len(args) == 1 && args[0] == "-" {
		b, err := io.ReadAll(t.input(ctx))
		if err != nil {
			return nil, &exitError{code: exitFailed, err: fmt.Errorf("read the input: %w", err)}
		}
		return object(b, hint)
	}
	m := map[string]json.RawMessage{}
	for _, a := range args {
		key, value, ok := strings.Cut(a, "=")
		raw := strings.HasSuffix(key, ":")
		key = strings.TrimSuffix(key, ":")
		if !ok || key == "" {
			return nil, usage(hint, "%q is not KEY=VALUE", a)
		}
		if _, twice := m[key]; twice {
			return nil, usage(hint, "%s is given twice", key)
		}
		if raw {
			if !json.Valid([]byte(value)) {
				return nil, usage(hint, "%s: not JSON: %s", key, value)
			}
			m[key] = json.RawMessage(value)
			continue
		}
		b, err := json.Marshal(value)
		if err != nil {
			return nil, &exitError{code: exitUsage, err: err}
		}
		m[key] = b
	}
	return json.Marshal(m)
}

func object(b []byte, hint string) (json.RawMessage, error) {
	b = bytes.TrimSpace(b)
	if !json.Valid(b) || len(b) == 0 || b[0] != '{' {
		return nil, usage(hint, "the input is not a JSON object")
	}
	return b, nil
}

func (t *terminal) call(cmd *cobra.Command, name string, input json.RawMessage) error {
	live := t.watch()
	s, err := t.openQuiet(cmd)
	if err != nil {
		return err
	}
	text, failed, err := s.Call(cmd.Context(), name, input)
	if closing := s.Close(); err == nil {
		err = closing
	}
	switch {
	case err != nil:
		return &exitError{code: exitFailed, err: err, hint: "codehand tools"}
	case failed:
		t.log.Flush() // what led to it stands above it
		fmt.Fprintln(t.errs, live.rest(text))
		return &exitError{code: exitFailed, err: errors.New("")}
	}
	if text = live.rest(text); text == "" {
		return nil // it was shown as it came
	}
	_, err = fmt.Fprintln(t.out, t.paint(text))
	return err
}
