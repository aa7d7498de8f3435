package git

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// A Setting is one key of a git configuration file with its value.
type Setting struct {
	Section string // `remote`, in lower case
	Sub     string // `origin` of `[remote "origin"]`
	HasSub  bool
	Name    string // `url`, in lower case
	Spelled string // Name as it stands in the file
	Value   string
	Bare    bool // it has no value, which means true

	start, end int // in the file
}

// Key is how people write the key: `remote.origin.url`.
func (s Setting) Key() string {
	if s.HasSub {
		return s.Section + "." + s.Sub + "." + s.Spelled
	}
	return s.Section + "." + s.Spelled
}

// id tells keys apart: a subsection may have dots.
func (s Setting) id() string { return fmt.Sprintf("%q %v %q %q", s.Section, s.HasSub, s.Sub, s.Name) }

// ErrConfig means that a git configuration file has a line that cannot be read.
var ErrConfig = errors.New("a line that cannot be read")

// A configFile is a git configuration file, taken apart.
type configFile struct {
	text     string
	settings []Setting
	heads    []head // start and end are counted from the beginning
}

func parseConfig(content []byte) (f configFile, err error) {
	g := gitConfig{rest: strings.ReplaceAll(strings.TrimPrefix(string(content), "\ufeff"), "\r\n", "\n")}
	f.text = g.rest
	for {
		key, ok := g.next()
		if !ok {
			break
		}
		name := key[len(g.section)+1:]
		s := Setting{
			Name: strings.ToLower(name), Spelled: name, Value: g.text, Bare: g.bare,
			start: len(f.text) - g.key, end: len(f.text) - len(g.rest),
		}
		s.Section, s.Sub, s.HasSub = splitSection(g.section, f.text[len(f.text)-g.heads[len(g.heads)-1].start:])
		f.settings = append(f.settings, s)
	}
	if g.rest != "" {
		return configFile{}, ErrConfig
	}
	for _, h := range g.heads {
		f.heads = append(f.heads, head{h.section, len(f.text) - h.start, len(f.text) - h.end})
	}
	return f, nil
}

// splitSection takes the section of a gitConfig apart. from begins with its head, which tells `[a "b"]` from `[a.b]`:
// git reads the subsection of the latter in lower case.
func splitSection(section, from string) (name, sub string, hasSub bool) {
	from, _, _ = strings.Cut(from, "]")
	if !strings.Contains(from, `"`) {
		return strings.Cut(strings.ToLower(section), ".")
	}
	from, _, _ = strings.Cut(from, `"`)
	n := len(strings.TrimRight(from[1:], " \t\v\f\r"))
	name, raw := strings.ToLower(section[:n]), section[n+1:]
	var text strings.Builder
	for i := 0; i < len(raw); i++ {
		if raw[i] == '\\' && i+1 < len(raw) {
			i++
		}
		text.WriteByte(raw[i])
	}
	if first, rest, dotted := strings.Cut(name, "."); dotted { // `[a.b "c"]`
		return first, rest + "." + text.String(), true
	}
	return name, text.String(), true
}

// of returns the settings of a key.
func (f configFile) of(id string) (all []Setting) {
	for _, s := range f.settings {
		if s.id() == id {
			all = append(all, s)
		}
	}
	return all
}

func sameSetting(a, b Setting) bool { return a.Value == b.Value && a.Bare == b.Bare }

// MergeConfig returns the configuration file now with those changes from base to next that are safe. known says of a
// setting whether its key may change, and whether it may also have this value. refused are the keys that were changed
// otherwise, each once. What is written of next is written anew, so that nothing but its safe keys gets into the file;
// comments of next are lost. The file keeps its bytes if nothing changes. Errors: ErrConfig, for any of the three.
func MergeConfig(now, base, next []byte, known func(Setting) (key, value bool)) (
	merged []byte, refused []string, err error,
) {
	var files [3]configFile
	for i, content := range [][]byte{now, base, next} {
		if files[i], err = parseConfig(content); err != nil {
			return nil, nil, err
		}
	}
	wanted, refused := changes(files[1], files[2], known)
	text := files[0].text
	for _, w := range wanted {
		if text, err = w.apply(text); err != nil {
			return nil, nil, err
		}
	}
	if text == files[0].text {
		return now, refused, nil
	}
	return []byte(text), refused, holds(files[0], []byte(text), wanted)
}

// A wish is that a key have these settings.
type wish struct {
	key      Setting
	settings []Setting
}

