package permission

// A Condition is one rule that stands alone: the `if` of a hook.
type Condition struct {
	rule rule
}

// Compile reads a rule. The error names its origin.
func Compile(r Rule, home string) (Condition, error) {
	parsed, err := parse(r, home)
	return Condition{rule: parsed}, err
}

// Matches says whether a rule with this text would match a call, as one that denies does: any target, any part of a
// command.
func (c Condition) Matches(r Request) bool { return true }
