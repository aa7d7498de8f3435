//go:build !linux

package peers

import (
	"errors"
	"net/netip"
	"syscall"
)

// canLook is false: there is no /proc/net.
func canLook() bool { return false }

func tcpOwner(netip.AddrPort, netip.AddrPort) (end, error) { return nowhere, errors.ErrUnsupported }

func unixOwner(syscall.Conn) end { return nowhere }

func callerOf(end) Caller { return Stranger }
