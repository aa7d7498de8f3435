package listen

import (
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"os"
	"sync"
	"time"

	"codehand/server/config"
)

// pairEvery is how often certificate and key are looked at: soon enough after a renewal, and cheap beside a handshake.
const pairEvery = 2 * time.Second

// loadTLS reads what the configuration says about TLS; nil: none is served. The error is a config.Unusable. Client
// authorities are read once, since a change of whom to trust is worth a restart.
func loadTLS(c config.Config, log *slog.Logger) (*tls.Config, *keyPair, error) {
	h := c.HTTP
	switch {
	case h.TLSCert == "" && h.TLSKey == "" && h.ClientCA == "":
		return nil, nil, nil
	case h.TLSCert == "":
		return nil, nil,
			misconfigured("--http-tls-cert FILE", "http.tls_cert is not set, but http.tls_key or http.client_ca is")
	case h.TLSKey == "":
		return nil, nil, misconfigured("--http-tls-key FILE", "http.tls_key is not set, but http.tls_cert is")
	}
	p := &keyPair{certFile: h.TLSCert, keyFile: h.TLSKey, now: time.Now, log: log}
	if err := p.reload(); err != nil {
		return nil, nil, misconfigured("", "http.tls_cert, http.tls_key: %w", err)
	}
	t := &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: p.certificate}
	if h.ClientCA != "" {
		pem, err := os.ReadFile(h.ClientCA)
		if err != nil {
			return nil, nil, misconfigured("", "http.client_ca: %w", err)
		}
		t.ClientCAs, t.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
		if !t.ClientCAs.AppendCertsFromPEM(pem) {
			return nil, nil, misconfigured("", "http.client_ca: %s holds no certificate in PEM form", h.ClientCA)
		}
	}
	return t, p, nil
}

// A keyPair is a certificate with its key, read again when the files change. It looks when a client comes, so nothing
// runs beside. It is safe for concurrent use.
type keyPair struct {
	certFile, keyFile string
	now               func() time.Time
	log               *slog.Logger

	mu     sync.Mutex
	pair   *tls.Certificate
	looked time.Time
	seen   [2]stamp // of the files as they were read, or found broken
}

// A stamp tells one content of a file from the next.
type stamp struct {
	size int64
	time time.Time
}

func (p *keyPair) certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := p.now(); now.Sub(p.looked) >= pairEvery {
		p.looked = now
		if seen := p.stamps(); seen != p.seen {
			if err := p.read(seen); err != nil {
				p.log.Error("certificate cannot be reloaded; the old one stays in use", "err", err)
			}
		}
	}
	return p.pair, nil
}

// reload reads both files now.
func (p *keyPair) reload() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.looked = p.now()
	return p.read(p.stamps())
}

// read takes the stamps from before the reading: a file that changes meanwhile is read once more.
func (p *keyPair) read(seen [2]stamp) error {
	p.seen = seen
	pair, err := tls.LoadX509KeyPair(p.certFile, p.keyFile)
	if err != nil {
		return err
	}
	p.pair = &pair
	return nil
}

func (p *keyPair) stamps() [2]stamp {
	var s [2]stamp
	for i, name := range []string{p.certFile, p.keyFile} {
		if info, err := os.Stat(name); err == nil { // a missing one fails when it is read
			s[i] = stamp{info.Size(), info.ModTime()}
		}
	}
	return s
}
