package shell

import (
	"math"
	"testing"
)

func TestViewOf(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]View{
		"cat f":                            {Program: "cat", Path: "f"},
		"\tcat  ./a-b/c,d:e=1.txt\t":       {Program: "cat", Path: "./a-b/c,d:e=1.txt"},
		"cat /a/ü":                         {Program: "cat", Path: "/a/ü"},
		"cat 'a b$c`\\'":                   {Program: "cat", Path: "a b$c`\\"},
		`cat "a b'c"`:                      {Program: "cat", Path: "a b'c"},
		"head f":                           {Program: "head", Path: "f"},
		"head -n 5 f":                      {Program: "head", Path: "f"},
		"tail -n 5 'f'":                    {Program: "tail", Path: "f"},
		"sed -n 3,9p f":                    {Program: "sed", First: 3, Path: "f"},
		"sed -n '3,9p' f":                  {Program: "sed", First: 3, Path: "f"},
		`sed -n "3,9p" f`:                  {Program: "sed", First: 3, Path: "f"},
		"sed -n 99999999999999999999,9p f": {Program: "sed", First: math.MaxInt, Path: "f"},
	} {
		if got, ok := ViewOf(command); !ok || got != want {
			t.Errorf("%q: %+v, %v", command, got, ok)
		}
	}
	for _, command := range []string{
		"", "cat", "cat ", "cat -", "cat '-'", "cat -n", "cat '-n'", "cat f g", "cat ~/f", "cat f*", "cat f?", "cat [f]", "cat {f,}", "cat f\\ g", "cat f#",
		"cat #f", "cat $f", `cat "$f"`, "cat \"`f`\"", `cat "a\b"`, `cat "!f"`, "cat !f", "cat f;", "cat f|cat", "cat f&", "cat <f", "cat >f", "cat f>g", "cat (f)",
		"cat f\n", "\ncat f", "cat f\ncat g", "cat 'f\ng'", "cat 'f'g", "cat 'f'''", "cat ''", "cats f", "xcat f", "/bin/cat f", "A=1 cat f", "! cat f", "head -n f",
		"head -n -5 f", "head -n5 f", "head -5 f", "tail -n +5 f", "tail -f f", "head -c 5 f", "sed 3,9p f", "sed -n 3p f", "sed -n 3,$p f", "sed -n '3,9p;w x' f",
		"sed -n '3,9p f", "sed -n 3,9p", "sed -ni 3,9p f", "sed -n 3,9!p f", "more f", "less f", "cat\u00a0f",
	} {
		if got, ok := ViewOf(command); ok {
			t.Errorf("%q: %+v", command, got)
		}
	}
}
