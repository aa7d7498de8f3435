package permission

// takeApart finds the parts of the command, and the files that it is known to touch.
func (s *script) takeApart() Analysis { return Analysis{Unclear: true} }
