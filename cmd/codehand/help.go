package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"codehand/server/config"
)

// newHelp is `help`, which fails for what there is not: a script that asks must not take a general text for an answer.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Help about any command",
		Long: `Print the help of a command, or of the topic settings.

Exit codes: 0 done, 2 there is no such command.`,
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			about, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return commandNames(about), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := cmd.Root().Find(args)
			if about == nil || err != nil || len(rest) > 0 {
				return unknownCommand(about, rest)
			}
			about.InitDefaultHelpFlag() // else it is missing in the text
			return about.Help()
		},
	}
}

// commandNames are those below a command that a person may give, with their short texts as shells show them.
func commandNames(of *cobra.Command) []string {
	var names []string
	for _, c := range of.Commands() {
		if c.IsAvailableCommand() || c.IsAdditionalHelpTopicCommand() {
			names = append(names, c.Name()+"\t"+c.Short)
		}
	}
	return names
}

// unknownCommand says that a command has none of that name below it, and which one was probably meant.
func unknownCommand(of *cobra.Command, args []string) error {
	var names []string
	for _, c := range of.Commands() {
		if !c.Hidden {
			names = append(names, c.Name())
		}
	}
	return usage(of.CommandPath()+" --help", "unknown command %q for %q%s", args[0], of.CommandPath(),
		didYouMean(args[0], names))
}

// didYouMean is the end of a sentence about a word that is not known; "": nothing known comes near.
func didYouMean(word string, known []string) string {
	if near := config.Nearest(word, known); near != "" {
		return fmt.Sprintf(" (did you mean %s?)", near)
	}
	return ""
}

// othersFlags are flags that other servers have, each with what does it here.
var othersFlags = map[string]string{
	"serve --port":    "codehand serve --listen 127.0.0.1:8080",
	"serve --host":    "codehand serve --listen 127.0.0.1:8080",
	"serve --address": "codehand serve --listen 127.0.0.1:8080",
	"serve --bind":    "codehand serve --listen 127.0.0.1:8080",
}

// flagError says what is wrong with a flag, in our words: those of the parser name functions of Go.
func flagError(cmd *cobra.Command, err error) error {
	hint := cmd.CommandPath() + " --help"
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		if short := unknown.GetSpecifiedShortnames(); short != "" {
			return usage(hint, "unknown flag: -%s", unknown.GetSpecifiedName())
		}
		var known []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, "--"+f.Name) })
		name := "--" + unknown.GetSpecifiedName()
		if better := othersFlags[cmd.Name()+" "+name]; better != "" {
			return usage(better, "unknown flag: %s", name)
		}
		return usage(hint, "unknown flag: %s%s", name, didYouMean(name, known))
	}
	if missing, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		return usage(hint, "--%s needs a value", missing.GetFlag().Name)
	}
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		must := map[string]string{"bool": "must be true or false", "int": "must be a whole number"}
		what, ok := must[invalid.GetFlag().Value.Type()]
		if !ok {
			what = "does not take that value"
		}
		return usage(hint, "--%s=%s: %s", invalid.GetFlag().Name, invalid.GetValue(), what)
	}
	return usage(hint, "%s", strings.TrimSuffix(err.Error(), "\n"))
}
