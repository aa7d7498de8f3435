// Package secrets finds what looks like a credential in a text, and hides it.
//
// Find and Mask are for what tools show: they hide only what has an unmistakable shape, in place and without a change
// of length. Redact and RedactPath are for the audit and the log, where a word too many hidden does no harm. The
// package knows shapes of secrets only; which files hold secrets is guarded's.
package secrets
