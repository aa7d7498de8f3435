package skills

// Words shows tests how arguments are split.
func Words(s string) []string { return shellWords(s) }
