package live

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"codehand/server/asking"
	"codehand/server/auth/peers"
	"codehand/server/sessions"
)

const (
	// socketsDir is where the sockets are, below the state directory.
	socketsDir = "live"
	// suffix ends the name of a socket that answers; one that does not yet has another.
	suffix = ".sock"
	// maxPath is how long the path of a socket may be, in bytes.
	maxPath = 100
	// pollTime is how long a page waits for news in one request.
	pollTime = 25 * time.Second
	// answerTime bounds every other request.
	answerTime = 30 * time.Second
	// maxSaid is how many bytes one message has at most.
	maxSaid = 8 << 20
	// mostSwept is how many sockets of dead processes one process looks for.
	mostSwept = 100
)

// A look is what a process says of itself. All texts come from clients and models.
type look struct {
	Version uint64 // names what waits; another one is news
	PID     int
	Roots   []string
	Bars    string // why no answer from a page counts there; "": nothing bars it
	Waits   bool   // the process answers only when there are news
	Waiting []asking.Waiting
	Running []RunningCommand
}

// A RunningCommand is one that runs.
type RunningCommand struct {
	Process    string // that runs it; set by the Hub
	Session    string // a short name
	ID         string // of the job
	Command    string
	Cwd        string
	Since      time.Time
	Background bool
}

// A Process is what Serve lets a page see and do.
type Process struct {
	Principal string
	Roots     []string
	Desk      *asking.Desk  // nil: no question waits for a page, by the settings
	Bars      func() string // as look.Bars
	Running   func(context.Context) []RunningCommand
	// Stop ends a command; found is false if it does not run here.
	Stop func(ctx context.Context, session, id string) (found bool, err error)
	// Rights returns those of the sessions of a short name that are in use.
	Rights func(ctx context.Context, session string) ([]sessions.Rights, error)
	// SetRights does what a person wants: sessions.ErrNotOpen, ErrMode, *RuleError.
	SetRights func(ctx context.Context, w Wish) error
}

// A Wish is what a person wants of the rights of a session.
type Wish struct {
	Session   string // a short name
	By        string
	Add, Take *sessions.NamedRule // a rule; both nil: Mode is wanted
	Mode      string
}

// Available says whether this system says who connects.
func Available() bool { return peers.CanLook() }

// Serve answers pages until ctx ends, on a socket below a state directory, and removes it. The error says why it could
// not begin: without the socket everything else works.
func Serve(ctx context.Context, stateDir string, p Process, log *slog.Logger) error {
	callers := peers.New()
	if callers == nil {
		return nil
	}
	dir := filepath.Join(stateDir, socketsDir)
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	sweep(ctx, dir)
	name := strings.ToLower(rand.Text()[:16])
	l, err := listen(ctx, dir, name)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, name+suffix)
	defer func() { _ = os.Remove(path) }() // the next page takes it for the rest of a killed process
	server := &http.Server{
		Handler: p.handler(callers), ReadHeaderTimeout: answerTime, ReadTimeout: answerTime,
		WriteTimeout: 2 * answerTime, IdleTimeout: time.Minute,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog:    slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(callers.Listener(l)); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// listen makes a socket that has its name only once it answers: until then nobody takes it for that of a dead process.
func listen(ctx context.Context, dir, name string) (net.Listener, error) {
	at, release, err := short(dir)
	if err != nil {
		return nil, err
	}
	defer release()
	l, err := new(net.ListenConfig).Listen(ctx, "unix", filepath.Join(at, name))
	if err != nil {
		return nil, err
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false) // its path is another one by then
	whole := filepath.Join(dir, name)
	if err := errors.Join(os.Chmod(whole, 0o600), os.Rename(whole, whole+suffix)); err != nil {
		_ = l.Close() // not served
		_ = os.Remove(whole)
		return nil, err
	}
	return l, nil
}

// short returns a path of dir that leaves room for the name of a socket, until release is called.
func short(dir string) (at string, release func(), err error) {
	if len(dir)+len("/0123456789abcdef"+suffix) <= maxPath {
		return dir, func() {}, nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return "", nil, err
	}
	return "/proc/self/fd/" + strconv.Itoa(int(d.Fd())), func() { _ = d.Close() }, nil
}

// dial connects to a socket.
func dial(ctx context.Context, dir, name string) (net.Conn, error) {
	at, release, err := short(dir)
	if err != nil {
		return nil, err
	}
	defer release()
	return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(at, name))
}

