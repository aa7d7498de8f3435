package screen

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// cursorKeys have another sequence where the program has asked for it.
var cursorKeys = map[string]byte{"up": 'A', "down": 'B', "right": 'C', "left": 'D', "home": 'H', "end": 'F'}

// keys are all others with a name, in lower case.
var keys = map[string]string{
	"enter": "\r", "return": "\r", "tab": "\t", "shift-tab": "\x1b[Z", "esc": "\x1b", "escape": "\x1b",
	"backspace": "\x7f", "space": " ", "insert": "\x1b[2~", "delete": "\x1b[3~", "pageup": "\x1b[5~",
	"pagedown": "\x1b[6~",
	"f1":       "\x1bOP", "f2": "\x1bOQ", "f3": "\x1bOR", "f4": "\x1bOS", "f5": "\x1b[15~", "f6": "\x1b[17~",
	"f7": "\x1b[18~", "f8": "\x1b[19~", "f9": "\x1b[20~", "f10": "\x1b[21~", "f11": "\x1b[23~", "f12": "\x1b[24~",
}

// Key returns what a terminal sends for a key: Enter, Tab, Shift-Tab, Esc, Backspace, Delete, Insert, Space, Up, Down,
// Left, Right, Home, End, PageUp, PageDown, F1 to F12, Ctrl-A to Ctrl-Z and Ctrl with one of @[\]^_, Alt-x, in any
// letter case. ok is false for another name.
func (s *Screen) Key(name string) (sent string, ok bool) {
	s.mu.Lock()
	application := s.modes[ansi.ModeCursorKeys]
	s.mu.Unlock()
	if rest, is := cutPrefix(name, "alt-"); is {
		if runes := []rune(rest); len(runes) == 1 {
			return "\x1b" + rest, true
		}
		sent, ok = key(rest, application)
		return "\x1b" + sent, ok
	}
	return key(name, application)
}

// KnownKey says whether Key knows a name.
func KnownKey(name string) bool {
	_, ok := (&Screen{}).Key(name)
	return ok
}

func key(name string, application bool) (string, bool) {
	low := strings.ToLower(name)
	if letter, is := cursorKeys[low]; is {
		if application {
			return "\x1bO" + string(letter), true
		}
		return "\x1b[" + string(letter), true
	}
	if rest, is := cutPrefix(low, "ctrl-"); is && len(rest) == 1 {
		switch c := rest[0]; {
		case 'a' <= c && c <= 'z':
			return string(c - 'a' + 1), true
		case strings.IndexByte(`@[\]^_`, c) >= 0:
			return string(c - '@'), true
		}
		return "", false
	}
	sent, ok := keys[low]
	return sent, ok
}

// cutPrefix cuts a prefix in any letter case, also where a + stands for the hyphen.
func cutPrefix(name, prefix string) (string, bool) {
	n := len(prefix)
	if len(name) <= n || !strings.EqualFold(strings.Replace(name[:n], "+", "-", 1), prefix) {
		return name, false
	}
	return name[n:], true
}
