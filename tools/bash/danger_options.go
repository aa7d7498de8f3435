package bash

import (
	"slices"
	"strings"

	"codehand/tools/bash/programs"
)

// options finds what makes a program run another one that is no option of the table.
func (k *check) options(name string, args []spelt) {
	t := ""
	switch name {
	case "tar", "gtar", "bsdtar":
		t = oldTarOption(args)
	case "zip":
		t = zipOption(args)
	case "ssh", "scp", "sftp":
		t = sshOption(name, args)
	case "make", "gmake":
		t = makeOption(args)
	case "gdb", "sqlite3", "psql":
		t = k.consoleOption(name, args)
	default:
		if programs.Of(name).Has("editor") {
			t = k.editorOption(name, args)
		}
	}
	if t != "" {
		k.program(name, t+" names a program")
	}
}

// oldTarOption reads the old form, in which the first word is letters without a dash.
func oldTarOption(args []spelt) string {
	if len(args) > 0 {
		if t := args[0].bare; t != "" && t[0] != '-' && strings.ContainsAny(t, "IF") {
			return t
		}
	}
	return ""
}

func zipOption(args []spelt) string {
	for i := range args {
		if t := args[i].bare; strings.HasPrefix(t, "-") && strings.Contains(t, "TT") {
			return t
		}
	}
	return ""
}

func sshOption(name string, args []spelt) string {
	for i := range args {
		t := args[i].bare
		if name != "ssh" && strings.HasPrefix(t, "-S") {
			return t
		}
		t = strings.ToLower(t)
		// the second also with permit
		for _, key := range [...]string{"proxycommand", "localcommand", "knownhostscommand"} {
			if strings.HasPrefix(strings.TrimLeft(strings.TrimPrefix(t, "-o"), " \t"), key) ||
				strings.Contains(t, "o"+key) && t[0] == '-' ||
				strings.HasPrefix(t, "permitlocal") || strings.HasPrefix(t, "-opermitlocal") {
				return args[i].text
			}
		}
	}
	return ""
}

func makeOption(args []spelt) string {
	for i := range args {
		if t := args[i].bare; strings.HasPrefix(t, "SHELL=") || strings.HasPrefix(t, "SHELL:=") {
			return t
		}
	}
	return ""
}

// editorOption finds what makes a pager or an editor run a command.
func (k *check) editorOption(name string, args []spelt) string {
	for i := range args {
		t := args[i].text
		switch {
		case strings.Contains(t, "!"):
			return t
		case strings.HasPrefix(t, "-c"), t == "--cmd", strings.HasPrefix(t, "--eval"), strings.HasPrefix(t, "-eval"),
			strings.HasPrefix(t, "--execute"),
			name == "emacs" && (t == "-f" || t == "-l" || strings.HasPrefix(t, "--fun") ||
				strings.HasPrefix(t, "--load")):
			return t
		case len(t) > 1 && t[0] == '+' && t[1] != '/' && strings.Trim(t[1:], "0123456789,:") != "":
			return t
		}
	}
	if k.isFed() && (strings.Contains(fedText(k.c), "!") || exMode(args)) {
		return "its input"
	}
	return ""
}

// exMode says whether vi is told to read its input as commands: `vim -es`.
func exMode(args []spelt) bool {
	return slices.ContainsFunc(args, func(w spelt) bool {
		return len(w.bare) > 1 && w.bare[0] == '-' && w.bare[1] != '-' && strings.ContainsAny(w.bare, "eE")
	})
}

// fedText is the text of here-documents and here-strings.
func fedText(c *simple) string {
	text := ""
	for _, r := range c.stmt.Redirs {
		if here, ok := hereText(c.in.text, r); ok {
			text += here
		}
	}
	return text
}

// consoleOption is for programs with a command language of their own.
func (k *check) consoleOption(name string, args []spelt) string {
	var signs []string
	switch name {
	case "gdb":
		for i := range args {
			t, dash := strings.CutPrefix(strings.TrimPrefix(args[i].bare, "-"), "-") // one dash or two
			if !dash {
				t, dash = strings.CutPrefix(args[i].bare, "-")
			}
			if dash && (t == "ex" || t == "iex" || t == "o" || strings.HasPrefix(t, "eval-c") ||
				strings.HasPrefix(t, "init-eval-c")) {
				return args[i].text
			}
		}
	case "sqlite3":
		signs = []string{".sh", ".sys"}
	case "psql":
		signs = []string{`\!`}
	}
	for _, sign := range signs {
		for i := range args {
			if t := args[i].text; strings.Contains(t, sign) && !(sign == ".sh" && strings.HasSuffix(t, ".sh")) {
				return t
			}
		}
		if strings.Contains(fedText(k.c), sign) {
			return sign
		}
	}
	return ""
}
