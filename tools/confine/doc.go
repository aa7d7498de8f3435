// Package confine says what the commands of a session may reach: it turns roots, rules, names and the operator's
// settings into a profile of tools/sandbox. It starts nothing, and decides about no call.
package confine
