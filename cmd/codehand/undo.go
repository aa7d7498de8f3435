package main

import (
	"encoding/json"
	"os"
	"regexp"

	"github.com/spf13/cobra"
)

func newUndo(t *terminal) *cobra.Command {
	var try, skip bool
	var only string
	cmd := &cobra.Command{
		Use:   "undo ID|PATH",
		Short: "Undo a change that a tool made to files",
		Long: `Undo the change ID in all its files, or the last change of PATH that is not undone
yet in that file alone; codehand history lists both. What the change did to other
files stays, and codehand undo ID takes it back later. A file that the change moved
goes back under both its names. An undo is a change with an id of its own, which
undoes the undo. What the history calls "kept" is written to its file, byte for byte,
whatever the file holds.

If a file changed since, nothing is written, and the difference is shown;
--skip-changed leaves such files as they are and takes back the others. PATH is
below the current directory; write ./NAME for a file whose name looks like an ID.
With --principal it is below the first directory of that principal of codehand
serve, and the changes are its own.

Exit codes: 0 done, 1 refused or failed, 2 usage, 3 configuration.`,
		Example: `  codehand undo src/main.go --dry-run
  codehand undo k3x9q2mh5t7a2b4c
  codehand undo k3x9q2mh5t7a2b4c --file src/main.go
  codehand undo --principal alice src/main.go`,
		Args: wanted(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			input := map[string]any{"dry_run": try, "skip_changed": skip, "terminal": true}
			switch {
			case isChangeID(args[0]):
				input["change_id"] = args[0]
				if only != "" {
					input["file_path"] = only
				}
			case only != "":
				return usage("codehand undo --help", "--file needs the ID of a change, and %q is none", args[0])
			default:
				input["file_path"] = args[0]
			}
			raw, err := json.Marshal(input)
			if err != nil {
				return err
			}
			return t.call(cmd, "undo_change", raw)
		},
	}
	cmd.Flags().BoolVar(&try, "dry-run", false, "show what would be undone, and write nothing")
	cmd.Flags().BoolVar(&skip, "skip-changed", false, "undo only the files that can go back")
	cmd.Flags().StringVar(&only, "file", "", "of the change ID undo only `PATH`")
	forPrincipal(cmd)
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
