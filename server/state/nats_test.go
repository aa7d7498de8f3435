package state_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"codehand/filestate/leaktest"
	"codehand/server/state"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Two servers on one store would each think that a person's files are theirs: the second is refused, until the first
// has ended.
func TestNATSOneAtATime(t *testing.T) {
	t.Parallel()
	url := natsURL(startNATS(t, 1, ""))
	small := state.Options{Dir: t.TempDir(), MaxBytes: 16 << 20}
	first := state.OpenNATS(t, url, small)
	inDir := small
	inDir.NATS.Prefix = "other"
	if _, err := state.Open(t.Context(), url, inDir); err == nil || !strings.Contains(err.Error(), "data dir "+small.Dir+" is in use by pid ") {
		t.Errorf("two servers in one data directory: %v", err)
	}
	elsewhere := small
	elsewhere.Dir = t.TempDir()
	second, err := state.Open(t.Context(), url, elsewhere)
	held, ok := errors.AsType[*state.HeldError](err)
	if second != nil || !ok || held.PID != os.Getpid() || !strings.Contains(err.Error(), "store "+url+": codehand serve on ") {
		t.Fatalf("a second server got %v, %v", second, err)
	}
	other := state.OpenNATS(t, url, state.Options{MaxBytes: 16 << 20, NATS: state.NATSOptions{Prefix: "other"}})
	must(t, other.Set(t.Context(), "token.a", []byte("other")))
	must(t, first.Set(t.Context(), "token.a", []byte("v")))
	must(t, errors.Join(first.Close(), other.Close()))
	again := state.OpenNATS(t, url, small)
	if v, _, err := again.Get(t.Context(), "token.a"); err != nil || string(v) != "v" {
		t.Errorf("the next server reads %q, %v", v, err)
	}
	must(t, again.Close())
}

// A process that was stopped for long reads and writes nothing, so that no call of it begins, until it has its record.
func TestNATSLostHold(t *testing.T) {
	t.Parallel()
	s := state.OpenNATS(t, natsURL(startNATS(t, 1, "")), state.Options{})
	defer s.Close()
	ctx := t.Context()
	must(t, s.Set(ctx, "token.a", []byte("v")))
	state.LoseNATS(s)
	_, _, get := s.Get(ctx, "token.a")
	_, _, all := s.GetAll(ctx, "token.a")
	_, swap := s.Swap(ctx, "token.a", []byte("w"), 0)
	_, keys := s.Keys(ctx, "token")
	_, _, tail := s.Tail(ctx, "job.p.a", 0, 1)
	for i, err := range []error{get, all, swap, keys, tail, s.Set(ctx, "token.a", []byte("w")), s.Delete(ctx, "token.a"),
		s.Append(ctx, "job.p.a", []byte("w")), s.Ping(ctx), s.(state.Stater).Stats().Down} {
		if !errors.Is(err, state.ErrDown) || !strings.Contains(err.Error(), "this server could not renew its record") {
			t.Errorf("operation %d: %v", i, err)
		}
	}
	soon(t, "the record is renewed", func() bool { return s.Ping(ctx) == nil })
	if v, _, err := s.Get(ctx, "token.a"); string(v) != "v" || err != nil {
		t.Errorf("got %q, %v", v, err)
	}
}

