package skills

// Words shows tests how arguments are split.
func Words(s string) []string { return shellWords(s) }

// Known shows tests how many files are remembered.
func (x *Index) Known() (n int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, files := range x.parsed {
		n += len(files)
	}
	return n
}
