package wording

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"syscall"

	"codehand/filestate"
	"codehand/tools/sandbox"
	"codehand/tools/shell"
	"codehand/tools/tool"
	"codehand/tools/workspace"
)

// rightsRefusal says that the operating system denies the server a file, so that the reader does not look for a rule of
// the server. kept says what the files are; "": nothing was to be changed.
func rightsRefusal(path, kept string, cause error) error {
	text := "Permission denied: the permissions of the file system, not a rule, keep the server from " + path + "."
	if unlisted, ok := errors.AsType[*workspace.UnlistedError](cause); ok {
		text += " The directory " + unlisted.Dir + " must be readable; permission to enter it is not enough."
	}
	if kept != "" {
		text += " " + kept
	}
	return &tool.Refusal{Code: tool.PermissionDenied, Cause: cause, Text: text + " Ask the user."}
}

// readRefusal says why the system does not give what is in a file, or not even the file. An error that is none of the
// system's, or of a call that has ended, comes back as it is.
func readRefusal(path string, err error) error {
	cause, ok := errors.AsType[syscall.Errno](err)
	if !ok || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &tool.Refusal{Code: tool.ReadFailed, Text: fmt.Sprintf("Reading %s failed: %v. %s", path, cause,
		readRemedy(cause)), Cause: err}
}

// readRemedy is what to do about a file that cannot be read: some causes go away by themselves.
func readRemedy(cause error) string {
	switch errno, _ := errors.AsType[syscall.Errno](cause); errno {
	case syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EAGAIN, syscall.EINTR, syscall.EBUSY, syscall.ESTALE,
		syscall.ETIMEDOUT:
		return "Try again, and if that does not help, ask the user."
	}
	return "Ask the user to check its disk or file system."
}

// writeRemedy is what to do about a file that cannot be written.
func writeRemedy(cause error) string {
	switch errno, _ := errors.AsType[syscall.Errno](cause); errno {
	case syscall.ENOSPC, syscall.EDQUOT:
		return "Free space there, or ask the user to do so."
	case syscall.EROFS, syscall.EACCES, syscall.EPERM:
		return "Ask the user."
	}
	return "Try again, and if that does not help, ask the user."
}

// ChangeRefusal says that a file could not be changed, or not even read for that, which read_file says in the same
// words.
func ChangeRefusal(path string, failed *filestate.WriteError, cause error) error {
	kept := "The file is unchanged."
	if failed.Absent {
		kept = "Nothing was changed."
	}
	return stepRefusal(path, failed, kept, cause)
}

// WriteRefusal says that one of several files could not be changed, and so none is.
func WriteRefusal(failed *filestate.WriteError, files int, cause error) error {
	return stepRefusal(failed.Path, failed, fmt.Sprintf("All %d files are as before.", files), cause)
}

// stepRefusal says in kept what the files are.
func stepRefusal(path string, failed *filestate.WriteError, kept string, cause error) error {
	switch refused, isRefused := errors.AsType[*tool.Refusal](cause); {
	case isRefused: // of what was opened, see workspace.Guard
		return refused
	case failed.Reading() && errors.Is(failed.Err, fs.ErrPermission):
		return rightsRefusal(path, kept, cause)
	case failed.Reading():
		return &tool.Refusal{Code: tool.ReadFailed, Text: fmt.Sprintf("Reading %s failed: %v. %s %s", path, failed.Err,
			kept, readRemedy(failed.Err)), Cause: cause}
	}
	return &tool.Refusal{Code: tool.WriteFailed, Text: fmt.Sprintf("Writing %s failed: %v. %s %s", path, failed.Err,
		kept, writeRemedy(failed.Err)), Cause: cause}
}

// StartRefusal says that the system has too little left to start a command, or no place for its files. Every other
// error comes back as it is.
func StartRefusal(err error) error {
	switch cause, is := errors.AsType[syscall.Errno](err); {
	case is && slices.Contains([]syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EAGAIN}, cause):
		return &tool.Refusal{Code: tool.Busy, Text: fmt.Sprintf("The command was not started: %v. %s", cause,
			writeRemedy(cause)), Cause: err}
	case is && errors.Is(err, shell.ErrState):
		return &tool.Refusal{Code: tool.WriteFailed,
			Text: fmt.Sprintf("The command was not started: its output files cannot be created in the state "+
				"directory: %v. %s", cause, writeRemedy(cause)), Cause: err}
	}
	if errors.Is(err, sandbox.ErrTerminal) {
		return &tool.Refusal{Code: tool.NoTerminal,
			Text: fmt.Sprintf("The command was not started: %v. Run it without pty, with options by which it asks "+
				"nothing.", err), Cause: err}
	}
	if errors.Is(err, sandbox.ErrConfine) {
		const advice = "Tell the operator: codehand doctor says how far commands are confined here, and " +
			"sandbox.readable and sandbox.writable must name what is there."
		return &tool.Refusal{Code: tool.SandboxUnavailable,
			Text: fmt.Sprintf("The command was not started: %v. %s", err, advice), Cause: err}
	}
	return err
}

// StateRefusal answers a call that needs what the Store does not give.
func StateRefusal() error {
	return tool.Refuse(tool.StateUnavailable,
		"The state store does not answer, so changes are refused. Reading works. Try again.")
}

// StateFault is what an error of the Store means for the caller: that of a call that has ended comes back as it is,
// since the Store is well.
func StateFault(ctx context.Context, err error) error {
	if err == nil || Ended(ctx, err) {
		return err
	}
	return StateRefusal()
}

// Ended says whether an error is no more than the end of its call.
func Ended(ctx context.Context, err error) bool {
	cause := context.Cause(ctx)
	return cause != nil && (errors.Is(err, cause) || errors.Is(err, ctx.Err()))
}
