// Package loading makes the answer that one skill is: its text, with its commands run and the rules that it lends.
// Which skills there are and what stands in them is the room skills'; a command is a call of its own, through the
// corridor.
package loading
