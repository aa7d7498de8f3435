package bash

import "strings"

// options is the table of R7: options that name a program. They also count shortened and with their value glued.
func (k *check) options(name string, args []spelt) {
	t := ""
	switch name {
	case "rg", "ripgrep":
		t = exactOption(args, "--pre", "--hostname-bin")
	case "sort", "gsort":
		t = optionOf(args, "", "", "--compress-program")
	case "split", "gsplit":
		t = optionOf(args, "", "", "--filter")
	case "tar", "gtar", "bsdtar":
		t = tarOption(args)
	case "zip":
		t = zipOption(args)
	case "git":
		k.gitOptions(args)
	case "ssh", "scp", "sftp":
		t = sshOption(name, args)
	case "rsync":
		t = optionOf(args, "e", "fBTM@", "--rsh", "--rsync-path")
	case "man":
		t = optionOf(args, "PHC", "LmMSseEprR", "--pager", "--html", "--config-file")
	case "less", "more", "most", "pg", "zless", "vi", "vim", "nvim", "gvim", "vimdiff", "view", "ex", "ed", "red",
		"emacs", "nano", "pico", "joe", "jed", "mg", "kak", "hx", "helix", "micro", "ne":
		t = k.editorOption(name, args)
	case "go":
		t = exactOption(args, "-toolexec", "--toolexec", "-exec", "--exec", "-vettool", "--vettool")
	case "make", "gmake":
		t = makeOption(args)
	case "cargo":
		t = optionOf(args, "", "", "--config")
	case "gdb", "lldb", "sqlite3", "psql", "expect":
		t = k.consoleOption(name, args)
	default:
		t = wrapperOption(name, args)
	}
	if t != "" {
		k.found("D3", name, t+" names a program")
	}
}

// wrapperOption are the options of programs that run their words, and of built-in commands.
func wrapperOption(name string, args []spelt) string {
	switch name {
	case "env":
		for i := range args {
			t := args[i].bare
			if isOption(t, "S", "uC", "--split-string") {
				return t
			}
			if !strings.HasPrefix(t, "-") && assigned(t) == "" && (i == 0 || !envTakes(args[i-1].bare)) {
				return "" // the command
			}
		}
	case "flock":
		return optionOf(args, "c", "wE", "--command")
	case "script":
		return optionOf(args, "c", "BEIOTmo", "--command")
	case "mapfile", "readarray":
		return optionOf(args, "C", "dnOsu")
	case "complete", "compgen":
		return optionOf(args, "C", "oAGWFXPS")
	case "bind":
		return optionOf(args, "x", "mqurf")
	case "enable":
		return optionOf(args, "f", "")
	case "hash":
		return optionOf(args, "p", "")
	}
	return ""
}

func envTakes(option string) bool {
	return option == "-u" || option == "-C" || option == "--unset" || option == "--chdir"
}

// exactOption finds options of programs that do not know shortened ones.
func exactOption(args []spelt, names ...string) string {
	for i := range args {
		t := args[i].bare
		if len(t) < 4 || t[0] != '-' {
			continue
		}
		if t == "--" {
			return ""
		}
		option, _, _ := strings.Cut(t, "=")
		for _, name := range names {
			if option == name {
				return t
			}
		}
	}
	return ""
}

// tarOption also reads the old form, in which the first word is letters without a dash.
func tarOption(args []spelt) string {
	const letters, valued = "IF", "bCfgHKLNTVX"
	if len(args) > 0 {
		if t := args[0].bare; t != "" && t[0] != '-' && strings.ContainsAny(t, letters) {
			return t
		}
	}
	for i := range args {
		switch t := args[i].bare; {
		case t == "--":
			return ""
		case t == "--checkpoint" || strings.HasPrefix(t, "--checkpoint="):
		case isOption(t, letters, valued, "--checkpoint-action", "--to-command", "--use-compress-program",
			"--info-script", "--new-volume-script", "--rsh-command", "--rmt-command"):
			return t
		}
	}
	return ""
}

func zipOption(args []spelt) string {
	for i := range args {
		if t := args[i].bare; abbreviates(t, "--unzip-command") ||
			strings.HasPrefix(t, "-") && strings.Contains(t, "TT") {
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
		if t := args[i].bare; abbreviates(t, "--eval") || strings.HasPrefix(t, "SHELL=") ||
			strings.HasPrefix(t, "SHELL:=") ||
			isOption(t, "E", "CfIjlOoW") {
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
	if text := k.fedText(); strings.Contains(text, "!") {
		return "! in its input"
	}
	return ""
}

// fedText is the text of here-documents and here-strings.
func (k *check) fedText() string {
	text := ""
	for _, r := range k.c.stmt.Redirs {
		if here, ok := hereText(k.c.in.text, r); ok {
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
	case "lldb":
		return optionOf(args, "oOQ", "nfsaSpPrcdw", "--one-line", "--one-line-before-file", "--one-line-on-crash")
	case "expect":
		return optionOf(args, "c", "fb")
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
		if strings.Contains(k.fedText(), sign) {
			return sign
		}
	}
	return ""
}
