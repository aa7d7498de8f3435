package session

import "slices"

// Choices are what a session has set for itself, never wider than what the operator allows. Zero fields are not set.
type Choices struct {
	ResultCap      int    `json:"result_cap,omitempty"` // runes of one result
	ReadDedup      *bool  `json:"read_dedup,omitempty"`
	GrepMode       string `json:"grep_mode,omitempty"`
	ShellTimeoutMS int    `json:"shell_timeout_ms,omitempty"`
}

// Usual is what holds where a session has chosen nothing.
type Usual struct {
	MaxRunes int // of one result, from the client's profile; 0: no limit of its own
	Prefs    Prefs
}

const (
	// LeastResultCap is the smallest cap that a session may choose, in runes: refusals and what stands around a cut must fit.
	LeastResultCap = 500
	// mostResultCap is the largest where the client's profile has none: no result is longer.
	mostResultCap = 400_000
)

// MostResultCap is the largest cap that a session may choose, in runes.
func (u Usual) MostResultCap() int {
	if u.MaxRunes > 0 {
		return u.MaxRunes
	}
	return mostResultCap
}

// Under returns what holds with these choices. One that was made when the operator or another client allowed more is
// clipped to what is allowed now, and one that no version of this program makes counts for nothing.
func (c Choices) Under(u Usual) Usual {
	if c.ResultCap >= LeastResultCap {
		u.MaxRunes = min(c.ResultCap, u.MostResultCap())
	}
	if c.ReadDedup != nil {
		u.Prefs.ReadDedup = *c.ReadDedup
	}
	if slices.Contains(GrepModes(), c.GrepMode) {
		u.Prefs.GrepMode = c.GrepMode
	}
	if c.ShellTimeoutMS > 0 {
		u.Prefs.ShellDefaultMS = min(c.ShellTimeoutMS, u.Prefs.ShellMaxMS)
	}
	return u
}

// GrepModes are the output modes of searches.
func GrepModes() []string { return []string{"files_with_matches", "content", "count"} }
