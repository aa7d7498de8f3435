package bash

import (
	"fmt"
	"testing"
)

// Where a command discards content, the places are known, or it may be anywhere.
func TestLosses(t *testing.T) {
	t.Parallel()
	anywhere := Loss{Deep: true}
	for command, want := range map[string][]Loss{
		"rm -f one.log":                 {{Path: "one.log"}},
		"rm -rf a 'b c' /x/d":           {{Path: "a", Deep: true}, {Path: "b c", Deep: true}, {Path: "/x/d", Deep: true}},
		"rm -f *.log":                   {{Path: "*.log", Glob: true}},
		"rm -f [!a]*":                   {{Path: "[^a]*", Glob: true}},
		"rm -f {a,b}.log":               {{Path: "a.log"}, {Path: "b.log"}},
		"rm -f x{1..9}":                 {{}},
		"rm -rf **/x":                   {anywhere},
		`rm -rf "$X"`:                   {anywhere},
		`rm -f "$X"`:                    {{}},
		`rm -f a\*`:                     {{Path: "a*"}},
		"shopt -s dotglob; rm -f *":     {anywhere},
		"cd sub && rm -f a":             {{Path: "sub/a"}},
		"cd $X; rm -f a":                {{}, {Path: "a"}},
		"cd sub; rm -f a":               {{Path: "sub/a"}, {Path: "a"}},
		"env -i X=1 rm -f a":            {{Path: "a"}},
		"timeout 5 rm -rf a":            {{Path: "a", Deep: true}},
		"ls | xargs rm -rf":             {anywhere},
		"rm -rf --what a":               {anywhere},
		"find src -name '*.o' -delete":  {{Path: "src"}},
		"find . -delete":                {{Path: ".", Deep: true}},
		"find . ! -name x -delete":      {{Path: ".", Deep: true}},
		"find -name x -exec rm -f {} +": {{Path: "."}},
		"truncate -s 0 a.log b.log":     {{Path: "a.log"}, {Path: "b.log"}},
		"shred a.txt":                   {{Path: "a.txt"}},
		"dd if=/dev/zero of=img bs=1M":  {{Path: "img"}},
		"git reset --hard":              {{Path: ".", Tree: true}},
		"git -C sub reset --hard HEAD~": {{Path: "sub", Tree: true}},
		"git --git-dir=x reset --hard":  {anywhere},
		"git checkout -- f g":           {{Path: "f"}, {Path: "g"}},
		"git checkout -- '*.go'":        {{Path: ".", Tree: true}},
		"git checkout -- :/x":           {{Path: ".", Tree: true}},
		"git checkout .":                {{Path: ".", Tree: true}},
		"git checkout -f main":          {{Path: ".", Tree: true}},
		"git restore f":                 {{Path: "f"}},
		"git restore .":                 {{Path: "."}},
		"git stash clear":               {{Path: ".", Stash: true}},
		"git -C sub stash drop":         {{Path: "sub", Stash: true}},
		"git -C $X stash drop":          {anywhere},
		"git clean -fdx":                {{Path: ".", Tree: true}},
		"git clean -ffdx":               {{Path: ".", Tree: true, Deep: true}},
		"git clean -f -f":               {{Path: ".", Tree: true, Deep: true}},
		"rm -f a; git clean -fd":        {{Path: "a"}, {Path: ".", Tree: true}},
		"rm -f a && git push --force":   nil,
		"rm a":                          nil,
		"make":                          nil,
	} {
		a := Analyze(command, inRoot)
		if a.Losses() != nil {
			t.Errorf("%q: losses though nothing holds it", command)
		}
		a.Hold()
		if got := a.Losses(); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%q loses %+v, want %+v", command, got, want)
		}
		class := a.Class
		a.Keep("it is too large")
		if a.Class != class {
			t.Errorf("%q: %s, want %s as before", command, a.Class, class)
		}
		if a.Keep(""); len(want) > 0 && (a.Class != Writes || !a.Kept) || len(want) == 0 && a.Kept {
			t.Errorf("%q kept: %s, %v", command, a.Class, a.Kept)
		}
	}
}
