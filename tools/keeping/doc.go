// Package keeping keeps what a command may discard: before it starts, the journal gets the content of every file in the
// places that the command's text names (bash.Loss) which neither git nor the journal has. Then the command is no
// question, and what it discarded is taken back like any change.
//
// Weigh says before the decision whether all of that can be kept, by names and sizes alone. Hold reads and writes it
// when the command is about to start, and Held says afterwards what became of it. What git ignores is not kept, but for
// names of secrets: it is made again, or was never meant to be kept.
package keeping