// Streams of another make are refused with what is wrong, and limits follow the settings.
func TestNATSStreams(t *testing.T) {
	t.Parallel()
	url := natsURL(startNATS(t, 1, ""))
	must(t, state.OpenNATS(t, url, state.Options{MaxBytes: 16 << 20}).Close()) // it answers
	conn, err := nats.Connect(url)
	must(t, err)
	defer conn.Close()
	js, err := jetstream.New(conn)
	must(t, err)
	_, err = js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "made_ask", History: 5})
	must(t, err)
	_, err = state.Open(t.Context(), url, state.Options{MaxBytes: 16 << 20, NATS: state.NATSOptions{Prefix: "made"}})
	if err == nil || !strings.Contains(err.Error(), "the stream KV_made_ask is not as it must be: allow_direct is true, not false") ||
		!strings.Contains(err.Error(), "max_msgs_per_subject is 5, not 1") {
		t.Errorf("a stream that any server may answer for: %v", err)
	}
	for _, life := range []time.Duration{time.Hour, 2 * time.Hour} {
		s := state.OpenNATS(t, url, state.Options{SessionLife: life, MaxBytes: 32 << 20})
		must(t, s.Close())
		stream, err := js.Stream(t.Context(), "KV_codehand_sess")
		must(t, err)
		if c := stream.CachedInfo().Config; c.MaxAge != life || c.AllowDirect || c.MaxBytes != 16<<20 || c.Replicas != 1 {
			t.Errorf("%+v", c)
		}
	}
	_, err = state.Open(t.Context(), url, state.Options{MaxBytes: 1 << 40, NATS: state.NATSOptions{Prefix: "large"}})
	if err == nil || !strings.Contains(err.Error(), "raise max_file_store in nats.conf, or lower store.max_bytes") {
		t.Errorf("more than the server has: %v", err)
	}
}

// A server that is too old is refused before anything is written.
func TestNATSOld(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	var serving sync.WaitGroup
	defer serving.Wait()
	defer l.Close()
	serving.Go(func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		fmt.Fprint(c, `INFO {"server_id":"x","version":"2.12.2","proto":1,"headers":true,"max_payload":1048576,"jetstream":true}`+"\r\n")
		for in := bufio.NewScanner(c); in.Scan(); {
			if in.Text() == "PING" {
				fmt.Fprint(c, "PONG\r\n")
			}
		}
	})
	_, err = state.Open(t.Context(), "nats://"+l.Addr().String(), state.Options{})
	if err == nil || !strings.Contains(err.Error(), "its nats-server is 2.12.2; 2.12.3 or newer is needed") {
		t.Errorf("got %v", err)
	}
}

