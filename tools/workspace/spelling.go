package workspace

import (
	"errors"
	"net/url"
	"path/filepath"
	"runtime"
	"strings"
)

// Limits of a path. Linux has the same for bytes (PATH_MAX, NAME_MAX); what is longer cannot exist anywhere we run. The
// limit of components is ours: a path is resolved one component at a time, and what has more is no work of a person.
const (
	maxPathBytes      = 4096
	maxComponentBytes = 255
	maxComponents     = 256
)

const onWindows = runtime.GOOS == "windows"

// Abs returns path absolute and clean: `~` expanded, `file://` URLs decoded, the cwd joined. It does not touch the
// disk. A spelling that Open refuses comes back unchanged, so that Open can refuse it. Abs of its own result is that
// result.
func (s *Space) Abs(path string) string {
	abs, err := s.spell(path)
	if err != nil {
		return path
	}
	return abs
}

// Refused says why Open would refuse the text of path, whatever is on the disk: ErrSpelling or an *InvalidError. nil:
// it would look for it. It does not touch the disk.
func (s *Space) Refused(path string) error {
	_, err := s.spell(path)
	return err
}

// NamesDir says that by its text alone path can only be a directory: it ends in a slash, or in `.` or `..` behind one.
// Abs drops that end. A spelling that Open refuses names nothing. It does not touch the disk.
func (s *Space) NamesDir(path string) bool {
	if s.Refused(path) != nil {
		return false
	}
	text, err := decodeURL(path, onWindows)
	if err != nil {
		return false
	}
	slash := func(r rune) bool { return r == '/' || onWindows && r == '\\' }
	at := strings.LastIndexFunc(text, slash)
	last := text[at+1:]
	return at >= 0 && (last == "" || last == "." || last == "..")
}

// spell is Abs with the reason for a refusal: ErrSpelling or *InvalidError. It decides on text alone, because on
// Windows a mere stat of `\\host\share` sends the user's password hash to that host.
func (s *Space) spell(path string) (string, error) {
	if err := checkText(path, onWindows); err != nil {
		return "", err
	}
	text, err := decodeURL(path, onWindows)
	if err != nil {
		return "", err
	}
	if text, err = s.expandHome(text); err != nil {
		return "", err
	}
	abs := s.join(text)
	// Again on the result: `/./??/x`, an escaped NUL in a URL and a long cwd show only now.
	if err := checkText(abs, onWindows); err != nil {
		if bad, ok := errors.AsType[*InvalidError](err); ok {
			return "", &InvalidError{Path: path, Reason: bad.Reason}
		}
		return "", err
	}
	return abs, nil
}

// join makes text absolute and clean.
func (s *Space) join(text string) string {
	switch {
	case filepath.IsAbs(text):
		return filepath.Clean(text)
	case onWindows && isSlash(text[0]): // `\x` is on the current drive, not below the cwd
		return filepath.Clean(filepath.VolumeName(s.cwd) + text)
	}
	return filepath.Join(s.cwd, text)
}

// expandHome replaces a leading `~`. Other people's homes are never guessed.
func (s *Space) expandHome(text string) (string, error) {
	if text[0] != '~' {
		return text, nil
	}
	rest := text[1:]
	switch {
	case rest != "" && rest[0] != '/' && !(onWindows && rest[0] == '\\'):
		return "", &InvalidError{Path: text, Reason: "only ~ and ~/ are expanded; write ./" + clip(text) +
			" for a file of that name"}
	case !filepath.IsAbs(s.home):
		return "", &InvalidError{Path: text, Reason: "~ has no meaning here; write the absolute path"}
	}
	return filepath.Join(s.home, rest), nil
}

// decodeURL returns the path of a file:// URL, and any other text as it is. Everything after the host counts as path,
// also `?` and `#`: in a file URL they are nearly always an unescaped part of a name.
func decodeURL(text string, windows bool) (string, error) {
	const scheme = "file://"
	if len(text) < len(scheme) || !strings.EqualFold(text[:len(scheme)], scheme) {
		return text, nil
	}
	host, rest, ok := strings.Cut(text[len(scheme):], "/")
	if host != "" && !strings.EqualFold(host, "localhost") {
		return "", ErrSpelling
	}
	if !ok {
		return "", &InvalidError{Path: text, Reason: "file URL without a path"}
	}
	path, err := url.PathUnescape("/" + rest)
	if err != nil {
		return "", &InvalidError{Path: text, Reason: "bad %-escape in file URL"}
	}
	if windows && len(path) > 2 && path[2] == ':' && isLetter(path[1]) {
		path = path[1:] // file:///C:/x
	}
	return path, nil
}

// checkText refuses what is no path, and what names a network share or a device. It takes the system as an argument
// so that every form is tested everywhere.
func checkText(path string, windows bool) error {
	switch {
	case path == "":
		return &InvalidError{Path: path, Reason: "path is empty"}
	case strings.ContainsRune(path, 0):
		return &InvalidError{Path: path, Reason: "path contains a NUL byte"}
	case len(path) > maxPathBytes:
		return &InvalidError{Path: clip(path), Reason: "path is longer than 4,096 bytes"}
	case strings.HasPrefix(path, `\\`), strings.HasPrefix(path, `\??\`), strings.HasPrefix(path, `/??/`), path == `/??`:
		return ErrSpelling
	case windows && refusedOnWindows(path):
		return ErrSpelling
	}
	separator := func(r rune) bool { return r == '/' || windows && r == '\\' }
	names := 0
	for name := range strings.FieldsFuncSeq(path, separator) {
		if len(name) > maxComponentBytes {
			return &InvalidError{Path: clip(path), Reason: "a name in it is longer than 255 bytes"}
		}
		if names++; names > maxComponents {
			return &InvalidError{Path: clip(path), Reason: "path has more than 256 components"}
		}
	}
	return nil
}

// refusedOnWindows finds the spellings that are special on Windows alone: UNC with either slash, `C:rel`, a stream
// after a colon, and the reserved device names, which are devices in every directory and with every extension.
func refusedOnWindows(path string) bool {
	if strings.HasPrefix(strings.ToLower(path), "file://") {
		return false // looked at again after decoding
	}
	text := strings.ReplaceAll(path, "/", `\`)
	if strings.HasPrefix(text, `\\`) || strings.HasPrefix(text, `\??\`) {
		return true
	}
	if len(text) >= 2 && text[1] == ':' && isLetter(text[0]) {
		text = text[2:]
		if !strings.HasPrefix(text, `\`) {
			return true
		}
	}
	if strings.ContainsRune(text, ':') {
		return true
	}
	for name := range strings.SplitSeq(text, `\`) {
		if reservedName(name) {
			return true
		}
	}
	return false
}

// reservedName says whether Windows takes name for a device. Trailing blanks and dots do not count there, nor does
// anything after the first dot.
func reservedName(name string) bool {
	base, _, _ := strings.Cut(name, ".")
	base = strings.ToUpper(strings.TrimRight(base, " "))
	switch base {
	case "CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$":
		return true
	}
	port, ok := strings.CutPrefix(base, "COM")
	if !ok {
		port, ok = strings.CutPrefix(base, "LPT")
	}
	// The superscript digits are ports, too.
	return ok && len([]rune(port)) == 1 && strings.Contains("0123456789¹²³", port)
}

func isSlash(c byte) bool  { return c == '/' || c == '\\' }
func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// clip shortens a path that is only shown in an error.
func clip(path string) string {
	const shown = 80
	if len(path) <= shown {
		return path
	}
	return strings.ToValidUTF8(path[:shown], "") + "…"
}
