package skills_test

import (
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"codehand/tools/skills"
)

// written shows commands as what is between << and >>, unsafe ones with !.
func written(t testing.TB, s skills.Skill, body, args string) string {
	t.Helper()
	r, err := skills.Render(s, body, skills.Arguments{Text: args, Project: "/p", Session: "i"})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, part := range r {
		switch {
		case part.Unsafe:
			b.WriteString("<<! " + part.Text + ">>")
		case part.Command:
			b.WriteString("<<" + part.Text + ">>")
		default:
			b.WriteString(part.Text)
		}
	}
	return b.String()
}

func TestSubstitution(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ body, args, want string }{
		{"<$ARGUMENTS>", `a "b c"`, `<a "b c">`},
		{"<$ARGUMENTS> $0", "", "<> $0"},
		{"$0 $1 $2", `a "b c"`, "a b c $2"},
		{"$ARGUMENTS[1]$ARGUMENTS[0]$ARGUMENTS[2]", "a b", "ba$ARGUMENTS[2]"},
		{"$ARGUMENTS[x] $ARGUMENTS[]", "a", "a[x] a[]"},
		{"$ARGUMENTS_ALL $ARGUMENTSX", "a", "$ARGUMENTS_ALL $ARGUMENTSX\n\nARGUMENTS: a\n"},
		{"$0x $0_ $0é $0, $00", "a", "$0x $0_ aé a, a"},
		{"$99999999999999999999 $0", "a", "$99999999999999999999 a"},
		{`\$0 \$ARGUMENTS \$ARGUMENTS[0] \$name \$x \\$0 \`, "a", `$0 $ARGUMENTS $ARGUMENTS[0] $name \$x \$0 \` + "\n\nARGUMENTS: a\n"},
		{"$name-$name-two.$name_x $names", "A B", "A-B.$name_x $names"},
		{"<$late>", "A B", "<>\n\nARGUMENTS: A B\n"},
		{"<$late> $0", "A B", "<> A"},
		{"$0 $1", `$1 $0`, "$1 $0"},
		{"$0", `'$ARGUMENTS ${CLAUDE_SESSION_ID}'`, "$ARGUMENTS ${CLAUDE_SESSION_ID}"},
		{"${CLAUDE_PROJECT_DIR} ${CODEHAND_SESSION_ID} ${CLAUDE_SKILL_DIR}", "", "/p i /s"},
		{"${CLAUDE_PROJECT_DIR", "", "${CLAUDE_PROJECT_DIR"},
		{"$", "a", "$\n\nARGUMENTS: a\n"},
		{"", "a", "ARGUMENTS: a\n"},
		{"text\n\n\n", "a", "text\n\nARGUMENTS: a\n"},
		{"text\n", " \n", "text\n"},
		{"!`x`", "a", "<<x>>\n\nARGUMENTS: a\n"},
		// How arguments are split.
		{"$0|$1|$2", `a\ b "c\"d" 'e\f'`, `a b|c"d|e\f`},
		{"$0|$1|$2", `don't stop here`, `don't|stop|here`},
		{"$0|$1|$2", `a "b c`, `a|"b|c`},
		{"$0|$1|$2", `"" 'a'"b" c`, "|ab|c"},
		{"$0|$1", "a\tb\n", "a|b"},
		{"$0", `\`, `\`},
	} {
		s := skills.Skill{Dir: "/s", Arguments: []string{"name", "name-two", "x-", "ARGUMENTS", "0"}}
		if strings.Contains(c.body, "late") {
			s.Arguments = []string{"a", "b", "late"}
		}
		if got := written(t, s, c.body, c.args); got != c.want {
			t.Errorf("%q with %q:\ngot  %q\nwant %q", c.body, c.args, got, c.want)
		}
	}
}

func TestBlocks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ body, want string }{
		{"!`a`", "<<a>>"},
		{"- x: !`a b` and !`c`.\n", "- x: <<a b>> and <<c>>.\n"},
		{"\t!`a`", "\t<<a>>"},
		{"x!`a` =!`b` (!`c`)", "x!`a` =!`b` (!`c`)"},
		{"!`` !` ` !` !``a`` !`a``", "!`` !` ` !` !``a`` !`a``"},
		{"!`a\nb`", "!`a\nb`"},
		{"`` !`a` `` and `!` !`b`", "`` !`a` `` and `!` <<b>>"},
		{"``` !`a` ``` !`b`", "``` !`a` ``` <<b>>"},
		{"an open ` here !`a` x", "an open ` here !`a` x"},
		{"```!\na\n```", "<<a>>"},
		{"x\n```!\na\nb\n```\ny", "x\n<<a\nb>>\ny"},
		{"````!\na\n```\nb\n````\n", "<<a\n```\nb>>\n"},
		{"```!\n\n```\n", "```!\n\n```\n"},
		{"```!\nnever closed\n!`a`\n", "```!\nnever closed\n!`a`\n"},
		{"``` !\na\n```\n", "<<a>>\n"},
		{"```!sh\na\n```\n", "```!sh\na\n```\n"},
		{"~~~!\na\n~~~\n", "~~~!\na\n~~~\n"},
		{"```sh\n!`a`\n~~~\n```\n!`b`", "```sh\n!`a`\n~~~\n```\n<<b>>"},
		{"````\n```!\na\n```\n````\n", "````\n```!\na\n```\n````\n"},
		{"~~~\n!`a`", "~~~\n!`a`"},
		{"  ```!\n    a\n  b\n  ```\n", "<<a\nb>>\n"},
	} {
		if got := written(t, skills.Skill{}, c.body, ""); got != c.want {
			t.Errorf("%q:\ngot  %q\nwant %q", c.body, got, c.want)
		}
	}
}

// An argument in a command is data, or the command does not run.
func TestArgumentsInCommands(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ command, args, want string }{
		{"gh issue view $0", "123", "<<gh issue view 123>>"},
		{"gh issue view $0", "'a b'", "<<gh issue view 'a b'>>"},
		{"grep \"$0\" x", "'a b'", "<<grep \"a b\" x>>"},
		{"grep '$0' x", "'a b'", "<<grep 'a b' x>>"},
		{"git log $ARGUMENTS", "--oneline 'a b' c", "<<git log --oneline 'a b' c>>"},
		{"git log --grep=\"$ARGUMENTS\"", "fix it", "<<git log --grep=\"fix it\">>"},
		{"x $ARGUMENTS", "", "<<x >>"},
		{"x $3 $0", "a", "<<x $3 a>>"},
		{`awk '{print \$1}' $0`, "f", "<<awk '{print $1}' f>>"},
		{`echo \\$0 $0`, "a", `<<echo \$0 a>>`},
		{"x $0>out", "2", "<<x '2'>out>>"},
		{"x <$0", "2", "<<x <'2'>>"},
		{"$0 ls", "A=1", "<<'A=1' ls>>"},
		{"x $0$1", "a b", "<<x 'a'b>>"},
		{"x $0", "#a", "<<! x $0>>"},
		{"x $0", "~", "<<! x $0>>"},
		{"x -n=$0", "a/b.c", "<<x -n=a/b.c>>"},
		{"x ${CLAUDE_SKILL_DIR}/a ${CLAUDE_PROJECT_DIR}", "", "<<x '/s k/a b'/a /p>>"},
		{"x $first", "", "<<x >>"},
		{"x $0", "überall 名前", "<<x 'überall'>>"},
		{"x $0", "'a;b'", "<<! x $0>>"},
		{"x $0", "'$(b)'", "<<! x $0>>"},
		{"x \"$0\"", "'a`b`'", "<<! x \"$0\">>"},
		{"x '$0'", "\"'; b '\"", "<<! x '$0'>>"},
		{"x '$0'", "a\\\nb", "<<! x '$0'>>"},
		{"x $ARGUMENTS", "a 'b|c'", "<<! x $ARGUMENTS>>"},
		{"x \"$ARGUMENTS\"", "'a b'", "<<! x \"$ARGUMENTS\">>"},
		{"x $0 $1", "a '*'", "<<! x $0 $1>>"},
		{"x {$0}", "a,b", "<<x {'a,b'}>>"},
		{"x", "'a;b'", "<<x>>\n\nARGUMENTS: 'a;b'\n"},
		{"bash -c \"ls $0\"", "'x; rm y'", "<<! bash -c \"ls $0\">>"},
	} {
		s := skills.Skill{Dir: "/s k/a b", Arguments: []string{"first"}}
		for _, body := range []string{"!`" + c.command + "`", "```!\n" + c.command + "\n```"} {
			if strings.Contains(c.command, "`") {
				continue
			}
			if got := written(t, s, body, c.args); got != c.want {
				t.Errorf("%q with %q:\ngot  %q\nwant %q", body, c.args, got, c.want)
			}
		}
	}
	odd := skills.Skill{Dir: "/w/$(touch x)"}
	if got := written(t, odd, "!`x ${CLAUDE_SKILL_DIR}`", ""); got != "<<! x ${CLAUDE_SKILL_DIR}>>" {
		t.Errorf("a directory's name became code: %q", got)
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	render := func(body, args string) skills.Rendering {
		r, err := skills.Render(skills.Skill{}, body, skills.Arguments{Text: args})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	r := render("a !`b $0`\n!`c`\n", "x")
	if got := r.Commands(); !slices.Equal(got, []string{"b x", "c"}) {
		t.Errorf("commands %q", got)
	}
	got, err := r.Text(nil)
	if want := "a " + skills.Disabled + "\n" + skills.Disabled + "\n"; err != nil || got != want {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
	// Output is text: neither a placeholder nor a command.
	got, err = r.Text(func(c string) (string, error) { return "$0 !`" + c + "`\n\n", nil })
	if want := "a $0 !`b x`\n$0 !`c`\n"; err != nil || got != want {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
	errDenied := errors.New("denied")
	ran := 0
	_, err = r.Text(func(string) (string, error) { ran++; return "", errDenied })
	if !errors.Is(err, errDenied) || ran != 1 {
		t.Errorf("got %v after %d commands", err, ran)
	}
	// Nothing runs when one must not.
	never := func(c string) (string, error) { t.Errorf("%q ran", c); return "", nil }
	unsafe := render("!`a`\n!`b $0`", ";")
	if _, err := unsafe.Text(never); !errors.Is(err, skills.ErrUnsafe) {
		t.Errorf("got %v, want ErrUnsafe", err)
	}
	if got, err := unsafe.Text(nil); err != nil || got != skills.Disabled+"\n"+skills.Disabled {
		t.Errorf("got %q, %v", got, err)
	}
	many := render(strings.Repeat("!`a`\n", 51), "")
	if _, err := many.Text(never); !errors.Is(err, skills.ErrTooMany) {
		t.Errorf("got %v, want ErrTooMany", err)
	}
	if _, err := many.Text(nil); err != nil {
		t.Error(err)
	}
}

// A megabyte that asks for everything a hundred thousand times does not become a gigabyte, and no text takes the square of
// its length.
func TestRenderIsBounded(t *testing.T) {
	t.Parallel()
	args := strings.Repeat("word ", 2000)
	for _, unit := range []string{"$ARGUMENTS ", "!`x $ARGUMENTS`\n", "```!\nx $ARGUMENTS\n```\n"} {
		_, err := skills.Render(skills.Skill{}, strings.Repeat(unit, (1<<20)/len(unit)), skills.Arguments{Text: args})
		if !errors.Is(err, skills.ErrTooLarge) {
			t.Errorf("%q: got %v, want ErrTooLarge", unit, err)
		}
	}
	runs := ""
	for i := range 700 {
		runs = strings.Repeat("`", i+1) + " " + runs
	}
	for _, body := range []string{
		strings.Repeat("${", 1<<17), strings.Repeat("$", 1<<18), strings.Repeat("`", 1<<18), strings.Repeat("!` ", 1<<16), runs,
		strings.Repeat("```\n", 1<<16), strings.Repeat("$9999", 1<<15), strings.Repeat(" !`a", 1<<16), "```!\n" + strings.Repeat("$", 1<<18) + "\n```",
	} {
		r, err := skills.Render(skills.Skill{}, body, skills.Arguments{})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := r.Text(nil); err != nil || len(r.Commands()) == 0 && got != body {
			t.Errorf("a text of %d bytes that begins %.10q changed: %v", len(body), body, err)
		}
	}
}

var search = regexp.MustCompile(`\\?\$(\{(CLAUDE|CODEHAND)_(SKILL_DIR|PROJECT_DIR|SESSION_ID)\}|ARGUMENTS\[[0-9]+\]|ARGUMENTS\b|[0-9]+\b|(name|n)\b)`)

// bySearch is the substitution of a text without commands as a search for everything at once, for the skill of FuzzRender.
func bySearch(body, args string) string {
	words, took := skills.Words(args), false
	out := search.ReplaceAllStringFunc(body, func(found string) string {
		if literal, ok := strings.CutPrefix(found, `\`); ok {
			return literal
		}
		key := strings.TrimPrefix(found, "$")
		switch key {
		case "ARGUMENTS":
			took = true
			return args
		case "name", "n":
			if i := map[string]int{"name": 0, "n": 1}[key]; i < len(words) {
				took = true
				return words[i]
			}
			return ""
		}
		if strings.HasPrefix(key, "{") {
			return map[byte]string{'K': "/s", 'R': "/p", 'E': "i"}[key[strings.IndexByte(key, '_')+2]]
		}
		n, err := strconv.Atoi(strings.Trim(key, "ARGUMENTS[]"))
		if err != nil || n >= len(words) {
			return found
		}
		took = true
		return words[n]
	})
	if took || strings.TrimSpace(args) == "" {
		return out
	}
	if out = strings.TrimRight(out, "\n"); out != "" {
		out += "\n\n"
	}
	return out + "ARGUMENTS: " + args + "\n"
}

func FuzzRender(f *testing.F) {
	f.Add("a $ARGUMENTS b !`c $0` $name", "x 'y z'")
	f.Add("```!\nc $0 \"$1\" '$ARGUMENTS'\n```\n", "; rm")
	f.Add("\\$0 ${CLAUDE_SKILL_DIR} $ARGUMENTS[1]", "$0 !`x`")
	f.Add("~~~\n```!\n$0\n", "a\\")
	f.Fuzz(func(t *testing.T, body, args string) {
		s := skills.Skill{Dir: "/s", Arguments: []string{"name", "n"}}
		r, err := skills.Render(s, body, skills.Arguments{Text: args, Project: "/p", Session: "i"})
		if err != nil {
			if !errors.Is(err, skills.ErrTooLarge) || len(body)*(len(args)+16) < 1<<20 {
				t.Fatalf("%d bytes with %d: %v", len(body), len(args), err)
			}
			return
		}
		if !strings.Contains(body, "`") {
			if got, want := written(t, s, body, args), bySearch(body, args); got != want {
				t.Errorf("%q with %q became %q, want %q", body, args, got, want)
			}
		}
		// What arguments look like makes no command.
		neutral, err := skills.Render(s, body, skills.Arguments{Project: "/p", Session: "i"})
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Commands()) != len(neutral.Commands()) {
			t.Errorf("%q with %q has %q, without %q", body, args, r.Commands(), neutral.Commands())
		}
		// What a shell gives a meaning to comes from the file alone.
		for _, part := range r {
			if !part.Command || part.Unsafe {
				continue
			}
			for _, c := range ";|&<>()`{}[]*?!~#^\\\"\n" {
				if strings.Count(part.Text, string(c)) > strings.Count(body, string(c)) {
					t.Errorf("%q with %q made the command %q", body, args, part.Text)
				}
			}
		}
	})
}
