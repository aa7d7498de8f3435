package credentials

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Values of Options.Mode. Any other hands out nothing.
const (
	Ask = "ask" // the person is asked once for each session
	On  = "on"  // for every session; about a site that is neither a remote's nor named, the person is asked even so
)

// Options are those of a Desk.
type Options struct {
	Mode    string
	Remotes []string // URLs of the repositories' remotes, as they are when the session begins
	Sites   []string // others that the operator named, as Site returns them
	// Written are all directories that commands of this person write, without links, also in other sessions
	Written []string
	Home    string // of the person; "": unknown
	Dir     string // for sockets, made when the first command needs one; no command writes there
}

// Errors of an Asking.
var (
	ErrNobody   = errors.New("nobody can be asked")
	ErrDeclined = errors.New("the user declined")
)

// An Asking puts a question to the person, and returns nil if the answer is yes. Other errors than those above mean
// that no answer came.
type Asking func(ctx context.Context, question string) error

// A Desk hands out passwords to the commands of one session. It is safe for concurrent use.
type Desk struct {
	o       Options
	program string // this one, as commands find it; "": it is not there
	now     func() time.Time

	asking sync.Mutex // one question at a time

	mu       sync.Mutex         // covers what follows; never held while a person is asked
	allowed  map[string]bool    // sites that the person said yes about
	declined map[bool]time.Time // when the person last said no, about strange sites (true) and about the others
}

// New returns a Desk, nil if there is nothing to hand out: the mode is none.
func New(o Options) *Desk {
	if o.Mode != Ask && o.Mode != On {
		return nil
	}
	d := &Desk{o: o, now: time.Now, allowed: map[string]bool{}, declined: map[bool]time.Time{}}
	if exe, err := os.Executable(); err == nil {
		if d.program, err = filepath.EvalSymlinks(exe); err != nil {
			d.program = ""
		}
	}
	return d
}

// Allowed says whether commands get passwords without a question from now on.
func (d *Desk) Allowed() bool {
	if d == nil {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.allowed) > 0 || d.o.Mode == On && len(d.o.Remotes)+len(d.o.Sites) > 0
}

const (
	// again is after how long a person who declined is asked again.
	again = time.Minute
	// maxServed is how many requests of one command are answered.
	maxServed = 200
	// maxAtOnce is how many of them at once.
	maxAtOnce = 8
	// patience is how long a helper may take to say what it wants.
	patience = 10 * time.Second
)

// may asks the person about a site if need be: in one question about all known ones, those that the session began with
// and those that the operator named, or about a strange one alone.
func (d *Desk) may(ctx context.Context, ask Asking, site string, known []string) error {
	strange := !slices.Contains(known, site)
	if d.o.Mode == On && !strange {
		return nil
	}
	d.asking.Lock()
	defer d.asking.Unlock()
	d.mu.Lock()
	at, declined := d.declined[strange]
	allowed, declined := d.allowed[site], declined && d.now().Sub(at) < again
	d.mu.Unlock()
	switch {
	case allowed:
		return nil
	case declined:
		return ErrDeclined
	case ask == nil:
		return ErrNobody
	}
	about := known
	if strange {
		about = []string{site}
	}
	err := ask(ctx, question(about, strange))
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case err == nil:
		for _, site := range about {
			d.allowed[site] = true
		}
	case errors.Is(err, ErrDeclined):
		d.declined[strange] = d.now()
	}
	return err
}

// maxNamed is how many sites a question names.
const maxNamed = 8

func question(about []string, strange bool) string {
	names := slices.Clone(about[:min(len(about), maxNamed)])
	if more := len(about) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more hosts", more))
	}
	origin, settings := "", `sandbox.git_credentials = "on" or "off".`
	if strange {
		origin = "No repository here had that host when the session began: a command named it.\n"
		settings = openSite(about[0])
	}
	return "Let git use your stored password for " + strings.Join(names, ", ") + " in the commands of this session?\n" +
		origin + "Your own git looks it up outside of the sandbox. A command can read it, and send it anywhere, " +
		"until it expires.\nTo answer for good: " + settings
}

// openSite are the settings that open a site for good.
func openSite(site string) string {
	return fmt.Sprintf(`sandbox.git_credentials = "on" and sandbox.git_hosts = [%q]`,
		strings.TrimPrefix(site, "https://"))
}

// A Door is where the helper of one command asks. It is safe for concurrent use.
type Door struct {
	desk   *Desk
	ask    Asking
	socket string
	listen net.Listener
	end    context.CancelFunc
	served sync.WaitGroup

	mu   sync.Mutex
	said []string // why requests had no answer
}

