package bash

import "codehand/tools/bash/programs"

// goFault looks at the words of go: its sub-commands have rows.
func (p *prover) goFault(args []word) string {
	if len(args) == 0 {
		return "there is no sub-command"
	}
	for n := min(2, len(args)); n > 0; n-- {
		sub := args[0].text
		if n == 2 {
			sub += " " + args[1].text
		}
		if row := programs.Of("go " + sub); row != nil && row.Reads {
			if why := p.match(row, args[n:]); why != "" {
				return sub + ": " + why
			}
			return ""
		}
	}
	return "sub-command " + snippet(args[0].text) + " is not on the list"
}
