// Package auth says who is calling, and what he may do at most.
//
// A Porter turns a request into a Principal: by a static token, or, where only one
// person can reach the listener, by being there. It keeps each principal's quotas.
// The package knows no session, no tool and no file of a workspace.
package auth
