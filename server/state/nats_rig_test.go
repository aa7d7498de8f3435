package state_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"codehand/filestate/leaktest"
	"codehand/server/state"
	"codehand/server/state/storetest"
)

// A natsServer is a nats-server on loopback, with its files in a directory of the test.
type natsServer struct {
	t       *testing.T
	program string
	config  string
	port    int
	cmd     *exec.Cmd // nil: it does not run
}

// natsProgram finds the nats-server that .ci/nats builds. CI has one; elsewhere the test is skipped without it.
func natsProgram(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("nats-server")
	if err == nil {
		return path
	}
	const how = "there is no nats-server in PATH; .ci/nats/build DIR makes one"
	if os.Getenv("CI") != "" {
		t.Fatal(how)
	}
	t.Skip(how)
	return ""
}

// startNATS starts one server, or three that are a cluster. settings are added to their configuration.
func startNATS(t *testing.T, servers int, settings string) []*natsServer {
	t.Helper()
	program := natsProgram(t)
	ports := freePorts(t, 2*servers)
	var routes []string
	for _, port := range ports[servers:] {
		routes = append(routes, fmt.Sprintf("nats://127.0.0.1:%d", port))
	}
	var all []*natsServer
	for i := range servers {
		dir := t.TempDir()
		config := fmt.Sprintf("server_name: n%d\nlisten: 127.0.0.1:%d\njetstream { store_dir: %q, max_file_store: 8GB, "+
			"max_memory_store: 64MB }\n%s\n", i, ports[i], filepath.ToSlash(dir), settings)
		if servers > 1 {
			config += fmt.Sprintf("cluster { name: test, listen: 127.0.0.1:%d, routes: [%s] }\n", ports[servers+i],
				strings.Join(routes, ", "))
		}
		s := &natsServer{t: t, program: program, config: filepath.Join(dir, "nats.conf"), port: ports[i]}
		if err := os.WriteFile(s.config, []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.kill)
		all = append(all, s)
	}
	for _, s := range all {
		s.start()
	}
	return all
}

// freePorts are ports that nobody used a moment ago.
func freePorts(t *testing.T, n int) (ports []int) {
	t.Helper()
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports
}

func (s *natsServer) start() {
	s.t.Helper()
	s.cmd = exec.Command(s.program, "-c", s.config, "-l", s.config+".log") // kill ends it
	if err := leaktest.Start(s.cmd); err != nil {
		s.t.Fatal(err)
	}
}

// kill ends the server without goodbye.
func (s *natsServer) kill() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait() // it was killed
	s.cmd = nil
}

// natsURL names servers.
func natsURL(servers []*natsServer) string {
	var all []string
	for _, s := range servers {
		all = append(all, fmt.Sprintf("127.0.0.1:%d", s.port))
	}
	return "nats://" + strings.Join(all, ",")
}

// natsBackend is the Store in servers of NATS, which the cases share.
func natsBackend(servers []*natsServer) storetest.Backend {
	url := natsURL(servers)
	return storetest.Backend{
		Clock: state.NATSLease, Traces: state.NATSMessages,
		Open: func(t *testing.T, o state.Options) state.Store {
			s := state.OpenNATS(t, url, o)
			state.EmptyNATS(t, s)
			return s
		},
		Restart: func(t *testing.T, s state.Store, o state.Options) state.Store {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			for _, n := range servers {
				n.kill()
			}
			for _, n := range servers {
				n.start()
			}
			return state.OpenNATS(t, url, o)
		},
	}
}

// soon calls so until it returns true.
func soon(t *testing.T, what string, so func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for !so() {
		select {
		case <-ctx.Done():
			t.Fatal(errors.New("never: " + what))
		case <-ticker.C:
		}
	}
}

// The Store in one server of NATS keeps the contract.
func TestStoreNATS(t *testing.T) {
	t.Parallel()
	storetest.Run(t, natsBackend(startNATS(t, 1, "")))
}

// So does the Store in three.
func TestStoreNATSCluster(t *testing.T) {
	leaktest.OutsideGate(t, "runs a cluster of three servers")
	t.Parallel()
	storetest.Run(t, natsBackend(startNATS(t, 3, "")))
}