// changes compares two states of a file, key by key.
func changes(base, next configFile, known func(Setting) (key, value bool)) (wanted []wish, refused []string) {
	seen := map[string]bool{}
	for _, s := range slices.Concat(next.settings, base.settings) {
		id := s.id()
		if seen[id] {
			continue
		}
		seen[id] = true
		old, settings := base.of(id), next.of(id)
		if slices.EqualFunc(old, settings, sameSetting) {
			continue
		}
		if key, _ := known(s); !key || slices.ContainsFunc(settings, func(n Setting) bool {
			_, ok := known(n)
			return !ok && !slices.ContainsFunc(old, func(o Setting) bool { return sameSetting(o, n) })
		}) {
			refused = append(refused, s.Key())
			continue
		}
		wanted = append(wanted, wish{s, settings})
	}
	return wanted, refused
}

// apply puts the settings of a wish into a file in place of those that it has of the key.
func (w wish) apply(text string) (string, error) {
	f, err := parseConfig([]byte(text))
	if err != nil {
		return "", err
	}
	old := f.of(w.key.id())
	if slices.EqualFunc(old, w.settings, sameSetting) {
		return text, nil
	}
	lines := ""
	for _, s := range w.settings {
		lines += s.line()
	}
	at := -1 // where they go: to the last one that was there, else behind the last setting of the section
	for _, h := range f.heads {
		if name, sub, has := splitSection(h.section, text[h.start:]); w.in(name, sub, has) {
			at = h.end
		}
	}
	for _, s := range f.settings {
		if w.in(s.Section, s.Sub, s.HasSub) {
			at = s.end
		}
	}
	if len(old) > 0 {
		at = old[len(old)-1].end
	}
	if at > 0 && text[at-1] == '\n' { // a comment behind the setting ended with the line
		at--
	}
	switch {
	case at >= 0 && lines != "":
		text = text[:at] + "\n" + strings.TrimSuffix(lines, "\n") + text[at:]
	case lines != "":
		if text != "" && !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
		text += w.head() + lines
	}
	for _, s := range slices.Backward(old) { // they come before what was put in
		start, end := s.start, s.end
		for start > 0 && strings.IndexByte(" \t", text[start-1]) >= 0 {
			start--
		}
		if start > 0 && text[start-1] == '\n' { // with its line
			start--
		}
		if end > start && text[end-1] == '\n' { // a comment behind it ended with the line
			end--
		}
		text = text[:start] + text[end:]
	}
	if len(old) > 0 && lines == "" {
		return w.dropEmpty(text)
	}
	return text, nil
}

func (w wish) in(section, sub string, has bool) bool {
	return section == w.key.Section && sub == w.key.Sub && has == w.key.HasSub
}

// dropEmpty removes heads of the wish's section with nothing behind them.
func (w wish) dropEmpty(text string) (string, error) {
	f, err := parseConfig([]byte(text))
	if err != nil {
		return "", err
	}
	end := len(text)
	for _, h := range slices.Backward(f.heads) {
		if name, sub, has := splitSection(h.section, text[h.start:]); w.in(name, sub, has) &&
			strings.TrimSpace(text[h.end:end]) == "" {
			text = text[:h.start] + text[end:]
		}
		end = h.start
	}
	return text, nil
}

// head begins a section.
func (w wish) head() string {
	if !w.key.HasSub {
		return "[" + w.key.Section + "]\n"
	}
	return "[" + w.key.Section + ` "` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(w.key.Sub) + "\"]\n"
}

// line writes a setting as git does.
func (s Setting) line() string {
	if s.Bare {
		return "\t" + s.Spelled + "\n"
	}
	value := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`, "\b", `\b`).Replace(s.Value)
	if strings.ContainsAny(value, "#;") || strings.TrimSpace(value) != value {
		value = `"` + value + `"`
	}
	return "\t" + s.Spelled + " = " + value + "\n"
}

// holds reads the file again that was written: it says what now said, but for what was wanted.
func holds(now configFile, written []byte, wanted []wish) error {
	after, err := parseConfig(written)
	if err != nil {
		return err
	}
	count := len(now.settings)
	for _, w := range wanted {
		count += len(w.settings) - len(now.of(w.key.id()))
	}
	for _, s := range slices.Concat(now.settings, after.settings) {
		want := now.of(s.id())
		if i := slices.IndexFunc(wanted, func(w wish) bool { return w.key.id() == s.id() }); i >= 0 {
			want = wanted[i].settings
		}
		if !slices.EqualFunc(want, after.of(s.id()), sameSetting) {
			return fmt.Errorf("%s: %w", s.Key(), ErrConfig)
		}
	}
	if count != len(after.settings) {
		return ErrConfig
	}
	return nil
}
