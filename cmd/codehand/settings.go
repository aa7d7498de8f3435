package main

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"codehand/server/config"
)

// addSettings makes a flag of every setting. They are left out of each command's help, where forty of them would hide
// the command's own; `codehand help settings` has them.
func addSettings(root *cobra.Command) {
	for _, s := range config.Settings() {
		name := flagName(s)
		root.PersistentFlags().String(name, s.Default, s.Doc)
		if err := root.PersistentFlags().MarkHidden(name); err != nil {
			panic(err) // the flag was made in the line before
		}
	}
}

func flagName(s config.Setting) string { return strings.TrimPrefix(s.Flag, "--") }

// newSettings is the help topic with all settings.
func newSettings() *cobra.Command {
	var b strings.Builder
	b.WriteString(`Every setting has three spellings: a key in a file, an environment variable and a
flag. Flags win over the environment, and the environment over the user's file,
~/.config/codehand/config.toml. The administrator's file,
/etc/codehand/managed.toml, is fixed for all users; its lists of rules and names are
added to theirs. Some platforms have other places for these two files. The project's
file (.codehand/config.toml) can make permissions and limits stricter than all of
them, and choose a few defaults of output; for these, flags and the environment win.

A flag is the key with dashes: log.level is --log-level. A variable is the key in
capitals: CODEHAND_LOG_LEVEL. Write commas between the entries of a list.

`)
	tw := tabwriter.NewWriter(&b, 0, 4, 2, ' ', 0)
	fmt.Fprintln(tw, "KEY\tDEFAULT\tMEANING")
	for _, s := range config.Settings() {
		value := s.Default
		if s.Key == "protocol.versions" {
			value = "all"
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\n", s.Key, value, s.Doc)
	}
	_ = tw.Flush() // into a string
	return &cobra.Command{Use: "settings", Short: "All settings and their defaults",
		Long: strings.TrimSpace(b.String())}
}
