package programs

import (
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// A row begins in the first column with its names, a colon, and the version that was looked at:
//
//	sort, gsort: coreutils 9.1
//		proved -bcdf -k= -t= --key= <path>
//		known -o=w --output=w --compress-program=x
//
// Lines below begin with a blank; the first word may name a column, else the line goes on with the column above:
//
//	proved  options, and operands, with which the program only reads
//	edits   options, and operands, with which it only changes what its operands name
//	known   options that do more, or were not examined closely; operands, if neither column above has them
//	deep    options with which it goes down into directories; or `always`, as in all columns up to adds
//	follows options with which it follows links there
//	changes options with which it changes the files that its operands name
//	turns   options with which it treats links that its operands name the other way, see trait itself
//	lists   options with which it reads files that its words do not name, but a file or its input
//	unpacks options with which it changes files that its words do not name, but an archive or a list
//	shows   of git: options with which it shows contents of files that it tracks
//	hides   of git: options with which it shows none after all, unless one of shows is there, too
//	adds    of git: options with which it keeps files from then on that it did not track
//	danger  a clause of rule R7, options if it takes one of them, a colon, why
//	version words that alone print the version, or a list
//	obeys   environment variables and files; `!` behind what makes it run or write something
//	starts  programs that it starts by itself
//	subs    sub-commands behind which its command stands; of two words with a dash between, `compose-` a group of them
//	runs    what it runs because an option says so, wherever that stands, see run
//	traits  see below
//
// An option is one token:
//
//	-abc      letters without a value          --name    an option without a value
//	-k=       a letter with a value            --name=   with a value, behind `=` or as the next word
//	-M~       an optional value, glued only    --name?   an optional value, behind `=` only
//	--arg=2   two words follow                 --raw=2p  two words, of which the second is a path
//	-N        a number option: `-20`
//	@name     all options of that row
//
// Behind `=`, `~` and `?` the kind of the value may stand: p w x c d l, see Kind; then `^` for an option with which no
// operand is the pattern or the script. Operands are tokens in angle brackets: `<path>` any number, `<path 2>` two,
// `<path ..1>` at most one, `<text 1..2>` one or two. A first operand of another kind stands before:
// `<pattern> <path>`, `<text 1> <command>`.
//
// Traits:
//
//	glob      no operand can do harm, even as an option
//	alone     letters do not cluster and take no value
//	apart     a value of a letter is glued only if it is a number: the program reads letters behind it as options
//	old       an operand that begins with `+` is an option of the old form
//	first     options stand before the operands: behind them the program takes an option for its output file
//	front     options end at the first operand
//	words     an option is a whole word, with one dash or two
//	digits    and a value may be glued to it if it is a number: `-c16`
//	expression  so it is, and from the first on every word is one
//	whole     long options are not shortened
//	names     it shows names and not contents, but for the column shows
//	contents  of git: it shows contents of the files that its operands name
//	no files  its words are no files, or it tells nothing of them
//	takes files  of git: any of its words may be a file
//	project   it runs the project's own code, or works with all of it: among its words are values that no text tells
//	itself    of a link that an operand names it looks at the link itself; without the trait, at what it leads to
//	maybe     what an operand names need not be there
//	stays     with --no-dereference it follows no links where it goes down
//	dashless  its first word may be letters of options without a dash
//	assigns   NAME=value may stand before the command that it runs
//	exact     it runs its words in a way that no rule with a star may allow
//	looked past   rules that allow look past it
//	leads     a rule with a star allows it where it names the command behind it
//	unsure    its options are not known, its command may stand anywhere
//	shell     it runs command texts
//	skips hidden  going down it leaves out names with a dot, unless an option says otherwise
//	numbered  its name may have a version behind it
//	language  it runs code: of a file, of an option, of its input
//	console   it runs what it reads from its input, whatever its words are
//	editor    its words may hold commands
//	writes    it may write to what its words name, in ways that are not in the table
//	own       of what is proved all words are operands, whatever they look like
//	feeds     it makes words of a command from what it reads
//	gives     its words may be values of variables, or what a pipe carries
//	held      the kernel holds what is dangerous about it, at sandbox level 3

//go:embed *.txt
var files embed.FS

func sources() []string {
	names, err := fs.Glob(files, "*.txt")
	if err != nil {
		return nil
	}
	var texts []string
	for _, name := range names {
		text, err := files.ReadFile(name)
		if err != nil {
			return nil
		}
		texts = append(texts, string(text))
	}
	return texts
}

// A row is a Program while it is read.
type row struct {
	*Program
	all    map[string]*Program
	column string
}

// parse reads tables. Its errors name the row.
func parse(texts []string) (map[string]*Program, error) {
	all := make(map[string]*Program, 512)
	for _, text := range texts {
		r := row{all: all}
		for line := range strings.Lines(text) {
			line = strings.TrimRight(line, "\n")
			switch {
			case line == "" || line[0] == '#':
				continue
			case line[0] != ' ' && line[0] != '\t':
				if err := r.begin(line); err != nil {
					return nil, err
				}
				continue
			case r.Program == nil:
				return nil, fmt.Errorf("%q belongs to no row", line)
			}
			if err := r.line(strings.TrimSpace(line)); err != nil {
				return nil, fmt.Errorf("row %s: %w", r.Name, err)
			}
		}
	}
	return all, nil
}

// begin reads the line of the names.
func (r *row) begin(line string) error {
	names, looked, ok := strings.Cut(line, ": ") // `:` is a program, too
	if !ok {
		return fmt.Errorf("row %q: no colon", line)
	}
	r.column = ""
	r.Program = &Program{Looked: strings.TrimSpace(looked)}
	r.long = map[string]*Option{}
	for name := range strings.SplitSeq(names, ",") {
		name = strings.TrimSpace(name)
		if r.all[name] != nil || name == "" {
			return fmt.Errorf("row %q: it is there twice, or empty", name)
		}
		if r.Name == "" {
			r.Name = name
		}
		r.Names = append(r.Names, name)
		r.all[name] = r.Program
	}
	return nil
}

// columns are the words that a line may begin with.
var columns = []string{"proved", "edits", "known", "deep", "follows", "changes", "danger", "version",
	"obeys", "starts", "traits", "runs", "subs", "turns", "lists", "unpacks", "shows", "hides", "adds"}

// effects are the columns that mark options of the columns proved, edits and known.
var effects = map[string]Effect{"deep": Deep, "follows": Follows, "changes": Changes, "turns": Turns, "lists": Lists,
	"unpacks": Unpacks, "shows": Shows, "hides": Hides, "adds": Adds}

func (r *row) line(line string) error {
	word, rest, _ := strings.Cut(line, " ")
	if slices.Contains(columns, word) {
		r.column, line = word, strings.TrimSpace(rest)
	}
	switch r.column {
	case "":
		return fmt.Errorf("%q is in no column", line)
	case "danger":
		return r.danger(line)
	case "version":
		r.Version = append(r.Version, strings.Fields(line)...)
		return nil
	case "obeys":
		r.Obeys = append(r.Obeys, strings.Fields(line)...)
		return nil
	case "starts":
		r.Starts = append(r.Starts, strings.Fields(line)...)
		return nil
	case "subs":
		r.subs = append(r.subs, strings.Fields(line)...)
		return r.addTrait("subs")
	case "runs":
		return r.addRuns(line)
	case "traits":
		for trait := range strings.SplitSeq(line, ",") {
			if err := r.addTrait(strings.TrimSpace(trait)); err != nil {
				return err
			}
		}
		return nil
	case "proved":
		r.Reads = true
	case "edits":
		r.Edits = true
	}
	for line != "" {
		end := " "
		if line[0] == '<' {
			end = ">"
		}
		token, rest, _ := strings.Cut(line, end)
		line = strings.TrimSpace(rest)
		if err := r.token(token); err != nil {
			return err
		}
	}
	return nil
}

// traits are the words of the column, and those that other columns make.
var traits = strings.Split("glob,alone,apart,old,first,front,words,digits,expression,whole,names,contents,"+
	"no files,takes files,project,itself,maybe,stays,dashless,assigns,exact,looked past,leads,unsure,shell,"+
	"skips hidden,numbered,language,console,editor,writes,own,held,number,subs,feeds,gives", ",")

func (r *row) addTrait(trait string) error {
	if !slices.Contains(traits, trait) {
		return fmt.Errorf("trait %q has no meaning", trait)
	}
	if !r.Has(trait) {
		r.traits = append(r.traits, trait)
	}
	if trait == "expression" {
		return r.addTrait("words")
	}
	return nil
}

// token reads one token of an option column.
func (r *row) token(token string) error {
	switch {
	case effects[r.column] != 0:
		return r.mark(token, effects[r.column])
	case token == "-N":
		return r.addTrait("number")
	case token[0] == '@':
		return r.include(r.all[token])
	case token[0] == '<':
		return r.operands(strings.Fields(token[1:]))
	case token[0] == '-' || r.Has("words"):
		return r.addOption(token)
	}
	return fmt.Errorf("token %q", token)
}

// include takes all options of another row; what is listed later replaces them.
func (r *row) include(from *Program) error {
	if from == nil {
		return fmt.Errorf("it includes a row that does not stand above it")
	}
	safe := r.column != "known"
	for _, o := range from.allLetters() {
		own := *o
		own.Safe = own.Safe && safe
		r.setLetter(own.Name[1], &own)
	}
	for _, name := range from.order {
		own := *from.long[name]
		own.Safe = own.Safe && safe
		r.setLong(&own)
	}
	if from.Has("number") {
		return r.addTrait("number")
	}
	return nil
}

func (r *row) setLetter(c byte, o *Option) {
	if r.letters == nil {
		r.letters = new([unicode.MaxASCII + 1]*Option)
	}
	r.letters[c] = o
}

func (r *row) setLong(o *Option) {
	if r.long[o.Name] == nil {
		r.order = append(r.order, o.Name)
	}
	r.long[o.Name] = o
}

// operands reads `path`, `path 2`, `path ..1`.
func (r *row) operands(words []string) error {
	o := &r.Proved
	if r.column == "known" {
		o = &r.Operands
	}
	least, most := 0, many
	if len(words) > 1 {
		low, high, isRange := strings.Cut(words[1], "..")
		if !isRange {
			high = low
		}
		var err error
		if low != "" {
			if least, err = strconv.Atoi(low); err != nil {
				return err
			}
		}
		if most, err = strconv.Atoi(high); err != nil {
			return err
		}
	}
	if o.Kind != "" { // what stood before was the first
		if o.First != "" {
			return fmt.Errorf("three kinds of operands")
		}
		o.First, o.Skip = o.Kind, 1
		if o.Max != many {
			o.Skip = o.Max
		}
	}
	o.Kind, o.Min, o.Max = words[0], least, most
	return nil
}

// addOption reads a token of letters, or of one long option.
func (r *row) addOption(token string) error {
	o := Option{Kind: Text, Safe: r.column != "known"}
	name := token
	if i := strings.IndexAny(token[1:], "=~?^"); i >= 0 {
		var rest string
		name, rest = token[:i+1], token[i+1:]
		switch rest[0] {
		case '=':
			o.Takes = Value
		case '~', '?':
			o.Takes = Maybe
		}
		rest, o.Instead = strings.CutSuffix(strings.TrimLeft(rest, "=~?"), "^")
		switch {
		case rest == "2", rest == "2p":
			if o.Takes = Two; rest == "2p" {
				o.Kind = Reads
			}
		case len(rest) == 1 && strings.Contains("twpxcdl", rest):
			o.Kind = Kind(rest[0])
		case rest != "":
			return fmt.Errorf("token %q", token)
		}
	}
	if strings.HasPrefix(name, "--") || r.Has("words") {
		o.Name = name
		if old := r.long[name]; old != nil && old.Safe && !o.Safe {
			return fmt.Errorf("option %s is known and proved", name)
		}
		r.setLong(&o)
		return nil
	}
	letters := name[1:]
	if letters == "" || !isASCII(letters) || o.Takes != Nothing && len(letters) != 1 {
		return fmt.Errorf("token %q", token)
	}
	for i := range len(letters) {
		if old := r.letter(letters[i]); old != nil && old.Safe && !o.Safe {
			return fmt.Errorf("option -%c is known and proved", letters[i])
		}
		each := o
		each.Name = "-" + letters[i:i+1]
		r.setLetter(letters[i], &each)
	}
	return nil
}

// option finds one that is listed.
func (r *row) option(name string) (*Option, error) {
	o := r.long[name]
	if o == nil && len(name) == 2 {
		o = r.letter(name[1])
	}
	if o == nil {
		return nil, fmt.Errorf("option %q does not stand above", name)
	}
	return o, nil
}

// mark reads a column of effects. An option belongs to this row alone from here on.
func (r *row) mark(name string, does Effect) error {
	if name == "always" {
		r.Always |= does
		return nil
	}
	o, err := r.option(name)
	if err != nil {
		return err
	}
	own := *o
	own.Does |= does
	if strings.HasPrefix(name, "--") || r.Has("words") {
		r.long[name] = &own
	} else {
		r.setLetter(name[1], &own)
	}
	return nil
}

// danger reads `D1 -r -f: why`.
func (r *row) danger(line string) error {
	head, why, ok := strings.Cut(line, ": ")
	words := strings.Fields(head)
	if !ok || len(words) == 0 || words[0][0] != 'D' {
		return fmt.Errorf("danger %q", line)
	}
	d := Danger{Clause: words[0], Why: why}
	for _, name := range words[1:] {
		if _, err := r.option(name); err != nil {
			return err
		}
		d.Options = append(d.Options, name)
	}
	r.Danger = append(r.Danger, d)
	return nil
}

func isASCII(s string) bool {
	return strings.IndexFunc(s, func(c rune) bool { return c > unicode.MaxASCII }) < 0
}
