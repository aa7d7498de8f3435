package history

// Words are how an answer names what its reader calls: a model calls tools, a person at a terminal runs commands.
type Words struct {
	Undo    string // in front of the id of a change
	History string // lists changes
	Skip    string // what leaves out of an undo the files that changed since
	Again   string // does the same once more
	Write   string // writes a file
	Free    string // what to do where something else has the name of the file
}

// ForModels names tools and their parameters.
var ForModels = Words{"undo_change ", "file_history", "skip_changed", "call again", "write the file with write_file",
	"Ask the user, or write the file with write_file once its name is free."}

// ForTerminal names commands.
var ForTerminal = Words{"codehand undo ", "codehand history", "--skip-changed", "run it again",
	"write the file", "Write the file once its name is free."}
