// Package credentials hands git in the sandbox the passwords that the person's own git has outside, for the hosts of
// the remotes that the repositories had when the session began. The person is asked once for each session, unless a
// setting answers.
//
// Git in the sandbox starts this program as its helper, which asks at a Unix socket that only that command sees.
// Outside `git credential fill` runs with the person's configuration and in no repository, so nothing that a command
// can write is obeyed. Nothing is stored, and no command stores or erases anything there. The package decides about no
// call.
package credentials
