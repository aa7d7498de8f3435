package loop

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Calls makes the calls of one answer of what a model's server sent.
type Calls struct {
	prefix string
	seen   map[string]bool
}

// CallsOf returns the Calls of the answer to a turn. Their ids are the same if the turn is tried again.
func CallsOf(t Turn) Calls {
	return Calls{"call_" + strconv.Itoa(len(t.Messages)) + "_", map[string]bool{}}
}

// Make makes a call. Servers leave ids out or repeat them, so a call without an id of its own gets one. Arguments that
// are empty or null are an empty object; what is no object makes the call Broken.
func (c *Calls) Make(id, name, arguments string) *Call {
	for n := len(c.seen); id == "" || c.seen[id]; n++ {
		id = c.prefix + strconv.Itoa(n)
	}
	c.seen[id] = true
	call := &Call{ID: id, Name: name, Arguments: json.RawMessage("{}")}
	arguments = strings.TrimSpace(strings.ToValidUTF8(arguments, "\ufffd"))
	if arguments == "" || arguments == "null" {
		return call
	}
	var value json.RawMessage
	switch err := json.Unmarshal([]byte(arguments), &value); {
	case err != nil:
		call.Broken = fmt.Sprintf("the arguments are no JSON (%v): %s", err, begin(arguments))
	case arguments[0] != '{':
		call.Broken = "the arguments are JSON, but no object: " + begin(arguments)
	default:
		call.Arguments = value
	}
	return call
}

// begin is the beginning of a text, quoted.
func begin(text string) string {
	if len(text) > 200 {
		text = strings.ToValidUTF8(text[:200], "") + "..."
	}
	return strconv.Quote(text)
}
