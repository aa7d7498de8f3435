package shell

import (
	"path"
	"strings"
)

// Meaning says what exit code 1 of a command line tells if it is an answer and no failure: "no match", "files differ",
// "false", "incomplete"; "" if it is a failure, or if that is not certain. quiet says that nothing came on stderr. The
// command line is not parsed: one with substitutions, here-documents or compound commands is never certain.
func Meaning(command string, exit int, quiet bool) string {
	words, ok := lastCommand(command)
	if exit != 1 || !ok || len(words) == 0 {
		return ""
	}
	name := path.Base(words[0])
	if name == "git" && len(words) > 1 {
		name += " " + words[1]
	}
	switch {
	case name == "find": // what it could not read, it has said on stderr
		return "incomplete"
	case !quiet: // these have nothing to say on stderr when their answer is no, so another command failed
		return ""
	}
	switch name {
	case "grep", "rg", "egrep", "fgrep", "git grep":
		return "no match"
	case "diff", "git diff":
		return "files differ"
	case "test", "[":
		return "false"
	}
	return ""
}

// lastCommand returns the words of the last simple command of a line, as far as they are certain; ok is false if the
// line has anything but plain words, quotes, pipes and lists.
func lastCommand(line string) (words []string, ok bool) {
	var word strings.Builder
	inWord := false
	end := func() {
		if inWord {
			words = append(words, word.String())
		}
		word.Reset()
		inWord = false
	}
	line = strings.TrimRight(line, " \t\n;")
	for i := 0; i < len(line); i++ {
		switch c := line[i]; c {
		case '\'', '"':
			n := strings.IndexByte(line[i+1:], c)
			if n < 0 || c == '"' && strings.ContainsAny(line[i+1:i+1+n], "`$\\") {
				return nil, false
			}
			word.WriteString(line[i+1 : i+1+n])
			inWord = true
			i += n + 1
		case '`', '$', '\\', '(', ')', '{', '}', '<', '#':
			return nil, false
		case ' ', '\t':
			end()
		case ';', '|', '\n', '&':
			end()
			words = words[:0]
		default:
			word.WriteByte(c)
			inWord = true
		}
	}
	end()
	if len(words) > 0 {
		switch words[0] {
		case "fi", "done", "esac", "then", "else", "do":
			return nil, false
		}
	}
	return words, true
}
