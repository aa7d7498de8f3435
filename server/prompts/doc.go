// Package prompts is what a person starts by name: the prompt commit, and the skills of a session that persons may run,
// with what completes their arguments.
//
// The text of a skill is rendered without its commands: nobody decides about those here, so none is run.
package prompts
