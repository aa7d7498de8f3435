package session

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Choices are what a session has set for itself, never wider than what the operator allows. Zero fields are not set.
type Choices struct {
	ResultCap      int    `json:"result_cap,omitempty"` // runes of one result
	ReadDedup      *bool  `json:"read_dedup,omitempty"`
	GrepMode       string `json:"grep_mode,omitempty"`
	ShellTimeoutMS int    `json:"shell_timeout_ms,omitempty"`
}

// Usual is what holds where a session has chosen nothing.
type Usual struct {
	Cwd      string
	MaxRunes int // of one result, from the client's profile; 0: no limit of its own
	Prefs    Prefs
}

const (
	// leastResultCap is the smallest cap of results, in runes: a refusal, and what stands around a cut, must fit.
	leastResultCap = 500
	// mostResultCap is the largest where the client's profile has none: no result is longer.
	mostResultCap = 400_000
	// takeBack is the value that takes a choice back.
	takeBack = "default"
)

// The options.
const (
	resultCap    = "result_cap"
	readDedup    = "read_dedup"
	grepMode     = "grep_mode"
	shellTimeout = "shell_timeout_ms"
)

// Under returns what holds with these choices. One that was made when the operator or another client allowed more is
// clipped to what is allowed now, and one that this version of the program does not make counts for nothing.
func (c Choices) Under(u Usual) Usual {
	c = c.known()
	if c.ResultCap != 0 {
		u.MaxRunes = min(c.ResultCap, u.most())
	}
	if c.ReadDedup != nil {
		u.Prefs.ReadDedup = *c.ReadDedup
	}
	if c.GrepMode != "" {
		u.Prefs.GrepMode = c.GrepMode
	}
	if c.ShellTimeoutMS != 0 {
		u.Prefs.ShellDefaultMS = min(c.ShellTimeoutMS, u.Prefs.ShellMaxMS)
	}
	return u
}

// known returns the choices without those that this version of the program does not make.
func (c Choices) known() Choices {
	if c.ResultCap < leastResultCap {
		c.ResultCap = 0
	}
	if !slices.Contains(grepModes(), c.GrepMode) {
		c.GrepMode = ""
	}
	c.ShellTimeoutMS = max(c.ShellTimeoutMS, 0)
	return c
}

// most is the largest cap of results that may be chosen.
func (u Usual) most() int {
	if u.MaxRunes > 0 {
		return u.MaxRunes
	}
	return mostResultCap
}

func grepModes() []string { return []string{"files_with_matches", "content", "count"} }

// An Option is one thing that a session may choose, in words.
type Option struct {
	Key, Value string
	Allowed    string // values
	Chosen     bool   // the session has chosen it
}

// Options returns what may be chosen, with what holds now.
func (c Choices) Options(u Usual) []Option {
	c, now := c.known(), c.Under(u)
	dedup := "off"
	if now.Prefs.ReadDedup {
		dedup = "on"
	}
	return []Option{
		{resultCap, strconv.Itoa(now.most()), fmt.Sprintf("%d to %d characters", leastResultCap, u.most()),
			c.ResultCap != 0},
		{readDedup, dedup, "on, off", c.ReadDedup != nil},
		{grepMode, now.Prefs.GrepMode, strings.Join(grepModes(), ", "), c.GrepMode != ""},
		{shellTimeout, strconv.Itoa(now.Prefs.ShellDefaultMS),
			fmt.Sprintf("1 to %d; for commands without a timeout", now.Prefs.ShellMaxMS), c.ShellTimeoutMS != 0},
	}
}

// What With says.
var (
	ErrOption = errors.New("there is no such option")
	ErrValue  = errors.New("the option does not take this value")
)

// With returns the choices with one of them changed; the value `default` takes it back. The error is ErrOption or
// ErrValue.
func (c Choices) With(u Usual, key, value string) (Choices, error) {
	cleared := value == takeBack
	n, err := strconv.Atoi(value)
	whole := func(least, most int) bool { return cleared || err == nil && n >= least && n <= most }
	var ok bool
	switch key {
	case resultCap:
		c.ResultCap, ok = n, whole(leastResultCap, u.most())
	case readDedup:
		on := value == "on"
		c.ReadDedup, ok = &on, on || value == "off"
		if cleared {
			c.ReadDedup, ok = nil, true
		}
	case grepMode:
		c.GrepMode, ok = value, slices.Contains(grepModes(), value)
		if cleared {
			c.GrepMode, ok = "", true
		}
	case shellTimeout:
		c.ShellTimeoutMS, ok = n, whole(1, u.Prefs.ShellMaxMS)
	default:
		return c, ErrOption
	}
	if !ok {
		return c, ErrValue
	}
	return c, nil
}

// Fixed says whether a name is that of something that the operator sets and no session: a key of the configuration in
// any of its spellings, or one of its sections.
func Fixed(name string) bool {
	name = strings.ToLower(strings.TrimSpace(name))
	if strings.Contains(name, ".") || strings.HasPrefix(name, "--") || strings.HasPrefix(name, "codehand_") {
		return true
	}
	first, _, _ := strings.Cut(strings.ReplaceAll(name, "-", "_"), "_")
	return slices.Contains(strings.Fields(guards), first) || slices.Contains(strings.Fields(sections), name)
}

// The words of the configuration. What begins with one of the guards is about what a session may do, however it goes
// on.
const (
	guards   = "permission permissions sandbox root roots hook hooks mode auth allow deny ask state"
	sections = "tools profile deferral skills tasks git read edit write list grep shell web agent agents plan lsp " +
		"mcp protocol stdio client " +
		"search log http console session store cluster audit metrics principals results journal output"
)
