package people

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"codehand/server/auth"
)

// Owner is the principal of the one person that auth.mode owner knows.
const Owner = "owner"

// A Person is how one principal signs in.
type Person struct {
	ID       string    `json:"id"` // of the principal
	Handle   []byte    `json:"handle"`
	Password string    `json:"password,omitempty"` // argon2id, as PHC string; "": there is none
	Epoch    int       `json:"epoch"`              // grows with each new password; sessions of another one have ended
	Changed  time.Time `json:"changed"`            // when Epoch was
	Passkeys []Passkey `json:"passkeys,omitempty"`
}

// A Passkey is a key that an authenticator keeps for a person. It holds nothing secret.
type Passkey struct {
	ID      string          `json:"id"` // of the credential, base64url
	Name    string          `json:"name"`
	Host    string          `json:"host"` // that it is for: its relying party
	Created time.Time       `json:"created"`
	Used    time.Time       `json:"used,omitzero"`
	Record  json.RawMessage `json:"record"` // public key, counter and flags, as the pages keep them
}

// Errors of a Book. They are written for people.
var (
	ErrUnknown = errors.New("there is no such person")
	ErrInvite  = errors.New("this invitation does not exist, has expired or was used")
)

// maxPasskeys is how many one person has at most.
const maxPasskeys = 20

// A Book is the file of all persons and invitations. It is safe for concurrent use, also by several processes.
type Book struct {
	file *auth.PrivateFile
	now  func() time.Time

	mu   sync.Mutex // covers what follows
	text []byte     // what roll was read from
	roll roll
}

// roll is what the file holds.
type roll struct {
	Version int      `json:"v"`
	People  []Person `json:"people"`
	Invites []Invite `json:"invites,omitempty"`
}

// fileName is the file in the data directory.
const fileName = "signin.json"

// Open names the Book of a data directory; there need not be one. now may be nil.
func Open(dir string, now func() time.Time) *Book {
	if now == nil {
		now = time.Now
	}
	return &Book{file: auth.OpenPrivate(filepath.Join(dir, fileName)), now: now}
}

// read returns what the file holds. The caller must not change it.
func (b *Book) read() (roll, error) {
	text, err := b.file.Read()
	if err != nil {
		return roll{}, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.text != nil && bytes.Equal(b.text, text) {
		return b.roll, nil
	}
	r, err := parse(text)
	if err != nil {
		return roll{}, fmt.Errorf("%s: %w", b.file.Path(), err)
	}
	b.text, b.roll = text, r
	return r, nil
}

func parse(text []byte) (roll, error) {
	r := roll{Version: 1}
	if len(text) == 0 {
		return r, nil
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return roll{}, errors.New("is damaged; restore it, or remove it and make new passwords")
	}
	if r.Version != 1 {
		return roll{}, errors.New("was written by a newer codehand")
	}
	return r, nil
}

// change edits the file under its lock. An error of edit leaves it as it is.
func (b *Book) change(edit func(*roll) error) error {
	return b.file.Change(func(old []byte) ([]byte, error) {
		r, err := parse(old)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", b.file.Path(), err)
		}
		now := b.now()
		r.Invites = slices.DeleteFunc(r.Invites, func(i Invite) bool { return now.Sub(i.Expires) > inviteMemory })
		if err := edit(&r); err != nil {
			return nil, err
		}
		text, err := json.MarshalIndent(r, "", " ")
		return append(text, '\n'), err
	})
}

func (r *roll) person(id string) *Person {
	i := slices.IndexFunc(r.People, func(p Person) bool { return p.ID == id })
	if i < 0 {
		return nil
	}
	return &r.People[i]
}

// made returns the person, who is made if there is none.
func (r *roll) made(id string) *Person {
	if p := r.person(id); p != nil {
		return p
	}
	handle := make([]byte, 32)
	_, _ = rand.Read(handle) // never fails
	r.People = append(r.People, Person{ID: id, Handle: handle})
	return &r.People[len(r.People)-1]
}

// All returns all persons, in no order. The caller must not change them.
func (b *Book) All() ([]Person, error) {
	r, err := b.read()
	return slices.Clone(r.People), err
}

