// Package kernel is the helper process that stands between the server and a command. The helper asks the kernel to
// confine the command, starts it, collects what it leaves behind, and ends all of it when the server dies.
//
// It is the program itself, started again under the name that Arg0 is. It gets what it shall do over a socket, never
// on its command line or in its environment.
package kernel
