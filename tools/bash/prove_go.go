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
		if row := programs.OfSub("go", sub); row != nil && row.Reads {
			why := p.match(row, args[n:])
			switch {
			case sub == "env" && len(p.rest) == 0:
				why = "without a name it starts the C compiler"
			case sub == "list" && why == "":
				why = goStale(row.Read(p.texts), p.texts)
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
func goStale(r programs.Reading, words []string) string {
	for _, w := range words {
		if strings.Contains(w, "Stale") {
			return "word " + snippet(w) + " starts the compiler"
		}
	}
	all, modules := false, false
	for i := range r.Options {
		o := &r.Options[i]
		switch {
		case o.Option == nil:
		case o.Name == "-json":
			fields := ""
			if o.Value >= 0 {
				fields = words[o.Value][o.ValueFrom:]
			}
			_, no := strconv.ParseBool(fields) // -json=true is all of them, too
			all = all || fields == "" || no == nil
		case o.Name == "-m":
			modules = modules || o.Value < 0
		}
	}
	if all && !modules {
		return "-json without fields starts the compiler; use -json=Dir,GoFiles"
	}
	return ""
}
