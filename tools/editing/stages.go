package editing

import (
	"codehand/tools/tool"
	"codehand/tools/wording"
)

// stages tell the client how far a call with edits is. The nil stages tell nothing.
type stages struct {
	env  tool.Env
	done func() // ends what is being told now
}

// say replaces what is told, from now on.
func (n *stages) say(what string) {
	if n != nil {
		n.end()
		n.done = wording.TellIfSlow(n.env, what)
	}
}

// end is called when the call ends.
func (n *stages) end() {
	if n != nil && n.done != nil {
		n.done()
		n.done = nil
	}
}
