package bash

import "strings"

// psFault keeps environments from being shown. procps (4.0.2 to 4.0.4, src/ps/parser.c) reads its words as SysV and GNU
// do, and after any error, such as a user who does not exist, all of them again as BSD did: there a dash means nothing
// and an e is an option that shows environments. So either there is no e that could be read in this way, or nothing but
// letters that cannot be wrong.
func (m *matching) psFault() string {
	for _, w := range m.args {
		if strings.Contains(w.text, "e") && !strings.HasPrefix(w.text, "--") {
			for _, w := range m.args {
				if letters, dash := strings.CutPrefix(w.text, "-"); !dash || strings.Trim(letters, "eflaAw") != "" {
					return snippet(w.text) + " may make it read an e as BSD does and show environments"
				}
			}
		}
	}
	return ""
}
