package bash

import (
	"strings"

	"codehand/tools/bash/programs"
)

// awk looks for programs that run or write something.
func (k *check) awk(name string, args []spelt) {
	r := read(name, args)
	given := false
	for i := range r.Options {
		o := &r.Options[i]
		switch {
		case o.Option == nil:
		case o.Kind == programs.Code && o.Value >= 0:
			code := r.value(o)
			k.awkProgram(name, code.text)
			given = true
		case o.Kind == programs.List || o.Name == "-D" || o.Name == "-o" || o.Name == "--debug":
			k.found("D3", name, args[o.At].bare+" loads a program from elsewhere")
			return
		}
	}
	if !given && len(r.Operands) > 0 {
		k.awkProgram(name, args[r.Operands[0]].text)
	}
}

func (k *check) awkProgram(name, program string) {
	code := awkCode(program)
	switch sign := strings.TrimSpace(awkSigns().FindString(strings.ReplaceAll(code, "||", ""))); {
	case sign != "":
		k.found("D3", name, sign+" runs programs, loads code or reads from elsewhere")
	case awkWrites().MatchString(awkArguments().ReplaceAllString(code, "0")):
		k.found("D3", name, "> writes a file")
	}
}

// awkSigns, awkWrites and awkArguments find in code without its texts what runs something, what writes something, and
// what is between parentheses. awkTexts are texts, and patterns where nothing can be divided.
var (
	awkSigns     = regexpOnce(`system[ \t\\\r\n]*\(|getline|\||@`)
	awkWrites    = regexpOnce(`print[^;}\n]*>`)
	awkArguments = regexpOnce(`\([^()]*\)`)
	awkTexts     = regexpOnce(`"(?:\\(?s:.)|[^"\\\n])*"|((?:^|[(,{};!~&|=\n])[ \t]*)/(?:\\(?s:.)|[^/\\\n])*/`)
)

// awkCode returns a program without what is between quotes, and between slashes where a pattern stands. Where a slash
// may divide, a quote behind it may be one of a pattern: then the program stays as it is, so that nothing that runs is
// ever taken away.
func awkCode(program string) string {
	code := awkTexts().ReplaceAllString(program, "${1}0")
	if strings.Contains(code, "/") {
		return program
	}
	return code
}