// A server without JetStream, one that is not there, and one that knows us not, are told apart.
func TestNATSRefusals(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	url := natsURL(startNATS(t, 1, `authorization { user: codehand, password: right }`))
	_, err := state.Open(t.Context(), url, state.Options{NATS: state.NATSOptions{User: "codehand", PasswordFile: file("w", "wrong\n")}})
	if err == nil || !strings.Contains(err.Error(), "it refused to let codehand in") || strings.Contains(err.Error(), "wrong") {
		t.Errorf("a wrong password: %v", err)
	}
	o := state.Options{NATS: state.NATSOptions{User: "codehand", PasswordFile: file("r", "right\n")}}
	must(t, state.OpenNATS(t, url, o).Close())
	o.NATS.PasswordFile = filepath.Join(dir, "missing")
	if _, err := state.Open(t.Context(), url, o); err == nil || !strings.Contains(err.Error(), "store.nats.password_file") {
		t.Errorf("a missing file: %v", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	nobody := "nats://" + l.Addr().String()
	must(t, l.Close())
	_, err = state.Open(t.Context(), nobody, state.Options{Impatient: true, Timeout: 10 * time.Millisecond})
	if err == nil || !strings.Contains(err.Error(), "store "+nobody+": not reachable") {
		t.Errorf("nobody there: %v", err)
	}
}

// Over TLS each side shows who it is.
func TestNATSTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, key := selfSigned(t, dir)
	url := natsURL(startNATS(t, 1, fmt.Sprintf("tls { cert_file: %q, key_file: %q, ca_file: %q, verify: true }",
		filepath.ToSlash(cert), filepath.ToSlash(key), filepath.ToSlash(cert))))
	url = "tls" + strings.TrimPrefix(url, "nats")
	with := state.NATSOptions{CAFile: cert, CertFile: cert, KeyFile: key}
	must(t, state.OpenNATS(t, url, state.Options{NATS: with}).Close())
	for name, without := range map[string]state.NATSOptions{
		"no certificate": {CAFile: cert}, "an unknown authority": {CertFile: cert, KeyFile: key},
	} {
		_, err := state.Open(t.Context(), url, state.Options{NATS: without, Impatient: true, Timeout: time.Second})
		if err == nil || !strings.Contains(err.Error(), "tls: ") && !strings.Contains(err.Error(), "tls error") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// selfSigned makes a certificate of loopback, for servers and clients.
func selfSigned(t *testing.T, dir string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	of := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "codehand test"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, of, of, &private.PublicKey, private)
	must(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	must(t, err)
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	must(t, os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	must(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600))
	return cert, key
}

// Without a server every operation ends by itself, soon at once, and goes on when the server is back: the same values,
// and Watches that miss nothing.
func TestNATSDown(t *testing.T) {
	t.Parallel()
	servers := startNATS(t, 1, "")
	s := state.OpenNATS(t, natsURL(servers), state.Options{Timeout: 500 * time.Millisecond})
	defer s.Close()
	ctx := t.Context()
	must(t, s.Set(ctx, "token.a", []byte("v")))
	var mu sync.Mutex
	told := map[string]int{}
	var watching sync.WaitGroup
	watching.Go(func() {
		_ = s.Watch(ctx, "token", func(key string) {
			mu.Lock()
			defer mu.Unlock()
			told[key]++
		})
	})
	count := func(key string) int {
		mu.Lock()
		defer mu.Unlock()
		return told[key]
	}
	soon(t, "the Watch begins", func() bool { return count("token.a") == 1 })
	for range 2 {
		before := count("token.a")
		servers[0].kill()
		_, swap := s.Swap(ctx, "token.b", []byte("v"), 0)
		_, _, get := s.Get(ctx, "token.a")
		_, keys := s.Keys(ctx, "token")
		for i, err := range []error{swap, get, keys, s.Set(ctx, "token.b", []byte("v")), s.Append(ctx, "job.p.a", []byte("v")), s.Ping(ctx)} {
			if !errors.Is(err, state.ErrDown) && !errors.Is(err, state.ErrUnsure) {
				t.Errorf("operation %d: %v", i, err)
			}
		}
		soon(t, "operations end at once", func() bool {
			_, _, err := s.Get(ctx, "token.a")
			return err != nil && strings.Contains(err.Error(), "not reachable since ")
		})
		if down := s.(state.Stater).Stats().Down; !errors.Is(down, state.ErrDown) {
			t.Errorf("down: %v", down)
		}
		servers[0].start()
		soon(t, "writes are carried out again", func() bool { return s.Set(ctx, "token.c", []byte("v")) == nil })
		if v, _, err := s.Get(ctx, "token.a"); string(v) != "v" || err != nil {
			t.Errorf("it came back with %q, %v", v, err)
		}
		must(t, s.Ping(ctx))
		soon(t, "the Watch tells again what there is", func() bool { return count("token.a") > before })
	}
	must(t, s.Close())
	watching.Wait()
}

// A lossy is a connection to a server that loses answers when a test wants it.
type lossy struct {
	net.Listener
	to      string
	serving sync.WaitGroup

	mu   sync.Mutex
	lose bool // the next answer, and with it the connection
	lost int
}

func newLossy(t *testing.T, to string) *lossy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	f := &lossy{Listener: l, to: to}
	f.serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			f.serving.Go(func() { f.serve(c) })
		}
	})
	t.Cleanup(func() { _ = l.Close(); f.serving.Wait() })
	return f
}

func (f *lossy) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", f.to)
	if err != nil {
		return
	}
	defer server.Close()
	f.serving.Go(func() {
		defer server.Close()
		buffer := make([]byte, 64<<10)
		for {
			n, err := client.Read(buffer)
			if err != nil {
				return
			}
			if _, err := server.Write(buffer[:n]); err != nil {
				return
			}
		}
	})
	buffer := make([]byte, 64<<10)
	for {
		n, err := server.Read(buffer)
		if err != nil || f.loses(buffer[:n]) {
			return
		}
		if _, err := client.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// loses says whether these bytes are lost: those with an answer of a stream, when it is wanted.
func (f *lossy) loses(b []byte) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.lose || !bytes.Contains(b, []byte(`"stream":"`)) {
		return false
	}
	f.lose = false
	f.lost++
	return true
}

