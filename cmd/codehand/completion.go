package main

import (
	"github.com/spf13/cobra"

	"codehand/server/config"
	"codehand/tools"
)

// newCompletion prints the scripts with which shells complete commands, flags, settings, their values and tools.
func newCompletion(t *terminal) *cobra.Command {
	shells := map[string]func(root *cobra.Command) error{
		"bash":       func(root *cobra.Command) error { return root.GenBashCompletionV2(t.out, true) },
		"zsh":        func(root *cobra.Command) error { return root.GenZshCompletion(t.out) },
		"fish":       func(root *cobra.Command) error { return root.GenFishCompletion(t.out, true) },
		"powershell": func(root *cobra.Command) error { return root.GenPowerShellCompletionWithDesc(t.out) },
	}
	names := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "Print a script for tab completion in a shell",
		Long: `Print a script with which a shell completes commands, flags, settings and their
values, and the names of tools.

Exit codes: 0 done, 2 usage.`,
		Example: `  bash:       source <(codehand completion bash)
              codehand completion bash > ~/.local/share/bash-completion/completions/codehand
  zsh:        codehand completion zsh > "${fpath[1]}/_codehand"
  fish:       codehand completion fish > ~/.config/fish/completions/codehand.fish
  powershell: codehand completion powershell | Out-String | Invoke-Expression`,
		ValidArgs:             names,
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			hint := "codehand completion --help"
			if len(args) != 1 {
				return usage(hint, "name one shell: bash, zsh, fish or powershell")
			}
			script, ok := shells[args[0]]
			if !ok {
				return usage(hint, "unknown shell %q%s", args[0], didYouMean(args[0], names))
			}
			return script(cmd.Root())
		},
	}
}

// completeTool completes the first argument with the names of tools.
func completeTool(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveDefault // KEY=VALUE, where a value is often a file
	}
	var names []string
	for _, t := range tools.All(tools.Engines{}) {
		names = append(names, t.Spec.Name+"\t"+t.Spec.Hint)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeSettings lets a shell complete the flags of settings, which help texts leave out, and their values.
func completeSettings(root *cobra.Command) {
	for _, s := range config.Settings() {
		root.PersistentFlags().Lookup(flagName(s)).Hidden = false
		if s.Values != nil {
			values := cobra.FixedCompletions(s.Values, cobra.ShellCompDirectiveNoFileComp)
			if err := root.RegisterFlagCompletionFunc(flagName(s), values); err != nil {
				panic(err) // each flag is registered once
			}
		}
	}
}
