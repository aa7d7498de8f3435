package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"codehand/server"
	"codehand/server/config"
	"codehand/server/toolset"
	"codehand/tools"
	"codehand/tools/tool"
)

func newCall(t *terminal) *cobra.Command {
	var given string
	cmd := &cobra.Command{
		Use:   "call TOOL [KEY=VALUE | KEY:=JSON]... [TEXT | JSON | -]",
		Short: "Call one tool, as a client would",
		Long: `Call one tool through the same checks as a client's call, and print what the
model would read. A VALUE is text, converted where the tool wants a number or a
boolean; KEY:=JSON gives any JSON value; - reads the whole input as JSON from
standard input. One JSON object is the whole input, and one TEXT without a key is the
parameter of a tool that needs just one. The tool can use files below the current directory. An edit changes
the file as it is now, read or not, unless edit.guard is set to strict.

Exit codes: 0 done, 1 the tool refused or failed, 2 usage, 3 configuration.`,
		Example: `  codehand call grep_search pattern='func main' output_mode=content
  codehand call read_file file_path=go.mod limit=5
  codehand call read_file go.mod
  codehand call multi_edit --json '{"edits":[],"dry_run":true}'`,
		Args:              wanted(cobra.MinimumNArgs(1)),
		ValidArgsFunction: completeTool,
		RunE: func(cmd *cobra.Command, args []string) error {
			if given == "" && cmd.Flags().Changed("json") {
				return usage("codehand call --help", "--json is empty")
			}
			hide(t.errs)
			input, err := t.arguments(cmd, args, given, "json")
			if err != nil {
				return err
			}
			return t.callAsPerson(cmd, args[0], input)
		},
	}
	cmd.Flags().StringVar(&given, "json", "", "the whole input as one JSON object")
	return cmd
}

// arguments makes the input of the tool args[0] from the rest of args, or from given, the value of the flag that takes
// the whole input.
func (t *terminal) arguments(cmd *cobra.Command, args []string, given, flag string) (json.RawMessage, error) {
	hint := cmd.CommandPath() + ` TOOL key=value … or --` + flag + ` '{"key":"value"}'`
	name, args := args[0], args[1:]
	if given != "" {
		if len(args) > 0 {
			return nil, usage(hint, "--%s and %q cannot be combined", flag, args[0])
		}
		return object([]byte(given), hint)
	}
	if len(args) == 1 {
		switch alone := args[0]; {
		case alone == "-":
			b, err := io.ReadAll(t.input(cmd.Context()))
			if err != nil {
				return nil, &exitError{code: exitFailed, err: fmt.Errorf("read the input: %w", err)}
			}
			return object(b, hint)
		case strings.HasPrefix(strings.TrimSpace(alone), "{") && json.Valid([]byte(alone)):
			return object([]byte(alone), hint)
		case !keyed().MatchString(alone):
			if key := onlyText(name); key != "" && key != alone {
				return json.Marshal(map[string]string{key: alone})
			}
		}
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

// keyed fits what is KEY=VALUE or KEY:=JSON, and not a text that has a `=` somewhere.
var keyed = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[\w.-]+:?=`) })

// onlyText is the one parameter that a tool needs, if that is a text; "": it needs several, or none, or there is no
// such tool.
func onlyText(name string) string {
	all := tools.All(tools.Engines{})
	i := slices.IndexFunc(all, func(x tool.Tool) bool { return toolset.GoesBy(x, name) })
	if i < 0 {
		return ""
	}
	var schema struct {
		Required   []string
		Properties map[string]struct{ Type any }
	}
	if err := json.Unmarshal(all[i].Schema, &schema); err != nil || len(schema.Required) != 1 ||
		schema.Properties[schema.Required[0]].Type != "string" {
		return ""
	}
	return schema.Required[0]
}

func object(b []byte, hint string) (json.RawMessage, error) {
	b = bytes.TrimSpace(b)
	if !json.Valid(b) || len(b) == 0 || b[0] != '{' {
		return nil, usage(hint, "the input is not a JSON object")
	}
	return b, nil
}

// call makes one call in process and prints its answer.
func (t *terminal) call(cmd *cobra.Command, name string, input json.RawMessage) error {
	live := watch(t)
	s, err := t.openFor(cmd)
	if err != nil {
		return err
	}
	return t.answer(cmd, s, live, name, input)
}

// callAsPerson is call for what a person types: an edit needs no read before it, and that is said.
func (t *terminal) callAsPerson(cmd *cobra.Command, name string, input json.RawMessage) error {
	blind, live := false, watch(t)
	s, err := t.openFrom(cmd, nil, slog.LevelWarn, func(cfg *config.Config) {
		// A conversation has read files, or can; a person who types one call cannot. A guard that the settings name
		// stays.
		if cfg.Origin("edit.guard") == "default" && cfg.StdioHandle == "" && cfg.StdioProcessID == "" {
			cfg.Edit.Guard, blind = "relaxed", true
		}
	})
	if err != nil {
		return err
	}
	err = t.answer(cmd, s, live, name, input)
	if err == nil && blind && edits(name, input) {
		fmt.Fprintln(t.errs, "codehand: edited without a read before: old_string stood for it (--edit-guard strict "+
			"demands one)")
	}
	return err
}

// answer makes the call, prints of its answer what live has not shown, and closes s.
func (t *terminal) answer(cmd *cobra.Command, s *server.Server, live *live, name string, input json.RawMessage) error {
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

// edits says whether a call is one of those that edit.guard is about.
func edits(name string, input json.RawMessage) bool {
	guarded := func(name string) bool {
		return slices.ContainsFunc(tools.All(tools.Engines{}), func(x tool.Tool) bool {
			return x.Spec.Guarded && toolset.GoesBy(x, name)
		})
	}
	var through struct{ Name string } // of call_tool
	return guarded(name) || json.Unmarshal(input, &through) == nil && guarded(through.Name)
}
