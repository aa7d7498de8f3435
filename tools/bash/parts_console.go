package bash

import "strings"

// console reads the words of programs with a command language of their own for what starts programs there.
func (use *runsUse) console(name string, args []spelt) {
	for i := range args {
		if sign := consoleSign(name, args[i].text); sign != "" {
			use.code = sign
			if _, program, ok := strings.Cut(args[i].text, "|"); ok {
				use.texts = append(use.texts, program)
			} else if _, program, ok := strings.Cut(args[i].text, sign); ok {
				use.texts = append(use.texts, program)
			}
		}
	}
	switch name {
	case "hyperfine":
		for i := range args {
			if strings.ContainsAny(args[i].text, wordBreaks) {
				use.texts = append(use.texts, args[i].text)
			}
		}
	case "tmux", "screen", "byobu", "concurrently", "start-server-and-test", "cross-env-shell", "sops", "dtach",
		"abduco", "entr", "adb", "mosh", "pdsh":
		for i := range args {
			if strings.ContainsAny(args[i].text, wordBreaks) {
				use.texts = append(use.texts, strings.TrimPrefix(args[i].text, "run "))
			}
		}
	case "sg":
		if len(args) == 2 {
			use.texts = append(use.texts, args[1].text)
		}
	case "socat":
		for i := range args {
			for _, kind := range [...]string{"exec:", "system:", "shell:"} {
				if len(args[i].text) > len(kind) && strings.EqualFold(args[i].text[:len(kind)], kind) {
					use.texts = append(use.texts, args[i].text[len(kind):])
				}
			}
		}
	case "sed", "gsed":
		if sedOf(name, args).foreign {
			use.code = "-f"
		}
	case "make", "gmake":
		for i := range args {
			name, value, ok := strings.Cut(args[i].text, "=")
			if ok && name != "" && name[0] != '-' && !plainSetting(name, value) {
				use.code = args[i].text
			}
			if strings.Contains(args[i].text, "$(shell") || strings.Contains(args[i].text, "${shell") {
				use.code = args[i].text
			}
		}
	}
}

// plainSetting says whether NAME=value on the command line of make is a switch and nothing that a recipe runs.
func plainSetting(name, value string) bool {
	plain := func(c rune) bool { return c == '_' || c < 0x80 && (isAlpha(byte(c)) || isDigit(byte(c))) }
	is := func(s, more string) bool {
		return strings.IndexFunc(s, func(c rune) bool { return !plain(c) && !strings.ContainsRune(more, c) }) < 0
	}
	return assigned(name+"=") != "" && is(value, ".,+-") && !strings.HasPrefix(value, "--") &&
		!isOneOf(name, "SHELL MAKE CC CXX LD AR AS CPP FC LEX YACC MAKEFILES MAKEFLAGS GNUMAKEFLAGS")
}

// consoleSign returns what in a text makes a program start another one; "": nothing does. The text is an argument
// of the program, or part of what it reads.
func consoleSign(name, text string) string {
	switch name {
	case "sqlite3", "duckdb":
		for line := range strings.Lines(text) {
			if command := strings.TrimSpace(line); strings.HasPrefix(command, ".") && !isDotCommand(command) {
				word, _, _ := strings.Cut(command, " ")
				return word
			}
		}
		return firstOf(text, "edit(", "load_extension(", "writefile(", "from program")
	case "psql":
		return firstOf(text, `\!`, `\o`, `\g`, `\copy`, `\i`, `\w`, `\e`, `\setenv`, "program", "`")
	case "mysql", "mariadb":
		for statement := range strings.FieldsFuncSeq(text, func(c rune) bool { return c == ';' || c == '\n' }) {
			word, _, _ := strings.Cut(strings.TrimSpace(statement), " ")
			if isOneOf(strings.ToLower(word), "system pager source edit tee") {
				return word
			}
		}
		return firstOf(text, `\!`, `\P`, `\.`, `\e`, `\T`)
	case "dc":
		return firstOf(text, "!")
	case "clickhouse", "clickhouse-local", "clickhouse-client":
		return firstOf(text, "executable(")
	case "mail", "mailx", "s-nail":
		return firstOf(text, "~!", "~|", "~<!")
	case "m4":
		return firstOf(text, "syscmd", "esyscmd")
	case "gnuplot":
		return firstOf(text, "system", "`", "!")
	case "mlr":
		return firstOf(text, "system(", "exec(")
	case "convert", "magick", "mogrify", "identify", "composite", "montage":
		if strings.HasPrefix(text, "|") {
			return "|"
		}
		return firstOf(text, ":|", "msl:", "ephemeral:")
	case "latex", "pdflatex", "xelatex", "lualatex", "tex", "pdftex", "xetex", "luatex":
		return firstOf(text, `\write18`, `\input|`, `\directlua`, `"|`)
	}
	return ""
}

