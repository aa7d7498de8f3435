package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"codehand/server"
	"codehand/server/config"
	"codehand/server/explain"
	"codehand/server/listen"
	"codehand/tools/results"
)

func newPermissions(t *terminal) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "permissions",
		Short: "Explain what calls are allowed, and why",
		Args:  wanted(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return usage("codehand permissions --help", "missing subcommand; available: check")
		},
	}
	cmd.AddCommand(newPermissionsCheck(t))
	return cmd
}

func newPermissionsCheck(t *terminal) *cobra.Command {
	var given string
	var asJSON, serve bool
	cmd := &cobra.Command{
		Use:   "check [TOOL [KEY=VALUE | KEY:=JSON]... [TEXT | JSON | -]]",
		Short: "Explain the decision about one call, without running it; or list what the rules cover",
		Long: `Explain what would happen to a call: whether it is allowed, asked about or denied,
and by which rule (with file and line) or for which other reason; what a person
would be asked, and which rule would allow the call. A command is shown with its
class, its parts as rules see them, and the sandbox level and profile in which it
would run. Nothing runs: no tool, no question, no hook.
Write the input as for codehand call; --input takes it as one JSON object. What serve
decides, with its own mode and defaults, --serve explains.

Without TOOL list every rule: what it covers here, where it stands, how many files it
matches now, and a warning where it can match nothing. In a rule, /x starts at each
root (in a project's file: at the project), //x at the top of the file system, ~/x at
the home directory, and x at the current directory.

Exit codes: 0 allowed or asked about (the first line says which), 1 denied
or a failure, 2 usage, 3 configuration.`,
		Example: `  codehand permissions check
  codehand permissions check run_shell 'git push --force'
  codehand permissions check run_shell 'rm -r build' --serve
  codehand permissions check edit_file file_path=.env old_string=a new_string=b
  codehand permissions check Bash command='npm test && rm -r dist' --json`,
		ValidArgsFunction: completeTool,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && cmd.Flags().Changed("input") {
				return usage("codehand permissions check --help", "--input is the input of a TOOL: name it")
			}
			if len(args) == 0 {
				return listRules(t, cmd, asJSON)
			}
			input, err := t.arguments(cmd, args, given, "input")
			if err != nil {
				return err
			}
			s, err := openToExplain(t, cmd, serve)
			if err != nil {
				return err
			}
			e, err := s.Explain(cmd.Context(), args[0], input)
			if closing := s.Close(); err == nil {
				err = closing
			}
			if err != nil {
				failed := &exitError{code: exitFailed, err: err}
				if _, unknown := errors.AsType[*explain.UnknownToolError](err); unknown {
					failed.hint = "codehand tools"
				}
				return failed
			}
			return t.explain(e, asJSON, serve)
		},
	}
	cmd.Flags().StringVar(&given, "input", "", "the whole input as one JSON object")
	cmd.Flags().BoolVar(&serve, asServe, false, "explain what codehand serve decides, not stdio")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// openToExplain is openQuiet; serve: with the settings as serve has them.
func openToExplain(t *terminal, cmd *cobra.Command, serve bool) (*server.Server, error) {
	if !serve {
		return t.openQuiet(cmd)
	}
	return t.openFrom(cmd, nil, slog.LevelWarn, func(cfg *config.Config) {
		if settled, err := listen.Settle(*cfg); err == nil { // else serve says what is wrong
			*cfg = settled
		}
	})
}

// listRules prints what each rule covers.
func listRules(t *terminal, cmd *cobra.Command, asJSON bool) error {
	s, err := t.openFrom(cmd, nil, slog.LevelError, nil) // what a start warns of stands in the list
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), rulesLimit)
	defer cancel()
	rules := s.Rules(ctx)
	if err := s.Close(); err != nil {
		return &exitError{code: exitFailed, err: err}
	}
	if asJSON {
		enc := json.NewEncoder(t.out)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		return enc.Encode(append([]server.RuleReport{}, rules...))
	}
	rules, hosts := apart(rules)
	if len(hosts) > 0 {
		fmt.Fprintf(t.out, "allow  %s\n%5s  covers   these hosts of web_fetch\n%5s  from     default\n",
			strings.Join(wrapped("WebFetch of "+strings.Join(hosts, ", "), guideWidth), "\n       "), "", "")
	}
	for _, r := range rules {
		fmt.Fprintf(t.out, "%-5s  %s\n", r.List, shown(r.Rule))
		fmt.Fprintf(t.out, "%5s  covers   %s\n", "", covered(r))
		if r.Note != "" {
			fmt.Fprintf(t.out, "%5s  note     %s\n", "", shown(r.Note))
		}
		if r.Warning != "" {
			fmt.Fprintf(t.out, "%5s  warning  %s\n", "", shown(r.Warning))
		}
		fmt.Fprintf(t.out, "%5s  from     %s\n", "", shown(r.Origin))
	}
	if len(rules)+len(hosts) == 0 {
		fmt.Fprintln(t.out, "there are no rules; the mode decides (permissions.mode)")
	}
	return nil
}

