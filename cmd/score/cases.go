//go:build score

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// A scenario is one case: what is laid down, what is asked, and what a person expects then.
type scenario struct {
	area, name, about string
	steps             []step
}

// A step is a line of a case. kind is:
//
//	$  a command of the shell in the directory of the case; $OUT is a directory outside of the root
//	>  a request; & one that is sent without waiting, all of a run of such lines at once
//	?  a command that must succeed
//	=  a text that the last answer must contain; ~ one that it must not contain
//	!  the last answer must be an error; o it must be none
//	<  the last answer must be shorter than so many characters
//	l  the most bytes of a file that the server may write from now on ("l none": as many as it likes)
type step struct {
	kind byte
	args []string
	text string
	line int
}

// readCases reads the files of a directory, each an area.
func readCases(dir string) (all []scenario, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		area := strings.TrimSuffix(filepath.Base(file), ".txt")
		cases, err := parse(area, string(b))
		if err != nil {
			return nil, fmt.Errorf("%s:%w", file, err)
		}
		all = append(all, cases...)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no cases in %s", dir)
	}
	return all, nil
}

func parse(area, text string) (all []scenario, err error) {
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSuffix(line, "\n")
		if line == "" || strings.HasPrefix(line, "# ") {
			continue
		}
		if head, ok := strings.CutPrefix(line, "## "); ok {
			name, about, _ := strings.Cut(head, ": ")
			all = append(all, scenario{area: area, name: name, about: about})
			continue
		}
		if len(all) == 0 || len(line) < 1 || !strings.Contains("$>&?=~!o<l", line[:1]) {
			return nil, fmt.Errorf("%d: no step: %s", n, line)
		}
		s := step{kind: line[0], text: strings.TrimPrefix(line[1:], " "), line: n}
		if strings.IndexByte(">&=~", s.kind) >= 0 {
			if s.args, err = split(s.text); err != nil {
				return nil, fmt.Errorf("%d: %w", n, err)
			}
		}
		c := &all[len(all)-1]
		c.steps = append(c.steps, s)
	}
	return all, nil
}

// split takes a line apart into words and texts in quotes, as Go writes them. @N is a text of N bytes.
func split(line string) (args []string, err error) {
	for line = strings.TrimSpace(line); line != ""; line = strings.TrimSpace(line) {
		if line[0] == '"' || line[0] == '`' {
			quoted, err := strconv.QuotedPrefix(line)
			if err != nil {
				return nil, fmt.Errorf("%w: %s", err, line)
			}
			text, _ := strconv.Unquote(quoted)
			args, line = append(args, text), line[len(quoted):]
			continue
		}
		word, rest, _ := strings.Cut(line, " ")
		if n, err := strconv.Atoi(strings.TrimPrefix(word, "@")); err == nil && word[0] == '@' {
			word = strings.Repeat("0123456789abcde\n", n/16)
		}
		args, line = append(args, word), rest
	}
	return args, nil
}
