package permission

import "slices"

// A Family is the tools that one rule without their names covers: who denies `Read` denies every tool that shows a
// file. It travels with a tool (tool.Spec) and with each of its calls (Request).
type Family int

// The families. The zero value is the strictest: rules of any family that deny or ask cover the tool, none that allows.
const (
	FamilyUnknown Family = iota
	FamilyNone           // rules cover the tool by its own names only
	FamilyRead           // `Read` covers it: it shows what is in files, or which there are
	FamilyEdit           // `Edit` covers it: it changes files
	FamilyBash           // `Bash` and `PowerShell` cover it: it runs commands
)

// family says whether the rule is about the tools of a family.
func (r *rule) family(f Family) bool {
	if f == FamilyUnknown {
		return len(r.families) > 0 && !r.allows
	}
	return slices.Contains(r.families, f)
}
