package wording

import (
	"cmp"
	"strings"
)

// Chosen says what a person answered to a question with choices: what they chose, if the choice was given, and what
// they typed beside it, which is added and takes the place of nothing. It follows a colon. "": they did not answer.
func Chosen(choices []string, given bool, typed string) string {
	typed = strings.Trim(typed, "\r\n")
	said := strings.TrimSpace(typed) != ""
	answer := ""
	if given && (len(choices) > 0 || !said) {
		answer = " " + cmp.Or(strings.Join(choices, ", "), "(none of them)")
	}
	switch {
	case !said:
		return answer
	case strings.Contains(typed, "\n"):
		return answer + "\n" + typed
	case answer != "":
		return answer + "; they add: " + typed
	}
	return " " + typed
}
