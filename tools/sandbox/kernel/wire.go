package kernel

import (
	"encoding/json"
	"slices"
)

// Encode returns a Spec as the line that a helper reads. Names of files and words of commands are bytes, and JSON has
// only characters: each byte goes as the character of its number.
func (s Spec) Encode() ([]byte, error) {
	return json.Marshal(s.each(func(text string) string {
		runes := make([]rune, len(text))
		for i := range len(text) {
			runes[i] = rune(text[i])
		}
		return string(runes)
	}))
}

// decode is the opposite of Encode.
func (s *Spec) decode(line []byte) error {
	var read Spec
	if err := json.Unmarshal(line, &read); err != nil {
		return err
	}
	*s = read.each(func(text string) string {
		b := make([]byte, 0, len(text))
		for _, r := range text {
			b = append(b, byte(r))
		}
		return string(b)
	})
	return nil
}

// each returns a copy in which f has changed every text.
func (s Spec) each(f func(string) string) Spec {
	all := func(list []string) []string {
		out := make([]string, len(list))
		for i, text := range list {
			out[i] = f(text)
		}
		return out
	}
	s.Path, s.Args, s.Env = f(s.Path), all(s.Args), all(s.Env)
	if s.Profile != nil {
		p := *s.Profile
		p.Writable, p.Readable = all(p.Writable), all(p.Readable)
		p.Hidden, p.Masked, p.Protected, p.Held = all(p.Hidden), all(p.Masked), all(p.Protected), all(p.Held)
		p.Temp = f(p.Temp)
		for _, links := range []*[]Link{&p.Linked, &p.Copied} {
			*links = slices.Clone(*links)
			for i, l := range *links {
				(*links)[i] = Link{Path: f(l.Path), Target: f(l.Target)}
			}
		}
		s.Profile = &p
	}
	return s
}
