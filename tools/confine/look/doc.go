// Package look finds paths below directories for one command after the other, at the price of what changed meanwhile.
package look
