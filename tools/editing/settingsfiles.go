package editing

import (
	"strings"

	"codehand/tools/tool"
	"codehand/tools/wording"
)

// A brokenError says that a change would make a settings file unreadable for its program.
type brokenError struct {
	reason error
	text   string // the same without paths
}

func (e *brokenError) Error() string {
	return "the settings file would be invalid: " + e.reason.Error()
}

func (e *brokenError) Unwrap() error { return e.reason }

// CheckSettings checks a new content last: a settings file of a client must stay readable. The error is for
// Guard.Refusal.
func CheckSettings(env tool.Env, before, after []byte, paths ...string) error {
	reason := env.Settings.Break(before, after, paths...)
	if reason == nil {
		return nil
	}
	text := reason.Error()
	for _, path := range paths { // the refusal names the path itself
		text = strings.ReplaceAll(text, path+":", "")
	}
	return &brokenError{reason, text}
}

// settingsRefusal answers a *brokenError.
func settingsRefusal(path string, e *brokenError) error {
	r := numbered(tool.SettingsInvalid, 11, e)
	r.Text = "The change would make the settings in " + path + " invalid: " + wording.Clip(e.text, 300) +
		". Nothing was written. Make the whole change in one call."
	return r
}