// Open opens a Door for a command, which only that command sees. ask is for its questions, nil: nobody can be asked. An
// error means that this process has none; then git has no helper. The caller closes it.
func (d *Desk) Open(ask Asking) (*Door, error) {
	if d.program == "" {
		return nil, errors.New("this program has no file any more")
	}
	if err := os.MkdirAll(d.o.Dir, 0o700); err != nil {
		return nil, err
	}
	dir, err := os.Open(d.o.Dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }() // a directory handle holds no data
	name := rand.Text()[:16]
	l, err := net.Listen("unix", below(dir, name))
	if err != nil {
		return nil, err
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false) // that path ends with the handle
	ctx, end := context.WithCancel(context.Background())
	door := &Door{desk: d, ask: ask, socket: filepath.Join(d.o.Dir, name), listen: l, end: end}
	door.served.Go(func() { door.serve(ctx) })
	return door, nil
}

// Readable are the files that the command needs to see: the socket, and this program.
func (o *Door) Readable() []string { return []string{o.socket, o.desk.program} }

// Env makes git ask at the Door, and no other helper: none of the person's works in the sandbox.
func (o *Door) Env() []string {
	quote := func(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
	return []string{"GIT_CONFIG_COUNT=2", "GIT_CONFIG_KEY_0=credential.helper", "GIT_CONFIG_VALUE_0=",
		"GIT_CONFIG_KEY_1=credential.helper",
		"GIT_CONFIG_VALUE_1=!" + quote(o.desk.program) + " git-helper " + quote(o.socket)}
}

// Why says why requests of the command had no answer until now, each once.
func (o *Door) Why() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.said)
}

// Close ends what is under way, also a question.
func (o *Door) Close() {
	o.end()
	_ = o.listen.Close()
	_ = os.Remove(o.socket)
	o.served.Wait()
}

func (o *Door) serve(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	defer func() { _ = o.listen.Close() }() // a request too many is refused, and does not wait for the command's end
	free := make(chan struct{}, maxAtOnce)
	for range maxServed {
		c, err := o.listen.Accept()
		if err != nil {
			return
		}
		free <- struct{}{}
		all.Go(func() {
			defer func() { <-free }()
			stop := context.AfterFunc(ctx, func() { _ = c.Close() })
			defer stop()
			o.answer(ctx, c)
			_ = c.Close()
		})
	}
}

// A reply is what a Door says to a helper.
type reply struct {
	Lines string // for git; "": there is no password
}

// answer serves one helper.
func (o *Door) answer(ctx context.Context, c net.Conn) {
	_ = c.SetReadDeadline(time.Now().Add(patience))
	text, err := io.ReadAll(io.LimitReader(c, maxRequest+1))
	if err != nil {
		return
	}
	lines, err := o.lookUp(ctx, string(text))
	if err != nil {
		o.mu.Lock()
		if why := err.Error(); len(o.said) < maxNamed && !slices.Contains(o.said, why) && ctx.Err() == nil {
			o.said = append(o.said, why)
		}
		o.mu.Unlock()
	}
	_ = json.NewEncoder(c).Encode(reply{lines}) // a helper that has gone wants nothing more
}

// lookUp returns what git gets for a request. An error says why it gets nothing, and what opens it.
func (o *Door) lookUp(ctx context.Context, text string) (string, error) {
	r, err := parse(text)
	if err != nil {
		return "", fmt.Errorf("git gets no stored password: %w", err)
	}
	none := func(err error) (string, error) {
		return "", fmt.Errorf("git gets no stored password for %s: %w", r.site(), err)
	}
	root, err := os.OpenRoot(o.desk.o.Dir)
	if err != nil {
		return none(err)
	}
	defer func() { _ = root.Close() }() // a directory handle holds no data
	user := own{dir: root, written: o.desk.o.Written, home: o.desk.o.Home}
	said, err := user.settings(ctx)
	if err != nil {
		return none(err)
	}
	known := sites(o.desk.o.Remotes, insteadOf(said))
	for _, site := range o.desk.o.Sites {
		if !slices.Contains(known, site) {
			known = append(known, site)
		}
	}
	open := `sandbox.git_credentials = "on"`
	if !slices.Contains(known, r.site()) {
		open = openSite(r.site())
	}
	switch err := o.desk.may(ctx, o.ask, r.site(), known); {
	case errors.Is(err, ErrDeclined):
		return none(errors.New("the user declined, and is asked again after a minute; " + open +
			" lets all sessions have it"))
	case errors.Is(err, ErrNobody):
		return none(errors.New("nobody can be asked here; the user can set " + open + ", or use an ssh remote"))
	case err != nil:
		return none(fmt.Errorf("no answer came (%w); run it again", err))
	}
	lines, err := user.fill(ctx, r)
	if err != nil {
		return none(err)
	}
	return lines, nil
}
