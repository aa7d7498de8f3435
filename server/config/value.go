package config

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strconv"
	"strings"

	"codehand/tools/permission"
)

// An input is one value as a source wrote it, before it has a meaning.
type input struct {
	raw     any      // string, int64, bool or []any from a file; string from flags and environment
	origin  string   // of the whole
	lines   []string // origins of the entries of a list, if the source knows them
	ruleDir string   // what `/x` in a rule of a project is relative to; "": each root
	base    string   // what a relative path is relative to; "": refused
	home    string
	file    bool // from a file: types are meant as written
}

// A value checks an input and stores it in the Config that the table is bound to.
type value interface {
	set(in input) error
	text() string // as a flag would take it
}

// A ranked value can be compared with another one of the same setting: the smaller rank is the stricter one.
type ranked interface{ rank() int }

// number is a whole number from min to max. With zeroIsNone, 0 means that there is no limit.
type number struct {
	p          *int
	min, max   int
	zeroIsNone bool
}

func (v number) set(in input) error {
	n, err := wholeNumber(in)
	if err != nil || n < int64(v.min) || n > int64(v.max) {
		return fmt.Errorf("must be a whole number from %d to %d", v.min, v.max)
	}
	*v.p = int(n)
	return nil
}

func wholeNumber(in input) (int64, error) {
	switch raw := in.raw.(type) {
	case int64:
		return raw, nil
	case string:
		if !in.file {
			return strconv.ParseInt(strings.TrimSpace(raw), 10, 64)
		}
	}
	return 0, errors.New("not a number")
}

func (v number) text() string { return strconv.Itoa(*v.p) }

func (v number) rank() int {
	if v.zeroIsNone && *v.p == 0 {
		return math.MaxInt
	}
	return *v.p
}

// toggle is true or false.
type toggle struct{ p *bool }

func (v toggle) set(in input) error {
	b, ok := in.raw.(bool)
	if s, isText := in.raw.(string); isText && !in.file {
		parsed, err := strconv.ParseBool(strings.TrimSpace(s))
		b, ok = parsed, err == nil
	}
	if !ok {
		return errors.New("must be true or false")
	}
	*v.p = b
	return nil
}

func (v toggle) text() string { return strconv.FormatBool(*v.p) }

// rank: what switches something on is the looser value.
func (v toggle) rank() int {
	if *v.p {
		return 1
	}
	return 0
}

// choice is one of a few words, the strictest first.
type choice struct {
	p  *string
	of []string
}

func (v choice) set(in input) error {
	s, ok := in.raw.(string)
	if !ok || !slices.Contains(v.of, strings.TrimSpace(s)) {
		return fmt.Errorf("must be one of %s%s", strings.Join(v.of, ", "), meant(s, v.of))
	}
	*v.p = strings.TrimSpace(s)
	return nil
}

func (v choice) text() string { return *v.p }
func (v choice) rank() int    { return slices.Index(v.of, *v.p) }

// profile is a choice of tools.
type profile struct{ choice }

// rank: neither of the small profiles is a part of the other one, so a project puts none in the place of the other.
func (v profile) rank() int {
	if *v.p == "default" {
		return 1
	}
	return 0
}

// mode is a permission mode.
type mode struct{ p *permission.Mode }

func (v mode) set(in input) error {
	s, ok := in.raw.(string)
	if !ok {
		return errors.New("must be the name of a mode")
	}
	m, err := permission.ParseMode(strings.TrimSpace(s))
	if err != nil {
		return fmt.Errorf("%w%s", err, meant(s, modeNames()))
	}
	*v.p = m
	return nil
}

func (v mode) text() string { return v.p.String() }

// modeNames are those of all modes.
func modeNames() []string {
	var names []string
	for m := permission.Default; m <= permission.Auto; m++ { // the last of them
		names = append(names, m.String())
	}
	return names
}

// rank is not quite the order of permission.Mode.AtMost: a project puts neither of dontAsk and plan in the place of the
// other. dontAsk runs what rules allow, and plan can be left by the user's approval.
func (v mode) rank() int {
	order := []permission.Mode{permission.Plan, permission.Default, permission.AcceptEdits, permission.Auto,
		permission.Bypass}
	return max(slices.Index(order, *v.p), 0)
}

// level is how much is logged.
type level struct{ p *slog.Level }

var levels = [...]slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError}

// levelNames are the words for levels. They never change.
var levelNames = []string{"debug", "info", "warn", "error"}

func (v level) set(in input) error {
	s, _ := in.raw.(string)
	for _, l := range levels {
		if strings.EqualFold(strings.TrimSpace(s), l.String()) {
			*v.p = l
			return nil
		}
	}
	return fmt.Errorf("must be one of %s%s", strings.Join(levelNames, ", "), meant(s, levelNames))
}

func (v level) text() string { return strings.ToLower(v.p.String()) }

// text is any text.
type text struct{ p *string }

func (v text) set(in input) error {
	s, ok := in.raw.(string)
	if !ok || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' }) {
		return errors.New("must be a text in one line")
	}
	*v.p = s
	return nil
}

func (v text) text() string { return *v.p }
