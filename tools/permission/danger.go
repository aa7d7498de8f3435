package permission

// danger is rule R7: what it recognises as harm, "" if nothing.
func (s *script) danger(inside func(string) bool) string { return "" }
