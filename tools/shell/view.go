package shell

import (
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// A View is what a command line shows that does nothing but print lines of one file.
type View struct {
	Program string // cat, head, tail, sed
	First   int    // of sed: the line that it begins with
	Path    string // as written, without quotes
}

// ViewOf takes `cat F`, `head [-n N] F`, `tail [-n N] F` and `sed -n X,Yp F` apart; ok is false for every other text,
// and for words that mean something else than themselves to any shell. It runs nothing: that the command printed these
// lines is for the caller to see.
func ViewOf(command string) (v View, ok bool) {
	m := viewForms().FindStringSubmatch(command)
	if m == nil {
		return View{}, false
	}
	v = View{Program: m[1] + m[2] + m[3], Path: m[7] + m[8] + m[9]}
	v.First, _ = strconv.Atoi(m[4] + m[5] + m[6]) // of a number that is too large, the largest
	return v, !strings.HasPrefix(v.Path, "-")
}

var viewForms = sync.OnceValue(func() *regexp.Regexp {
	const (
		sed   = `(sed)[ \t]+-n[ \t]+(?:([0-9]+),[0-9]+p|'([0-9]+),[0-9]+p'|"([0-9]+),[0-9]+p")`
		plain = `[\pL\pN_./@%+][\pL\pN_./@%+,:=-]*`
		word  = `(?:(` + plain + `)|'([^'\n]+)'|"([^"$\x60\\!\n]+)")`
	)
	return regexp.MustCompile(`^[ \t]*(?:(cat)|(head|tail)(?:[ \t]+-n[ \t]+[0-9]+)?|` + sed + `)[ \t]+` + word +
		`[ \t]*$`)
})