// apart takes the hosts that web_fetch may read by default from the rules: a person wrote none of them, and each on a
// line of its own would hide those that one did.
func apart(all []server.RuleReport) (rules []server.RuleReport, hosts []string) {
	for _, r := range all {
		host, ok := strings.CutPrefix(r.Rule, "WebFetch(domain:")
		if ok && r.List == "allow" && r.Origin == "default" && r.Note+r.Warning == "" {
			hosts = append(hosts, strings.TrimSuffix(host, ")"))
		} else {
			rules = append(rules, r)
		}
	}
	return rules, hosts
}

// covered says in a few words what a rule covers here.
func covered(r server.RuleReport) string {
	if r.About != "files" {
		const most = 6
		of := strings.Join(r.Tools[:min(len(r.Tools), most)], ", ")
		switch more := len(r.Tools) - most; {
		case of == "":
			return r.About
		case more > 0:
			of += fmt.Sprintf(" and %d other tools", more)
		}
		return r.About + " of " + of
	}
	if len(r.Covers) == 0 {
		return "no file: there is no root"
	}
	files := fmt.Sprintf("%d files now", r.Files)
	switch {
	case r.AtLeast:
		files = "at least " + files
	case r.Files == 1:
		files = "1 file now"
	case r.Files == 0:
		files = "no file now"
	}
	if r.Files == 0 && r.Note+r.Warning != "" {
		files = "no file in the roots"
	}
	return shown(strings.Join(r.Covers, ", ")) + " (" + files + ")"
}

// shown is a text as it can stand on one line of a terminal.
func shown(text string) string {
	line, _ := results.Show(strings.ReplaceAll(strings.TrimSpace(text), "\n", `\n`))
	return line
}

// explain prints an explanation. A call that would be denied ends the process with exit code 1.
func (t *terminal) explain(e explain.Explanation, asJSON, serve bool) error {
	var err error
	if asJSON {
		enc := json.NewEncoder(t.out)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		err = enc.Encode(e)
	} else {
		err = writeExplanation(t.out, e, serve)
	}
	if err == nil && e.Verdict == "deny" {
		err = &exitError{code: exitFailed, err: errors.New("")}
	}
	return err
}

func writeExplanation(out io.Writer, e explain.Explanation, serve bool) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	line := func(name, text string) {
		if text != "" {
			fmt.Fprintf(w, "%s\t%s\n", name, shown(text))
		}
	}
	line("verdict", verdictText(e))
	line("because", e.Reason)
	line("rule", e.Source())
	line("covers", strings.Join(e.Covers, ", "))
	line("about", e.About)
	line("code", e.Code)
	line("mode", e.Mode)
	if !serve && e.Verdict == "ask" && e.Rule == "" {
		line("serve", "starts in a mode of its own, and may decide otherwise: --serve explains that")
	}
	line("would allow", e.Suggests)
	if e.Hooks {
		line("hooks", "not run; they may decide otherwise")
	}
	if e.Command != nil {
		line("class", strings.TrimSuffix(e.Command.Class+": "+e.Command.Why, ": "))
		line("runs", e.Command.Runs)
		for _, p := range e.Command.Parts {
			line("part", strings.TrimSuffix(p.Class+": "+p.Text, ": ")+partNote(p))
		}
	}
	for _, p := range e.Paths {
		line("path", p.Use+": "+p.Path+pathNote(p))
	}
	return w.Flush()
}

func verdictText(e explain.Explanation) string {
	switch {
	case e.Off:
		return "deny: the tool is switched off"
	case e.AskedBy == "client":
		return "ask: the client's own dialog decides, the server runs the call (permissions.ask_fallback)"
	case e.Hard:
		return "ask: a person must decide; refused if the client cannot ask one"
	case e.AskedBy != "":
		return "ask: a person is asked; refused if the client cannot ask one"
	}
	return e.Verdict
}

func partNote(p explain.SubCommand) string {
	var notes []string
	if p.Why != "" {
		notes = append(notes, p.Why)
	}
	if p.Exact {
		notes = append(notes, "no rule with a * allows it")
	}
	if p.Inner {
		notes = append(notes, "inside another command")
	}
	if len(notes) == 0 {
		return ""
	}
	return " (" + strings.Join(notes, "; ") + ")"
}

func pathNote(p explain.Path) string {
	note := ""
	if p.Real != "" {
		note = " -> " + p.Real
	}
	if !p.Inside {
		note += " (outside the roots)"
	}
	return note
}
