package skills

// Disabled shows tests what stands for a command that was not run.
const Disabled = disabled

// Usable shows tests which names skills can have.
func Usable(name string) bool { return usable(name) }

// Commands shows tests the commands of a text in their order, the unsafe ones too.
func (r Rendering) Commands() []string {
	var out []string
	for _, part := range r {
		if part.Command {
			out = append(out, part.Text)
		}
	}
	return out
}

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