// sockets are the names of those in a directory.
func sockets(dir string) (names []string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // no process has begun yet
	}
	for _, e := range entries {
		if e.Type()&fs.ModeSocket != 0 && strings.HasSuffix(e.Name(), suffix) {
			names = append(names, e.Name())
		}
	}
	return names
}

// sweep removes what killed processes left.
func sweep(ctx context.Context, dir string) {
	names := sockets(dir)
	for _, name := range names[:min(len(names), mostSwept)] {
		if c, err := dial(ctx, dir, name); err == nil {
			_ = c.Close()
		} else {
			buryDead(dir, name, err)
		}
	}
}

// handler answers a page.
func (p Process) handler(callers *peers.Peers) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /look", p.look)
	mux.HandleFunc("POST /answer", p.answer)
	mux.HandleFunc("POST /stop", p.stop)
	mux.HandleFunc("GET /rights", p.rights)
	mux.HandleFunc("POST /rights", p.setRights)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if callers.Caller(r.RemoteAddr) != peers.Ours {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// pageHeader says where the page is that asks, and that a person has it open.
const pageHeader = "Codehand-Page"

// look answers when what waits is other than the page has seen, or after a while.
func (p Process) look(w http.ResponseWriter, r *http.Request) {
	l := look{PID: os.Getpid(), Roots: p.Roots, Bars: p.Bars()}
	url := r.Header.Get(pageHeader)
	var changed <-chan struct{}
	if p.Desk != nil && l.Bars == "" && url != "" {
		l.Waits = true
		defer p.Desk.Visit(p.Principal, url)()
		l.Waiting, l.Version, changed = p.Desk.Of(p.Principal, false)
		if r.URL.Query().Get("seen") == strconv.FormatUint(l.Version, 10) {
			late := time.NewTimer(pollTime)
			defer late.Stop()
			select {
			case <-changed:
				l.Waiting, l.Version, _ = p.Desk.Of(p.Principal, false)
			case <-late.C:
			case <-r.Context().Done():
				return
			}
		}
	}
	l.Running = p.Running(r.Context())
	say(w, l)
}

// A saying is what a person answers to a question.
type saying struct {
	ID, By string
	Values map[string]string
}

func (p Process) answer(w http.ResponseWriter, r *http.Request) {
	var s saying
	if !heard(w, r, &s) {
		return
	}
	if p.Desk == nil || p.Bars() != "" {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	switch err := p.Desk.Answer(s.ID, s.By, false, s.Values); {
	case errors.Is(err, asking.ErrOver):
		w.WriteHeader(http.StatusGone)
	case errors.Is(err, asking.ErrChoice):
		w.WriteHeader(http.StatusUnprocessableEntity)
	case err != nil:
		w.WriteHeader(http.StatusInternalServerError)
	}
}

func (p Process) stop(w http.ResponseWriter, r *http.Request) {
	var c RunningCommand
	if !heard(w, r, &c) {
		return
	}
	found, err := p.Stop(r.Context(), c.Session, c.ID)
	switch {
	case err != nil:
		w.WriteHeader(http.StatusInternalServerError)
	case !found:
		w.WriteHeader(http.StatusGone)
	}
}

func (p Process) rights(w http.ResponseWriter, r *http.Request) {
	all, err := p.Rights(r.Context(), r.URL.Query().Get("session"))
	if err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	say(w, all)
}

// setRights takes no wish where a command could have it.
func (p Process) setRights(w http.ResponseWriter, r *http.Request) {
	var wish Wish
	if !heard(w, r, &wish) {
		return
	}
	all, err := p.Rights(r.Context(), wish.Session)
	why := p.Bars()
	switch {
	case err != nil:
	case len(all) == 0:
		err = sessions.ErrNotOpen
	case why != "":
		w.WriteHeader(http.StatusForbidden)
		say(w, why)
		return
	default:
		err = p.SetRights(r.Context(), wish)
	}
	wrong, isWrong := errors.AsType[*sessions.RuleError](err)
	switch {
	case errors.Is(err, sessions.ErrNotOpen):
		w.WriteHeader(http.StatusGone)
	case errors.Is(err, sessions.ErrMode):
		w.WriteHeader(http.StatusBadRequest)
	case isWrong:
		w.WriteHeader(http.StatusUnprocessableEntity)
		say(w, wrong.Text)
	case err != nil:
		w.WriteHeader(http.StatusInternalServerError)
	}
}

func heard(w http.ResponseWriter, r *http.Request, to any) bool {
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxSaid)).Decode(to); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return false
	}
	return true
}

func say(w http.ResponseWriter, what any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(what) // a page that is gone needs no answer
}
