package bash

import (
	"strconv"
	"strings"

	"codehand/tools/bash/programs"
)

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
			why := p.match(row, args[n:])
			switch {
			case sub == "env" && len(p.rest) == 0:
				why = "without a name it starts the C compiler"
			case sub == "list" && why == "":
				why = goStale(args[n:])
			}
			if why != "" {
				return sub + ": " + why
			}
			return ""
		}
	}
	return "sub-command " + snippet(args[0].text) + " is not on the list"
}

// goVariable wants a name that is none of those for which go tries what the C compiler can do, and writes it to its
// cache (go1.26, cmd/go/internal/envcmd: needCostly).
func goVariable(name string) string {
	switch {
	case strings.HasPrefix(name, "CGO_"), name == "PKG_CONFIG", name == "GOGCCFLAGS":
		return "name " + snippet(name) + " starts the C compiler"
	case name == "", strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != "":
		return "word " + snippet(name) + " is not on the list"
	}
	return ""
}

// goStale refuses what makes go list look whether packages are stale, for which it starts the compilers and writes its
// cache (go1.26, cmd/go/internal/list: needStale).
func goStale(args []word) string {
	all, modules := false, false
	for _, w := range args {
		fields, listed := strings.CutPrefix(w.text, "-json=")
		_, no := strconv.ParseBool(fields) // -json=true is all of them, too
		all = all || w.text == "-json" || listed && (fields == "" || no == nil)
		modules = modules || w.text == "-m"
		if strings.Contains(w.text, "Stale") {
			return "word " + snippet(w.text) + " starts the compiler"
		}
	}
	if all && !modules {
		return "-json without fields starts the compiler; use -json=Dir,GoFiles"
	}
	return ""
}
