package bash

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// redirection is rule R3. It returns what is wrong; "": nothing.
func (p *prover) redirection(r *syntax.Redirect) string {
	n := ""
	if r.N != nil {
		n = r.N.Value
	}
	ok := false
	switch r.Op {
	case syntax.RdrOut, syntax.AppOut:
		ok = (n == "" || n == "1" || n == "2") && p.isNull(r.Word)
	case syntax.RdrAll:
		ok = n == "" && p.isNull(r.Word)
	case syntax.DplOut: // also of `>&file`
		switch to := r.Word.Lit(); n {
		case "":
			ok = to == "2"
		case "1":
			ok = to == "2"
		case "2":
			ok = to == "1"
		}
	case syntax.RdrIn:
		if n == "" || n == "0" {
			return p.input(r)
		}
	case syntax.Hdoc:
		ok = (n == "" || n == "0") && quotedDelimiter(r.Word)
	case syntax.WordHdoc:
		if n == "" || n == "0" {
			_, why := p.word(r.Word)
			return why
		}
	}
	if !ok {
		return "redirection " + p.source(r)
	}
	return ""
}

func (p *prover) isNull(in *syntax.Word) bool {
	w, why := p.word(in)
	return why == "" && w.text == NullDevice && !w.glob()
}

// input looks at what `<` reads.
func (p *prover) input(r *syntax.Redirect) string {
	w, why := p.word(r.Word)
	switch {
	case why != "":
		return why
	case w.leads():
		return "redirection " + p.source(r)
	case w.text == NullDevice:
		return ""
	case strings.HasPrefix(w.text, "/dev/"): // bash itself opens connections for /dev/tcp and /dev/udp
		return "redirection " + p.source(r)
	}
	if why := p.path(w); why != "" {
		return "redirection " + p.source(r) + ": " + why
	}
	return ""
}

// quotedDelimiter says whether nothing in a here-document is expanded. Only delimiters of letters and digits in one
// pair of quotes are taken, because all shells agree on where those end.
func quotedDelimiter(in *syntax.Word) bool {
	if len(in.Parts) != 1 {
		return false
	}
	name := ""
	switch part := in.Parts[0].(type) {
	case *syntax.SglQuoted:
		if !part.Dollar {
			name = part.Value
		}
	case *syntax.DblQuoted:
		if lit, ok := oneLit(part); ok && !part.Dollar {
			name = lit
		}
	}
	for i := range len(name) {
		if !isAlpha(name[i]) && !isDigit(name[i]) && name[i] != '_' && name[i] != '-' {
			return false
		}
	}
	return name != ""
}

func oneLit(in *syntax.DblQuoted) (string, bool) {
	if len(in.Parts) != 1 {
		return "", false
	}
	lit, ok := in.Parts[0].(*syntax.Lit)
	if !ok {
		return "", false
	}
	return lit.Value, true
}