// isDotCommand knows the commands of sqlite3 that start nothing and touch no file, spelt whole.
func isDotCommand(line string) bool {
	word, rest, _ := strings.Cut(line, " ")
	return !strings.Contains(rest, "|") && isOneOf(word, ".tables .schema .mode .headers .header .dump .indexes "+
		".indices .databases .help .width .nullvalue .separator .timer .stats .quit .exit .bail .changes .echo .show "+
		".limit .fullschema .print .parameter .param .explain .eqp .timeout .dbinfo .version")
}

// firstOf returns the first of signs that stands in a text, in any case of its letters; "": none does.
func firstOf(text string, signs ...string) string {
	lower := strings.ToLower(text)
	for _, sign := range signs {
		at := strings.Index(lower, strings.ToLower(sign))
		if at >= 0 && len(lower) == len(text) {
			return text[at : at+len(sign)]
		}
	}
	return ""
}

// readsCommands says whether a program runs command lines that it reads.
func (h head) readsCommands() bool {
	switch h.name {
	case "at", "batch", "newgrp", "ssh", "crontab":
		return true
	}
	return h.row.Has("shell")
}

// namesProgram says whether programs take a command line from a variable.
func namesProgram(name string) bool {
	for _, end := range [...]string{"PAGER", "EDITOR", "ASKPASS", "_COMMAND", "_RUNNER", "_WRAPPER", "_SSH",
		"_EXTERNAL_DIFF", "_script_shell", "_SCRIPT_SHELL"} {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	return isOneOf(name, "VISUAL BROWSER LESSOPEN LESSCLOSE SHELL MAKE CC CXX RSYNC_RSH CVS_RSH SVN_SSH RUSTC") ||
		strings.HasPrefix(name, "GIT_CONFIG_VALUE_")
}

// fedCode says what in the input of a program starts others; "": nothing that is known to.
func fedCode(c *simple, name string) string {
	text := ""
	for _, r := range c.stmt.Redirs {
		if here, ok := hereText(c.in.text, r); ok {
			text += here + "\n"
		}
	}
	if c.fed {
		if name == "psql" || name == "mysql" || name == "mariadb" { // their signs begin with a backslash
			text += c.in.text
		}
		text += c.in.pieces()
	}
	return consoleSign(name, text)
}

// pieces are what stands between quotes, backslashes and ends of lines, each in a line of its own: what a pipe may feed
// to a program is somewhere in the text. It is worked out once.
func (s *script) pieces() string {
	if s.pieced == "" {
		var b strings.Builder
		for rest := s.text; rest != ""; {
			piece, next := rest, ""
			if i := strings.IndexAny(rest, "'\";\\\n"); i >= 0 {
				piece, next = rest[:i], rest[i+1:]
				if rest[i] == '\n' { // it belongs to the piece
					piece = rest[:i+1]
				}
			}
			if rest = next; piece != "" {
				b.WriteString(strings.TrimPrefix(piece, "n")) // \n in a format
				b.WriteByte('\n')
			}
		}
		s.pieced = b.String()
	}
	return s.pieced
}
