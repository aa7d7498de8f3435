package bash

import (
	"strconv"
	"strings"
)

// goFault looks at the words of go, whose flags do not cluster and end at the first operand.
func (p *prover) goFault(args []word) string {
	if len(args) == 0 {
		return "there is no sub-command"
	}
	sub, rest := args[0].text, args[1:]
	for _, w := range args {
		if w.leads() {
			return "glob " + snippet(w.text) + " may turn into an option"
		}
	}
	switch sub {
	case "version":
		return goOperands(rest, 0)
	case "help":
		return p.goWords("help", rest, nil, 8)
	case "env":
		return goEnvFault(rest)
	case "list":
		if why := goStale(rest); why != "" {
			return why
		}
		return p.goWords("list", rest, goListOptions, manyOperands)
	case "doc":
		return p.goWords("doc", rest, goDocOptions, 2)
	case "mod":
		if len(rest) > 0 && rest[0].text == "graph" {
			return goOperands(rest[1:], 0)
		}
		if len(rest) > 0 && rest[0].text == "why" {
			return p.goWords("mod why", rest[1:], goWhyOptions, manyOperands)
		}
	}
	return "sub-command " + snippet(sub) + " is not on the list"
}

func goOperands(args []word, most int) string {
	if len(args) > most {
		return "operand " + snippet(args[most].text) + " is not on the list"
	}
	return ""
}

// goEnvFault wants names, and none of those for which go tries what the C compiler can do, and writes it to its cache
// (go1.26, cmd/go/internal/envcmd: needCostly).
func goEnvFault(args []word) string {
	if len(args) == 0 || len(args) == 1 && args[0].text == "-json" {
		return "env: without a name it starts the C compiler"
	}
	for _, w := range args {
		if strings.HasPrefix(w.text, "CGO_") || w.text == "PKG_CONFIG" || w.text == "GOGCCFLAGS" {
			return "env: name " + snippet(w.text) + " starts the C compiler"
		}
		if w.text != "-json" && (w.text == "" || strings.Trim(w.text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != "") {
			return "env: word " + snippet(w.text) + " is not on the list"
		}
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
			return "list: word " + snippet(w.text) + " starts the compiler"
		}
	}
	if all && !modules {
		return "list: -json without fields starts the compiler; use -json=Dir,GoFiles"
	}
	return ""
}

// goListOptions, goDocOptions and goWhyOptions say what a flag takes.
func goListOptions(flag string) arity {
	switch flag {
	case "-m", "-json", "-deps", "-e", "-find":
		return noValue
	case "-f", "-tags":
		return oneValue
	}
	if strings.HasPrefix(flag, "-json=") || strings.HasPrefix(flag, "-f=") {
		return noValue
	}
	return notListed
}

func goDocOptions(flag string) arity {
	switch flag {
	case "-all", "-short", "-src", "-u", "-c", "-cmd":
		return noValue
	}
	return notListed
}

func goWhyOptions(flag string) arity {
	if flag == "-m" {
		return noValue
	}
	return notListed
}

// goWords reads flags, and operands that are packages or symbols. An operand with `@` asks the network for a version.
func (p *prover) goWords(sub string, args []word, flag func(string) arity, most int) string {
	operands := 0
	for i := 0; i < len(args); i++ {
		w := args[i]
		if strings.HasPrefix(w.text, "-") {
			takes := notListed
			if flag != nil && operands == 0 {
				takes = flag(w.text)
			}
			switch {
			case takes == notListed:
				return sub + ": option " + snippet(w.text) + " is not on the list"
			case takes == oneValue && (i+1 == len(args) || strings.HasPrefix(args[i+1].text, "-") || args[i+1].glob()):
				return sub + ": option " + w.text + " has no value"
			case takes == oneValue:
				i++
			}
			continue
		}
		operands++
		switch why := p.path(w); {
		case operands > most:
			return sub + ": operand " + snippet(w.text) + " is one too many"
		case why != "":
			return sub + ": " + why
		case strings.Contains(w.text, "@"):
			return sub + ": operand " + snippet(w.text) + " asks for a version"
		}
	}
	return ""
}
