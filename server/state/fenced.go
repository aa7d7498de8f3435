package state

import "context"

// fencedStore is a Store that refuses writes while may says why.
type fencedStore struct {
	Store
	may func() error
}

// Fenced is s for something that may write only while may returns nil. A nil may always permits.
func Fenced(s Store, may func() error) Store {
	if may == nil {
		return s
	}
	return &fencedStore{s, may}
}

func (s *fencedStore) Set(ctx context.Context, key string, value []byte) error {
	if err := s.may(); err != nil {
		return err
	}
	return s.Store.Set(ctx, key, value)
}

func (s *fencedStore) Swap(ctx context.Context, key string, value []byte, rev uint64) (bool, error) {
	if err := s.may(); err != nil {
		return false, err
	}
	return s.Store.Swap(ctx, key, value, rev)
}

func (s *fencedStore) Delete(ctx context.Context, key string) error {
	if err := s.may(); err != nil {
		return err
	}
	return s.Store.Delete(ctx, key)
}

func (s *fencedStore) Append(ctx context.Context, name string, value []byte) error {
	if err := s.may(); err != nil {
		return err
	}
	return s.Store.Append(ctx, name, value)
}
