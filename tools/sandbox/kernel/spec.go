package kernel

import "strconv"

// Arg0 is the name under which the program is a helper.
const Arg0 = "codehand-helper"

// Argv are the arguments of a helper that starts commands at a level. They say to other processes of codehand's what
// is below it.
func Argv(level int) []string { return []string{Arg0, strconv.Itoa(level)} }

// The levels, as package sandbox defines them.
const (
	LevelLimits = 1 + iota
	LevelKernel
	LevelFull
)

// A Profile says what a command may reach. The zero value is the strictest: it reads the system's directories, writes
// into a private temporary directory, and has no network. All paths are absolute and clean. A link on the way to a
// writable or readable path is an error: a command could have put it there.
type Profile struct {
	// Writable are directories. What the command makes, changes and removes there stays. One that is missing is an
	// error.
	Writable []string
	// Readable are files and directories besides those of the system (/usr, /etc and what belongs to them). What is
	// missing is left out.
	Readable []string
	// Hidden are files and directories that the command cannot look into, whatever contains them. What is missing is
	// left out, and a link hides what it leads to. Needs LevelFull.
	Hidden []string
	// Masked are directories of which the command sees only what the profile names below them, whatever contains them.
	// What is missing is left out. Needs LevelFull.
	Masked []string
	// Protected are paths inside Writable that the command can read and neither change, rename nor remove. One that is
	// missing cannot be kept from being made: it is renamed as soon as it appears, see Process.Removed. What is
	// Writable below one stays writable. A file that a program outside replaces is covered again, as what is Hidden and
	// Linked is: for a moment, and during the first quarter of a second, the command can change it. Needs LevelFull.
	Protected []string
	// Held are directories inside Writable that the command neither renames nor removes; what is in them it changes.
	// Needs LevelFull.
	Held []string
	// Linked are files that the command finds as links to others: what it writes there, also by renaming another file
	// onto what the link leads to, is in those. It neither changes, renames nor removes the files of these names.
	// Inside Writable and Readable a file or socket must be there; elsewhere the link is all that the command finds.
	// Needs LevelFull.
	Linked []Link
	// Copied are directories inside Writable in whose place the command finds others, which lie in Temp: it writes
	// those. It neither renames nor removes either. One that is Protected by a name above it is Copied all the same.
	// Needs LevelFull.
	Copied []Link
	// Unwatched leaves Protected to mounts alone, for a command that goes on beside what a person does: links are not
	// put back and new files are not renamed, since their author could be the person.
	Unwatched bool
	// Temp is the directory that the command finds at /tmp and /var/tmp, and at its own path; "": a private one in
	// memory, of 64 MiB, that ends with the command. At LevelKernel it is writable at its own path only, and there is
	// no private one.
	Temp string
	// Sockets lets the command have Unix sockets besides pairs where the network is not on. Needs LevelFull.
	Sockets bool
	// Network is what the command may connect to.
	Network Network
	// Processes is how many processes and threads the command may have at once; 0: 512, or what its group says. It
	// needs LevelFull and has no effect for root, unless the command has a group.
	Processes int
}

// A Link is a file that the command finds as a link, or a directory that it finds as another one.
type Link struct {
	Path   string // of the file or directory
	Target string // what the command finds at Path, absolute
}

// A Network is what a command may connect to.
type Network int

// The networks.
const (
	NetworkOff  Network = iota // itself, at LevelFull; nothing below
	NetworkList                // a port of its loopback, which the server serves: see Process.Listener
	NetworkOn                  // whatever the server may connect to
)

// ProxyAddress is where a command with NetworkList finds the server, on its own loopback.
const ProxyAddress = "127.0.0.1:3128"

const proxyPort = 3128

// A Spec is what the server tells the helper, as one line of JSON.
type Spec struct {
	Level    int
	Path     string
	Args     []string // with the name of the program
	Env      []string
	Dir      bool // descriptor dirFD is the working directory
	Profile  *Profile
	Limits   []Limit
	Memory   uint64  // bytes of address space; 0: no limit
	Identity [2]int  // user and group
	Nested   bool    // the helper makes the namespaces in a second process
	Passed   bool    // the streams, and the working directory if Dir is set, come with this as descriptors
	Group    bool    // the helper was moved into a control group, which becomes the root of those that the command sees
	Terminal *Window // the command gets a terminal in place of its streams; nil: it does not
}

// A Window is how many characters a terminal shows.
type Window struct{ Columns, Rows uint16 }

// A Limit is a resource limit; Soft and Hard are lowered to the hard limit that there is.
type Limit struct {
	Resource   int
	Soft, Hard uint64
}

// A Message is what the helper tells the server, as one line of JSON.
type Message struct {
	Kind      string
	Step      string // of Failed: what could not be done
	Errno     int    // of Failed
	Confining bool   // of Failed: not the command is the reason
	Pid       int    // of Moved and Started
	Code      int    // of Exited
	Signal    int    // of Exited: what ended the command; 0: it exited
	Alone     bool   // of Exited: the command left no process behind
	NoTerm    bool   // of Failed: the system gives no terminal
}

// The kinds of messages.
const (
	Failed  = "failed"  // nothing was started; the helper ends
	Moved   = "moved"   // process Pid is the helper from now on
	Listens = "listens" // with a listening socket
	Opened  = "opened"  // with our end of the command's terminal
	Started = "started"
	Exited  = "exited"
)

// Descriptors of a helper besides the streams.
const (
	controlFD = 3
	dirFD     = 4
)
