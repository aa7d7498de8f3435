package credentials

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
)

// below is the address of a socket by way of its directory: one has at most 107 bytes.
func below(dir *os.File, name string) string {
	return "/proc/self/fd/" + strconv.Itoa(int(dir.Fd())) + "/" + name
}

// Help is git's helper within the sandbox: it reads what git asks from in, asks at the Door with this socket, and
// writes the answer to out, nothing where there is none. Only the operation "get" does anything.
func Help(socket, operation string, in io.Reader, out io.Writer) error {
	if operation != "get" {
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(in, maxRequest+1))
	if err != nil {
		return err
	}
	dir, err := searched(filepath.Dir(socket))
	if err != nil {
		return err
	}
	c, err := net.Dial("unix", below(dir, filepath.Base(socket)))
	_ = dir.Close() // a directory handle holds no data
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }() // all was read
	if _, err := c.Write(text); err != nil {
		return err
	}
	if err := c.(*net.UnixConn).CloseWrite(); err != nil {
		return err
	}
	var said reply
	if err := json.NewDecoder(io.LimitReader(c, 2*maxRequest)).Decode(&said); err != nil {
		return errors.New("the session answers no more")
	}
	_, err = io.WriteString(out, said.Lines)
	return err
}
