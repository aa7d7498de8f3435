// Package planning has what the tools of plan mode and those of tasks share: the plan file, the question about a plan
// and what comes of the answer, and the words about tasks. Which mode is in force, the session and the rules decide.
package planning
