package tools

import (
	"codehand/tools/tool"
	"codehand/tools/wording"
)

// editNotes tell the client how far a call with edits is. The nil editNotes tell nothing.
type editNotes struct {
	env  tool.Env
	done func() // ends what is being told now
}

// say replaces what is told, from now on.
func (n *editNotes) say(what string) {
	if n != nil {
		n.end()
		n.done = wording.TellIfSlow(n.env, what)
	}
}

// end is called when the call ends.
func (n *editNotes) end() {
	if n != nil && n.done != nil {
		n.done()
		n.done = nil
	}
}
