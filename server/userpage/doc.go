// Package userpage is the page of one user of a machine (codehand page): over all sessions on stdio of that user, with
// the changes in every workspace.
//
// It owns who may see it: a browser that was given the one-time key, on a connection that is no confined command's.
// What the pages look like is the console's; what waits and runs in other processes, live's; and a change is shown and
// taken back by the tools that models use, in a server that the caller opens for the workspace.
package userpage