func (f *lossy) loseNext() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lose = true
}

// A write whose answer is lost is neither carried out twice nor reported as lost.
func TestNATSLostAnswers(t *testing.T) {
	t.Parallel()
	servers := startNATS(t, 1, "")
	f := newLossy(t, fmt.Sprintf("127.0.0.1:%d", servers[0].port))
	s := state.OpenNATS(t, "nats://"+f.Addr().String(), state.Options{Timeout: 20 * time.Second})
	defer s.Close()
	ctx := t.Context()
	// A renewal of the process's own record may be what gets lost, and on a busy machine the next one comes too late:
	// then nothing is written before it does.
	renewed := func(write func() error) {
		t.Helper()
		again := time.NewTicker(50 * time.Millisecond)
		defer again.Stop()
		err := write()
		for err != nil && strings.Contains(err.Error(), "could not renew its record") && ctx.Err() == nil {
			<-again.C
			err = write()
		}
		must(t, err)
	}
	const rounds = 4
	rev := uint64(0)
	for i := range rounds {
		value := fmt.Appendf(nil, "%d", i)
		f.loseNext()
		renewed(func() error {
			ok, err := s.Swap(ctx, "token.swap", value, rev)
			if err == nil && !ok {
				err = fmt.Errorf("Swap %d: another revision", i)
			}
			return err
		})
		var v []byte
		var now uint64
		renewed(func() (err error) {
			v, now, err = s.Get(ctx, "token.swap")
			return err
		})
		if string(v) != string(value) || now <= rev {
			t.Fatalf("after Swap %d: %q at %d", i, v, now)
		}
		rev = now
		f.loseNext()
		renewed(func() error { return s.Append(ctx, "job.p.a", value) })
		f.loseNext()
		renewed(func() error { return s.Set(ctx, "token.set", value) })
	}
	values, _, err := s.Tail(ctx, "job.p.a", 0, 100)
	must(t, err)
	if got := string(bytes.Join(values, []byte(" "))); got != "0 1 2 3" {
		t.Errorf("the stream holds %s", got)
	}
	f.loseNext()
	renewed(func() error { return s.Delete(ctx, "token.set") })
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lost < 3*rounds {
		t.Errorf("only %d answers were lost", f.lost)
	}
}

// A Get over another server than the one that was written to never shows an old value.
func TestNATSNeverStale(t *testing.T) {
	leaktest.OutsideGate(t, "runs a cluster of three servers")
	t.Parallel()
	servers := startNATS(t, 3, "")
	writer := state.OpenNATSBeside(t, natsURL(servers[:1]), state.Options{Timeout: 10 * time.Second})
	readers := []state.Store{
		state.OpenNATSBeside(t, natsURL(servers[1:2]), state.Options{Timeout: 10 * time.Second}),
		state.OpenNATSBeside(t, natsURL(servers[2:]), state.Options{Timeout: 10 * time.Second}),
	}
	stale := 0
	for i := range 3000 {
		value := fmt.Sprint(i)
		must(t, writer.Set(t.Context(), "token.a", []byte(value)))
		for _, reader := range readers {
			v, _, err := reader.Get(t.Context(), "token.a")
			must(t, err)
			if string(v) != value {
				stale++
			}
		}
	}
	if stale > 0 {
		t.Errorf("%d of 6000 reads were stale", stale)
	}
}

// What was acknowledged is there, whichever server was killed while it was written, with one server and with three.
func TestNATSKilled(t *testing.T) {
	t.Parallel()
	killed(t, 1, leaktest.Rounds(2, 10))
}

func TestNATSClusterKilled(t *testing.T) {
	leaktest.OutsideGate(t, "runs a cluster of three servers")
	t.Parallel()
	killed(t, 3, leaktest.Rounds(6, 30))
}

