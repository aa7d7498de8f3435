package config

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"
)

// period is a duration: Go's syntax, and before it whole days as `d`.
type period struct {
	p        *time.Duration
	min, max time.Duration
	words    []word // that stand for something else
}

// A word stands for a duration that is none.
type word struct {
	text string
	d    time.Duration
}

func (v period) set(in input) error {
	s, isText := in.raw.(string)
	s = strings.TrimSpace(s)
	if i := slices.IndexFunc(v.words, func(w word) bool { return w.text == s }); isText && i >= 0 {
		*v.p = v.words[i].d
		return nil
	}
	d, err := parseDuration(s)
	if err != nil || d < v.min || d > v.max {
		must := "must be "
		for _, w := range v.words {
			if w.text == "" {
				w.text = "empty"
			}
			must += w.text + ", or "
		}
		return fmt.Errorf(`%sa duration from %s to %s, such as "%s"`, must, showDuration(v.min), showDuration(v.max),
			showDuration(example(5*time.Second, *v.p, v.min, v.max)))
	}
	*v.p = d
	return nil
}

// example is an amount that would be accepted: usual, or what holds now, or the nearest to that.
func example[N ~int64](usual, now, least, most N) N {
	if least <= usual && usual <= most {
		return usual
	}
	return max(least, min(most, now))
}

func (v period) text() string {
	for _, w := range v.words {
		if *v.p == w.d {
			return w.text
		}
	}
	return showDuration(*v.p)
}

var errDuration = errors.New("not a duration")

// parseDuration reads `90d`, `1d12h`, and what Go reads. A number of days has no sign and no fraction.
func parseDuration(s string) (time.Duration, error) {
	head, rest, ok := strings.Cut(s, "d")
	if !ok {
		return time.ParseDuration(s)
	}
	days, err := strconv.ParseUint(head, 10, 16)
	if err != nil {
		return 0, errDuration
	}
	total := time.Duration(days) * day
	if rest == "" {
		return total, nil
	}
	if strings.HasPrefix(rest, "-") || strings.HasPrefix(rest, "+") {
		return 0, errDuration
	}
	d, err := time.ParseDuration(rest)
	if err != nil || d > maxDuration-total {
		return 0, errDuration
	}
	return total + d, nil
}

const maxDuration = time.Duration(1<<63 - 1)

// showDuration is d as parseDuration reads it, without the zeros that Go writes.
func showDuration(d time.Duration) string {
	if d > 0 && d%day == 0 && d/day < 1<<16 {
		return strconv.FormatInt(int64(d/day), 10) + "d"
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// size is a number of bytes.
type size struct {
	p        *int64
	min, max int64
}

func (v size) set(in input) error {
	n, err := wholeNumber(in)
	if s, ok := in.raw.(string); ok && err != nil {
		n, err = parseSize(strings.TrimSpace(s))
	}
	if err != nil || n < v.min || n > v.max {
		return fmt.Errorf(`must be a size from %s to %s, such as "%s"`, showSize(v.min), showSize(v.max),
			showSize(example(4*mib, *v.p, v.min, v.max)))
	}
	*v.p = n
	return nil
}

func (v size) text() string { return showSize(*v.p) }

// units of sizes, the largest first.
var units = [...]struct {
	name  string
	bytes int64
}{{"GiB", gib}, {"MiB", mib}, {"KiB", kib}}

// parseSize reads `4MiB`, `4 MiB` and plain bytes.
func parseSize(s string) (int64, error) {
	unit := int64(1)
	for _, u := range units {
		if head, ok := strings.CutSuffix(s, u.name); ok {
			s, unit = strings.TrimSpace(head), u.bytes
			break
		}
	}
	n, err := strconv.ParseUint(s, 10, 63)
	if err != nil || int64(n) > (1<<63-1)/unit {
		return 0, errors.New("not a size")
	}
	return int64(n) * unit, nil
}

func showSize(n int64) string {
	for _, u := range units {
		if n > 0 && n%u.bytes == 0 {
			return strconv.FormatInt(n/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10)
}

// octal is the mode of a file. A number in a file is refused: 600 without quotes would be another mode.
type octal struct{ p *fs.FileMode }

func (v octal) set(in input) error {
	s, _ := in.raw.(string)
	n, err := strconv.ParseUint(strings.TrimPrefix(strings.TrimSpace(s), "0o"), 8, 9)
	if err != nil {
		return errors.New(`must be an octal mode as text, such as "0600"`)
	}
	*v.p = fs.FileMode(n)
	return nil
}

func (v octal) text() string { return fmt.Sprintf("%04o", v.p.Perm()) }

// partly is a choice of which this version has a part. What begins with an entry of later is told apart from a typing
// error, and never repeated: a URL may hold a password.
type partly struct {
	choice
	later []string // words, or the beginnings of URLs up to `://`
}

func (v partly) set(in input) error {
	s, _ := in.raw.(string)
	s = strings.TrimSpace(s)
	if slices.ContainsFunc(v.later, func(l string) bool { return s == l || strings.HasSuffix(l, "://") && strings.HasPrefix(s, l) }) {
		return fmt.Errorf("not in this version; must be one of %s", strings.Join(v.of, ", "))
	}
	return v.choice.set(in)
}
