package main

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"codehand/server"
)

// historyPage is how many changes one call of the tool lists at most.
const historyPage = 200

func newHistory(t *terminal) *cobra.Command {
	var limit int
	var change string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "history [PATH]",
		Short: "List the changes that tools made to files",
		Long: `List the changes that the tools of codehand made to files below the current
directory, newest first: all changes, or those of PATH, which may be a directory.
What a shell command changed stands there, too, where the journal has what was
there before.

Each line begins with the id of the change: --change ID shows its diff, and
codehand undo ID takes it back. A line with "kept" is a version that another
program saved while a tool changed the file, or that was found in a temporary
file. --change ID shows it, and codehand undo ID writes it, byte for byte.

With --principal they are the changes in that principal's directories, which the
administrator of codehand serve can see and undo, also while serve runs.

Exit codes: 0 done, 1 refused, 2 usage, 3 configuration.`,
		Example: `  codehand history
  codehand history src/main.go --limit 5
  codehand history --change k3x9q2mh5t7a2b4c
  codehand history --principal alice`,
		Args: wanted(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if limit < 1 {
				return usage("codehand history --help", "--limit must be at least 1")
			}
			input := map[string]any{}
			if len(args) == 1 {
				input["file_path"] = args[0]
			}
			if cmd.Flags().Changed("change") {
				input["change_id"] = change
			}
			if asJSON {
				return t.historyJSON(cmd, input, limit)
			}
			if limit > historyPage {
				return usage("codehand history --json", "--limit must be at most %d without --json", historyPage)
			}
			input["limit"] = limit
			raw, err := json.Marshal(input)
			if err != nil {
				return err
			}
			return t.call(cmd, "file_history", raw)
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 20, "list at most `N` changes")
	cmd.Flags().StringVar(&change, "change", "", "show the diff of the change `ID`")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	forPrincipal(cmd)
	return cmd
}

// historyJSON prints changes as one array: the tool answers in pages.
func (t *terminal) historyJSON(cmd *cobra.Command, input map[string]any, limit int) error {
	s, err := t.openFor(cmd)
	if err != nil {
		return err
	}
	all, err := t.historyPages(cmd, s, input, limit)
	if closing := s.Close(); err == nil && closing != nil {
		err = &exitError{code: exitFailed, err: closing}
	}
	if err != nil {
		return err
	}
	enc := json.NewEncoder(t.out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(all)
}

func (t *terminal) historyPages(cmd *cobra.Command, s *server.Server, input map[string]any,
	limit int) ([]json.RawMessage, error) {
	all, more := []json.RawMessage{}, true
	input["format"] = "json"
	for more && len(all) < limit {
		input["limit"] = min(limit-len(all), historyPage)
		raw, err := json.Marshal(input)
		if err != nil {
			return nil, err
		}
		text, failed, err := s.Call(cmd.Context(), "file_history", raw)
		if err != nil {
			return nil, &exitError{code: exitFailed, err: err}
		}
		if failed {
			fmt.Fprintln(t.errs, text)
			return nil, &exitError{code: exitFailed, err: errors.New("")}
		}
		var page struct {
			Changes []json.RawMessage `json:"changes"`
			More    bool              `json:"more"`
		}
		if err := json.Unmarshal([]byte(text), &page); err != nil {
			return nil, fmt.Errorf("history: %w", err)
		}
		all, more = append(all, page.Changes...), page.More && len(page.Changes) > 0
		var last struct {
			ID string `json:"id"`
		}
		if more {
			if err := json.Unmarshal(page.Changes[len(page.Changes)-1], &last); err != nil {
				return nil, fmt.Errorf("history: %w", err)
			}
			input["before"] = last.ID
		}
	}
	return all, nil
}
