package main

import (
	"encoding/json"
	"os"
	"regexp"

	"github.com/spf13/cobra"
)

func newUndo(t *terminal) *cobra.Command {
	var try bool
	cmd := &cobra.Command{
		Use:   "undo ID|PATH",
		Short: "Take back a change that was made to files",
		Long: `Take back the change ID, or the last change of PATH that is not undone, as
codehand history lists them. A change of several files is taken back as one.
An undo is a change, too: its own id takes it back. What the history calls
"kept" is written to its file, byte for byte, whatever the file holds.

A file that is not what the change left stays as it is: then nothing is
written, and what changed since is shown. PATH is below the current directory;
./NAME is a path, whatever it looks like.

Exit codes: 0 done, 1 refused or failed, 2 usage, 3 configuration.`,
		Example: `  codehand undo src/main.go --dry-run
  codehand undo k3x9q2mh5t7a2b4c`,
		Args: wanted(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			input := map[string]any{"dry_run": try}
			if isChangeID(args[0]) {
				input["change_id"] = args[0]
			} else {
				input["file_path"] = args[0]
			}
			raw, err := json.Marshal(input)
			if err != nil {
				return err
			}
			return t.call(cmd, "undo_change", raw)
		},
	}
	cmd.Flags().BoolVar(&try, "dry-run", false, "say what would be done, and do nothing")
	return cmd
}

// isChangeID says whether arg has the form of an id. A file of that name is meant before a change.
func isChangeID(arg string) bool {
	if !regexp.MustCompile(`^[a-z0-9]{16}$`).MatchString(arg) {
		return false
	}
	_, err := os.Lstat(arg)
	return err != nil
}
