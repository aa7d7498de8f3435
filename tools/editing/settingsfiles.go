package editing

import (
	"strings"

	"codehand/tools/tool"
	"codehand/tools/wording"
)

// A brokenError says that a change would leave settings that the program which they are for could not read.
type brokenError struct {
	reason error
	text   string // the same without paths
}

func (e *brokenError) Error() string {
	return "the settings file would be invalid: " + e.reason.Error()
}

func (e *brokenError) Unwrap() error { return e.reason }

// CheckSettings is the last check of a new content: of a file of settings it must be one that can be read. The error is
// for Guard.Refusal.
func CheckSettings(env tool.Env, before, after []byte, paths ...string) error {
	reason := env.Settings.Break(before, after, paths...)
	if reason == nil {
		return nil
	}
	text := reason.Error()
	for _, path := range paths { // which the refusal names
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