func killed(t *testing.T, n, rounds int) {
	servers := startNATS(t, n, "")
	s := state.OpenNATS(t, natsURL(servers), state.Options{})
	defer s.Close()
	ctx, cancel := context.WithCancel(t.Context())
	const writers = 6
	acked := make([]struct {
		sync.Mutex
		set, swapped, appended, failed int
	}, writers)
	var writing sync.WaitGroup
	for w := range writers {
		writing.Go(func() {
			a := &acked[w]
			sure := true // no earlier Swap may be carried out yet
			for i := 1; ctx.Err() == nil; i++ {
				value := fmt.Appendf(nil, "%d", i)
				key := fmt.Sprintf("token.w%d", w)
				set := s.Set(ctx, fmt.Sprintf("%s-%d", key, i), value)
				_, rev, err := s.Get(ctx, key)
				ok := false
				if err == nil {
					ok, err = s.Swap(ctx, key, value, rev)
				}
				if err == nil && !ok && sure {
					t.Errorf("writer %d lost a Swap that nobody else made", w)
				}
				sure = err == nil
				added := s.Append(ctx, fmt.Sprintf("job.p.w%d", w), value)
				a.Lock()
				if set == nil {
					a.set++
				} else {
					a.failed++
				}
				if ok {
					a.swapped = i
				}
				if added == nil {
					a.appended = i
				}
				a.Unlock()
				if set == nil {
					continue
				}
				if !errors.Is(set, state.ErrDown) && !errors.Is(set, state.ErrUnsure) && ctx.Err() == nil {
					t.Errorf("a failure that is none of the Store's: %v", set)
				}
				// What failed may come later, or never. It is written again, so that each number below i is there.
				soon(t, "a write that failed is carried out", func() bool {
					return ctx.Err() != nil || s.Set(ctx, fmt.Sprintf("%s-%d", key, i), value) == nil
				})
			}
		})
	}
	written := func() (sum int) {
		for w := range acked {
			acked[w].Lock()
			sum += acked[w].set
			acked[w].Unlock()
		}
		return sum
	}
	for round := range rounds {
		before := written()
		soon(t, "writes go on", func() bool { return written() > before+30 })
		dead := servers[round%n]
		dead.kill()
		if n > 1 { // the two others go on
			before = written()
			soon(t, "two of three go on", func() bool { return written() > before+30 })
		}
		dead.start()
	}
	before := written()
	soon(t, "writes go on", func() bool { return written() > before+30 })
	cancel()
	writing.Wait()
	soon(t, "the Store answers", func() bool { return s.Ping(t.Context()) == nil })
	for w := range acked {
		a := &acked[w]
		keys, err := s.Keys(t.Context(), "token")
		must(t, err)
		have := map[string]bool{}
		for _, key := range keys {
			have[key] = true
		}
		for i := 1; i <= a.set+a.failed-1; i++ {
			if key := fmt.Sprintf("token.w%d-%d", w, i); !have[key] && len(keys) < 10_000 {
				t.Errorf("%s is lost", key)
			}
		}
		v, _, err := s.Get(t.Context(), fmt.Sprintf("token.w%d", w))
		must(t, err)
		var last int
		if _, err := fmt.Sscan(string(v), &last); err != nil || last < a.swapped {
			t.Errorf("the counter of writer %d is %q, %d was acknowledged", w, v, a.swapped)
		}
		values, _, err := s.Tail(t.Context(), fmt.Sprintf("job.p.w%d", w), 0, 256)
		must(t, err)
		seen := map[string]bool{}
		for _, v := range values {
			if seen[string(v)] {
				t.Errorf("%s stands twice in the stream of writer %d", v, w)
			}
			seen[string(v)] = true
		}
		if a.appended > 0 && !seen[fmt.Sprint(a.appended)] {
			t.Errorf("the stream of writer %d has no %d", w, a.appended)
		}
		t.Logf("writer %d: %d acknowledged, %d failed", w, a.set, a.failed)
	}
}

// The configuration that is shipped is one that nats-server takes.
func TestNATSConf(t *testing.T) {
	t.Parallel()
	out, err := exec.Command(natsProgram(t), "-t", "-c", "../../packaging/nats/nats.conf").CombinedOutput() // ends at once
	if err != nil || !strings.Contains(string(out), "is valid") {
		t.Errorf("%v: %s", err, out)
	}
}
