package bash

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"sync"
)

// The closed lists are data in the notation of the design. One entry is a name (several names that share it; for git
// one sub-command, which may have two words), a colon, and what may follow:
//
//	-abc      letters without a value        --name    an option without a value
//	-k=       a letter with a value          --name=   with a value, behind `=` or as the next word
//	-r=p      the value is a path            --name=p  likewise
//	-M~       an optional value, glued only  --name?   an optional value, behind `=` only
//	-N        a number option: `-20`         --arg=2   two words follow
//	@name     all options of that entry      <kind>    operands, see operands; without one there are none
//	glob      R5 (h) does not hold: no operand can do harm, even as an option
//	alone     letters do not cluster and take no value
//	apart     a value of a letter is glued only if it is a number: the program reads letters behind it as options
//	old       an operand that begins with `+` is an option of the old form
//	response  an operand that begins with `@` names a file of options and operands
//	first     options stand before the operands: behind them the program takes an option for its output file
//
// A line that begins with a blank continues the entry above.

//go:embed readonly.txt
var readOnlyText string

//go:embed gitlist.txt
var gitText string

// readOnlyList and gitList are read once, when the first command needs them, since most processes never do. A list with
// a mistake in it proves nothing; a test sees to it that there is none.
var readOnlyList = sync.OnceValue(func() map[string]*listed { return listOrNothing(readOnlyText, false) })

var gitList = sync.OnceValue(func() map[string]*listed { return listOrNothing(gitText, true) })

// An arity says what an option takes. The zero value is an option that is not on the list.
type arity uint8

const (
	notListed arity = iota
	noValue
	oneValue
	pathValue
	maybeValue // only glued, or behind `=`
	twoValues
)

// A listed is one command or git sub-command on a list.
type listed struct {
	letters  [128]arity
	long     map[string]arity
	number   bool
	operands operands
	git      bool

	glob, alone, apart, first, old, response bool
}

// operands are what may stand besides options.
type operands struct {
	kind     string // path dir text pattern filter script rev list number seconds format style; "": there are none
	min, max int
}

// several says whether any number of operands may stand there.
func (c *listed) several() bool { return c.operands.max == manyOperands }

const manyOperands = 1 << 20

func listOrNothing(source string, git bool) map[string]*listed {
	list, err := parseList(source, git)
	if err != nil {
		return nil
	}
	return list
}

// parseList reads a list. Its errors name the entry.
func parseList(source string, git bool) (map[string]*listed, error) {
	list := make(map[string]*listed, 128)
	var entry *listed
	name := ""
	for line := range strings.Lines(source) {
		rest := line
		if line[0] != ' ' {
			var ok bool
			if name, rest, ok = strings.Cut(line, ":"); !ok {
				return nil, fmt.Errorf("entry %q: no colon", strings.TrimSpace(line))
			}
			entry = &listed{long: map[string]arity{}, git: git}
			for each := range listedNames(name, git) {
				list[each] = entry
			}
		}
		for token := range strings.FieldsSeq(joinKinds(rest)) {
			if err := entry.add(token, list); err != nil {
				return nil, fmt.Errorf("entry %s: %w", name, err)
			}
		}
	}
	return list, nil
}

func listedNames(name string, git bool) func(func(string) bool) {
	if git {
		return func(yield func(string) bool) { yield(name) }
	}
	return strings.FieldsSeq(name)
}

// joinKinds makes one token of `<path ..1>`.
func joinKinds(s string) string { return strings.ReplaceAll(s, " ..", "..") }

func (c *listed) add(token string, list map[string]*listed) error {
	switch {
	case token == "glob":
		c.glob = true
	case token == "alone":
		c.alone = true
	case token == "apart":
		c.apart = true
	case token == "first":
		c.first = true
	case token == "old":
		c.old = true
	case token == "response":
		c.response = true
	case token == "-N":
		c.number = true
	case token[0] == '@':
		return c.include(list[token])
	case token[0] == '<' || token[len(token)-1] == '>':
		return c.addOperands(token)
	case strings.HasPrefix(token, "--"):
		return c.addLong(token)
	case token[0] == '-':
		return c.addLetters(token)
	default:
		return fmt.Errorf("token %q", token)
	}
	return nil
}

// include takes all options of another entry; what is listed later replaces them.
func (c *listed) include(from *listed) error {
	if from == nil {
		return fmt.Errorf("it includes an entry that does not stand above it")
	}
	for i, t := range from.letters {
		if t != notListed {
			c.letters[i] = t
		}
	}
	for name, t := range from.long {
		c.long[name] = t
	}
	c.number = c.number || from.number
	return nil
}

// addOperands reads `<kind>`, and `<kind` or a count with `>`, since blanks part tokens.
func (c *listed) addOperands(token string) error {
	o := &c.operands
	if token[0] == '<' {
		kind, whole := strings.CutSuffix(token[1:], ">")
		kind, most, limited := strings.Cut(kind, "..")
		// the first operand, and paths
		if kind == "path" && (o.kind == "pattern" || o.kind == "filter" || o.kind == "script") {
			return nil
		}
		*o = operands{kind: kind, max: manyOperands}
		if !limited || !whole {
			return nil
		}
		token = ".." + most + ">"
	}
	least, most, isRange := strings.Cut(token[:len(token)-1], "..")
	if !isRange {
		most = least
	}
	var err error
	if least != "" {
		if o.min, err = strconv.Atoi(least); err != nil {
			return err
		}
	}
	o.max, err = strconv.Atoi(most)
	return err
}

func (c *listed) addLong(token string) error {
	t := noValue
	switch name, value, has := strings.Cut(token, "="); {
	case has && value == "":
		token, t = name, oneValue
	case has && value == "p":
		token, t = name, pathValue
	case has && value == "2":
		token, t = name, twoValues
	case has:
		return fmt.Errorf("token %q", token)
	case strings.HasSuffix(token, "?"):
		token, t = token[:len(token)-1], maybeValue
	}
	c.long[token] = t
	return nil
}

func (c *listed) addLetters(token string) error {
	letters, t := token[1:], noValue
	switch {
	case strings.HasSuffix(letters, "=p"):
		letters, t = letters[:len(letters)-2], pathValue
	case strings.HasSuffix(letters, "="):
		letters, t = letters[:len(letters)-1], oneValue
	case strings.HasSuffix(letters, "~"):
		letters, t = letters[:len(letters)-1], maybeValue
	}
	if t != noValue && len(letters) != 1 || letters == "" {
		return fmt.Errorf("token %q", token)
	}
	for i := range len(letters) {
		if !isAlpha(letters[i]) && !isDigit(letters[i]) {
			return fmt.Errorf("token %q", token)
		}
		c.letters[letters[i]] = t
	}
	return nil
}
