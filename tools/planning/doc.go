// Package planning has what the tools of plan mode and the task tools share: the plan file, the question about a plan
// and the effect of its answer, and the texts about tasks. The session and the rules decide which mode is in force.
package planning
