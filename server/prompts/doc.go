// Package prompts has the prompts that a person starts by name: commit, the instructions of the
// workspace, and the skills of a session that persons may run. It also completes their arguments.
//
// The text of a skill is rendered without running its commands: no permission decision is made here.
package prompts
