// Package auth says who is calling, and which rights and quotas the caller has.
//
// A Porter is the authenticator: it finds the Principal of a request by a static token. Where only one person can reach
// the listener, every request belongs to that person. It keeps what each principal uses (server/auth/limits). The
// package knows no session, no tool and no file of a workspace.
package auth
