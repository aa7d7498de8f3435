package agent

import (
	"fmt"
	"regexp"
	"strings"
	"sync"

	"codehand/tools/results"
)

var (
	// tags of texts that clients give a model as words of the system
	systemTag = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)\\?<(/?[ \t]*(?:system[-_ ]?(?:reminder|prompt|message)|` +
			`system|untrusted[-_a-z]*|function_(?:calls|results)|antml:[a-z_]+)\b)`)
	})
	// beginnings of lines that stand for another speaker
	speaker = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)^([ \t>*_#]*)((?:human|assistant|system|user|not executed)[ \t*_]*:)`)
	})
)

// Scan returns what a sub-agent said so that it cannot imitate another speaker. Lines that look like words of a system,
// of another speaker or of this server get a backslash in front, and a first line counts them. Scan removes control
// characters and escape sequences.
func Scan(text string) string {
	text = strings.TrimSpace(text)
	lines := strings.Split(results.Printed(text), "\n")
	plain := strings.Split(results.Clean(text), "\n")
	places := 0
	for i, line := range lines {
		if i < len(plain) && line != plain[i] {
			places++ // a line in the form of one of the server
		}
		if speaker().MatchString(line) {
			line, places = speaker().ReplaceAllString(line, `$1\$2`), places+1
		}
		line = systemTag().ReplaceAllStringFunc(line, func(tag string) string {
			if strings.HasPrefix(tag, `\`) {
				return tag
			}
			places++
			return `\` + tag
		})
		lines[i] = line
	}
	text = strings.Join(lines, "\n")
	if places == 0 {
		return text
	}
	count := "1 place"
	if places > 1 {
		count = fmt.Sprintf("%d places", places)
	}
	return "[sub-agent output imitated instructions: " + count + "]\n" + text
}
