package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"codehand/server/toolset"
)

func newTools(t *terminal) *cobra.Command {
	var asJSON, asMarkdown bool
	cmd := &cobra.Command{
		Use:   "tools [NAME]",
		Short: "List the tools, or show one",
		Long: `List the tools with their traits and what each costs in a model's context
(bytes of its entry in tools/list, divided by 4), or show the description and
input schema of one tool.

Exit codes: 0 done, 1 there is no such tool, 2 usage, 3 configuration.`,
		Args:              wanted(cobra.MaximumNArgs(1)),
		ValidArgsFunction: completeTool,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := t.openQuiet(cmd)
			if err != nil {
				return err
			}
			entries := s.List()
			if err := s.Close(); err != nil {
				return &exitError{code: exitFailed, err: err}
			}
			if len(args) == 1 {
				return t.showTool(entries, args[0], asJSON)
			}
			switch {
			case asJSON:
				return writeJSON(t.out, entries)
			case asMarkdown:
				_, err = io.WriteString(t.out, markdown(entries))
			default:
				err = table(t.out, entries)
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the entries of tools/list")
	cmd.Flags().BoolVar(&asMarkdown, "markdown", false, "print the table of docs/tools.md")
	return cmd
}

func (t *terminal) showTool(entries []toolset.Entry, name string, asJSON bool) error {
	i := slices.IndexFunc(entries, func(e toolset.Entry) bool {
		return toolset.GoesBy(e.Tool, name)
	})
	if i < 0 {
		var names []string
		for _, e := range entries {
			names = append(names, e.Tool.Spec.Name)
		}
		err := fmt.Errorf("there is no tool %s%s", name, didYouMean(name, names))
		return &exitError{code: exitFailed, err: err, hint: "codehand tools"}
	}
	e := entries[i]
	if asJSON {
		return writeJSON(t.out, entries[i:i+1])
	}
	var schema bytes.Buffer
	if err := json.Indent(&schema, e.Tool.Schema, "", "  "); err != nil {
		return &exitError{code: exitFailed, err: err}
	}
	_, err := fmt.Fprintf(t.out, "%s (%s), %d tokens\n%s\n\n%s\n\n%s\n", e.Tool.Spec.Name,
		strings.Join(append([]string{e.Tool.Spec.Title}, e.Tool.Spec.Aliases...), ", "), e.Tokens(), traits(e),
		strings.TrimSpace(e.Tool.Spec.Description), &schema)
	return err
}

func writeJSON(w io.Writer, entries []toolset.Entry) error {
	list := make([]json.RawMessage, len(entries))
	for i, e := range entries {
		list[i] = e.JSON
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(list)
}

// traits are a tool's promises for any input, as words.
func traits(e toolset.Entry) string {
	t := e.Tool.Spec.Traits
	words := []string{"writes"}
	if t.ReadOnly {
		words[0] = "reads"
	}
	for _, w := range []struct {
		on   bool
		name string
	}{{!t.ReadOnly && !t.Additive, "destructive"}, {t.Idempotent, "idempotent"}, {!t.Local, "open world"},
		{t.Parallel, "parallel"}, {t.Private, "session only"}} {
		if w.on {
			words = append(words, w.name)
		}
	}
	return strings.Join(words, ", ")
}

func table(w io.Writer, entries []toolset.Entry) error {
	tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(tw, "TOOL\tLISTED\tTRAITS\tTOKENS")
	for _, e := range entries {
		fmt.Fprintf(tw, "%s\t%s\t%s\t%d\n", e.Tool.Spec.Name, listed(e), traits(e), e.Tokens())
	}
	core, all := sums(entries)
	fmt.Fprintf(tw, "core\t\t\t%d\nall\t\t\t%d\n", core, all)
	return tw.Flush()
}

func listed(e toolset.Entry) string {
	if e.Deferred {
		return "when found"
	}
	return "always"
}

// sums returns the tokens of the core and of everything.
func sums(entries []toolset.Entry) (core, all int) {
	for _, e := range entries {
		all += e.Tokens()
		if !e.Deferred {
			core += e.Tokens()
		}
	}
	return core, all
}

// markdown is the generated part of docs/tools.md.
func markdown(entries []toolset.Entry) string {
	var b strings.Builder
	b.WriteString("| tool | what it does | listed | effect | tokens |\n|---|---|---|---|---|\n")
	for _, e := range entries {
		rw := "writes"
		if e.Tool.Spec.Traits.ReadOnly {
			rw = "reads"
		}
		first, _, _ := strings.Cut(strings.Join(strings.Fields(e.Tool.Spec.Description), " "), ". ")
		fmt.Fprintf(&b, "| `%s` | %s. | %s | %s | %d |\n", e.Tool.Spec.Name, strings.TrimSuffix(first, "."), listed(e),
			rw, e.Tokens())
	}
	core, all := sums(entries)
	fmt.Fprintf(&b, "\nTokens (bytes / 4) of the tools that are always listed: %d; of all tools: %d.\n", core, all)
	return b.String()
}