// Find returns the person of a principal, or ErrUnknown.
func (b *Book) Find(id string) (Person, error) {
	return b.find(func(p Person) bool { return p.ID == id })
}

// ByHandle returns the person whose passkeys have that handle, or ErrUnknown.
func (b *Book) ByHandle(handle []byte) (Person, error) {
	return b.find(func(p Person) bool { return len(handle) > 0 && bytes.Equal(p.Handle, handle) })
}

func (b *Book) find(match func(Person) bool) (Person, error) {
	r, err := b.read()
	if err != nil {
		return Person{}, err
	}
	i := slices.IndexFunc(r.People, match)
	if i < 0 {
		return Person{}, ErrUnknown
	}
	p := r.People[i]
	p.Passkeys = slices.Clone(p.Passkeys)
	return p, nil
}

// SetPassword gives a person, who is made if need be, a new password by its hash. It ends every sign-in of that person
// in a browser. Passkeys stay, unless drop is set.
func (b *Book) SetPassword(id, hash string, drop bool) error {
	if err := auth.CheckID(id); err != nil {
		return err
	}
	return b.change(func(r *roll) error {
		p := r.made(id)
		p.Password, p.Epoch, p.Changed = hash, p.Epoch+1, second(b.now())
		if drop {
			p.Passkeys = nil
		}
		return nil
	})
}

// Rehash replaces a hash by another one of the same password, if it is still the one that was checked.
func (b *Book) Rehash(id, was, now string) error {
	return b.change(func(r *roll) error {
		if p := r.person(id); p != nil && p.Password == was {
			p.Password = now
		}
		return nil
	})
}

// AddPasskey gives a person one more, or says why not.
func (b *Book) AddPasskey(id string, key Passkey) error {
	return b.change(func(r *roll) error {
		p := r.person(id)
		if p == nil {
			return ErrUnknown
		}
		return r.add(p, key, second(b.now()))
	})
}

func (r *roll) add(p *Person, key Passkey, now time.Time) error {
	if len(p.Passkeys) >= maxPasskeys {
		return fmt.Errorf("there are %d passkeys already; remove one first", maxPasskeys)
	}
	for _, other := range r.People {
		if slices.ContainsFunc(other.Passkeys, func(k Passkey) bool { return k.ID == key.ID }) {
			return errors.New("this passkey is registered already")
		}
	}
	key.Created, key.Name = now, cleanName(key.Name)
	p.Passkeys = append(p.Passkeys, key)
	return nil
}

// RemovePasskey takes a passkey away. The last way to sign in stays.
func (b *Book) RemovePasskey(id, key string) error {
	return b.change(func(r *roll) error {
		p := r.person(id)
		if p == nil {
			return ErrUnknown
		}
		i := slices.IndexFunc(p.Passkeys, func(k Passkey) bool { return k.ID == key })
		if i < 0 {
			return errors.New("there is no such passkey")
		}
		if len(p.Passkeys) == 1 && p.Password == "" {
			return errors.New("this passkey is the only way to sign in; add another one first")
		}
		p.Passkeys = slices.Delete(p.Passkeys, i, i+1)
		return nil
	})
}

// UsePasskey notes that a passkey signed its person in: check is given what is kept of it, and returns what is kept
// from now on. Its error is that of UsePasskey, and nothing is noted. Two sign-ins at once are checked one after the
// other, so a counter cannot be used twice.
func (b *Book) UsePasskey(id, key string, check func(record json.RawMessage) (json.RawMessage, error)) error {
	return b.change(func(r *roll) error {
		p := r.person(id)
		if p == nil {
			return ErrUnknown
		}
		for i := range p.Passkeys {
			if k := &p.Passkeys[i]; k.ID == key {
				record, err := check(k.Record)
				if err == nil {
					k.Record, k.Used = record, second(b.now())
				}
				return err
			}
		}
		return ErrUnknown
	})
}

// cleanName keeps what a person calls a passkey to one short line.
func cleanName(name string) string {
	name = strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(name, ""))), " ")
	if r := []rune(name); len(r) > 60 {
		name = string(r[:60])
	}
	if name == "" {
		return "passkey"
	}
	return name
}

func second(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }
