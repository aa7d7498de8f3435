package main

import (
	"fmt"
	"strings"

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
	c := &cobra.Command{Use: "settings", Short: "All settings and their defaults"}
	// The text takes a tenth of a start to make, so it is made for those who read it.
	c.SetHelpFunc(func(c *cobra.Command, args []string) {
		c.Long = settingsText()
		c.Parent().HelpFunc()(c, args)
	})
	return c
}

// settingsText tells of all settings.
func settingsText() string {
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
	settings := config.Settings()
	for i, s := range settings {
		switch s.Key { // a long list would leave the meanings no room
		case "protocol.versions":
			settings[i].Default = "all"
		case "web.preapproved":
			settings[i].Default = "documentation"
		}
	}
	writeSettings(&b, settings)
	b.WriteString(`
These are about principals, and only in your own file. The tables named default
are about everybody, those named after a principal (principals.alice,
quota."corp/1") about that one, and a token says more about its own. They have
no variables and no flags.

`)
	writeSettings(&b, config.PersonalSettings())
	b.WriteString(`
What an issuer says of a principal's groups counts, too: [principals.groups."devs"]
and [quota.groups."devs"] stand between the tables of the principal and those of
everybody. These are the keys of an issuer, each in a table [[auth.oidc]] of your
own file.

`)
	writeSettings(&b, config.IssuerSettings())
	b.WriteString(`
Other MCP servers whose tools are offered, too, each in a table
[mcp.servers.NAME] of your own file. A project's file can only set off = true.

`)
	writeSettings(&b, config.MountSettings())
	b.WriteString(`
Servers of languages for the tool lsp and for diagnostics after edits, each in a
table [lsp.NAME] of your own file. `)
	b.WriteString(strings.Join(config.PresetServers(), ", ") + `
are used where they are installed. A project's file can only set off = true.

`)
	writeSettings(&b, config.LanguageServerSettings())
	return strings.TrimSpace(b.String())
}

// settingsWidth is how wide the list of settings is at most.
const settingsWidth = 100

// writeSettings lists settings in three columns.
func writeSettings(b *strings.Builder, settings []config.Setting) {
	key, value := 0, 0
	for _, s := range settings {
		key, value = max(key, len(s.Key)), max(value, len(s.Default))
	}
	row := func(name, standard, doc string) {
		for _, line := range wrapped(doc, settingsWidth-key-value-4) {
			fmt.Fprintf(b, "%-*s  %-*s  %s\n", key, name, value, standard, line)
			name, standard = "", ""
		}
	}
	row("KEY", "DEFAULT", "MEANING")
	for _, s := range settings {
		row(s.Key, s.Default, s.Doc)
	}
}

// wrapped breaks a text into lines of at most width characters, at spaces where there are some.
func wrapped(text string, width int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		switch runes := []rune(word); {
		case line == "":
			line = word
		case len([]rune(line))+1+len(runes) <= width:
			line += " " + word
		default:
			lines, line = append(lines, line), word
		}
		for runes := []rune(line); len(runes) > width; runes = runes[width:] { // one word, such as a path
			lines, line = append(lines, string(runes[:width])), string(runes[width:])
		}
	}
	return append(lines, line)
}
